// The order of operations of one step of sharded training, as data: what runs on which stream, and what it waits for.
// Pure arithmetic: streams of threads (streams.hpp) or a simulated clock (simulated_clock.hpp) decide when things
// happen.
//
// Operations of one stream run one after another in the order of the list; streams run at the same time. The rules:
// - load: the micro-batch of each micro-step, two of which may exist at once.
// - gather: before each use of a unit's weights. A use is a stage's forward or backward; the last stage (the head) runs
//   both on one gather, and neighbours in the same unit share a use, also across stages that only need the root. There
//   are parameter slots for the deeper prefetch + 1 uses: a gather waits until the use that many uses before it is
//   over, and until the last use of its own unit is. With keep_full, units are gathered once and stay to the end of the
//   step; the root always does.
// - compute: waits for its gather.
// - reduce: a unit's gradient leaves in buckets of equal size, cut from the end of the unit. A bucket is final when the
//   backward of all stages in front of which it lies is over, or the part of a backward that ends with it: backwards
//   are cut into parts to show that. Where other stages come between the unit's own (tied embedding and head), all
//   buckets become final in the last row of its stages. With reduce_last_only, earlier micro-steps accumulate on the
//   rank.
// - back-pressure: a backward that opens a unit's gradient waits until the last bucket of the slot's former unit is
//   reduced.
// - finish: once a step, what remains to be exchanged of a unit's gradient after its last reduction.
// - without overlap every operation waits for the one before it, on whatever stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <lamina/shard/flat_layout.hpp>

namespace lamina {

enum class StreamKind { compute, gather, reduce, copy };
inline constexpr std::size_t stream_kinds = 4;

// release takes no time: it marks where a gathered unit's slot becomes free.
enum class OperationKind { load, gather, forward, backward, release, accumulate, reduce, finish };

struct Operation {
  OperationKind kind = OperationKind::gather;
  StreamKind stream = StreamKind::gather;
  std::size_t unit = 0;
  std::size_t stage = 0;                // of a reduce: the stage whose backward makes the bucket final
  bool in_backward = false;             // of a gather: its use is a backward; true for backward and reduce
  std::size_t part = 0, parts = 1;      // of a backward: its part; of a reduce: bucket `part` of `parts`
  std::vector<std::size_t> waits = {};  // places in the list, all before its own, whose end it waits for
  std::size_t micro_step = 0;
  std::size_t slot = 0;          // a gather's parameter slot; the gradient slot of a backward and a reduce
  std::size_t first_bucket = 0;  // of a backward: part i makes bucket first_bucket + i final
  bool completes = false;        // of a reduce: the unit's last bucket, after which its slot is free
};

struct ScheduledStage {
  std::size_t unit = 0;
  bool backward_needs_weights = true;
  std::int64_t offset = 0;  // where the stage's elements begin in the unit
};

struct ScheduledUnit {
  std::int64_t elements = 1;
  std::size_t buckets = 1;  // its gradient leaves in so many
};

// Bucket `bucket` of a unit, counted from the unit's end.
[[nodiscard]] FlatRange bucket_range(const ScheduledUnit& unit, std::size_t bucket);

struct ScheduleShape {
  std::vector<ScheduledStage> stages;  // in the order of the forward pass; at least one
  std::vector<ScheduledUnit> units;
  std::optional<std::size_t> root;  // a unit that stays full all the time
  std::size_t prefetch = 1;         // later uses whose gathers may be under way, where the use is a forward
  std::size_t prefetch_backward = 1;
  std::size_t gradient_slots = 2;  // units whose gradients may exist at once
  std::size_t micro_steps = 1;
  bool gradients = true;          // false: forward only, for evaluation
  bool keep_full = false;         // a gathered unit stays: one gather a unit and step
  bool reduce_last_only = false;  // gradients are reduced in the last micro-step only
  bool finish = false;            // there is something to exchange once a step
  bool load = false;              // micro-batches are loaded by an operation
  bool overlap = true;
};

[[nodiscard]] std::string_view name_of(OperationKind kind);
[[nodiscard]] std::string_view name_of(StreamKind stream);

// Parameter slots that the gathers of the schedule use: with keep_full one a unit (with its number), else the root's is
// the last.
[[nodiscard]] std::size_t parameter_slots(const ScheduleShape& shape);

// Throws InternalError for a shape that breaks the limits above, names a unit that is not there, or needs more gradient
// slots than there are.
[[nodiscard]] std::vector<Operation> step_schedule(const ScheduleShape& shape);

}  // namespace lamina
