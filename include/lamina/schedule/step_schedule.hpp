// The order of operations of one micro-step of sharded training, as data: what runs on which stream, and what it waits
// for. Pure arithmetic: an executor or a simulated clock (simulated_clock.hpp) decides when things happen.
//
// Operations of one stream run one after another in the order of the list; streams run at the same time. The rules:
// - gather: before each use of a unit's weights. A use is a stage's forward or backward; the last stage (the head) runs
//   both on one gather, and neighbours in the same unit share a use, also across stages that only need the root. There
//   are prefetch + 1 parameter slots: a gather waits until the use that many uses before it is over, and until the last
//   use of its own unit is. The root is gathered first and stays.
// - compute: waits for its gather.
// - reduce: bucket i of n is final at the fraction (i + 1) / n of the unit's backward, which is cut into parts to show
//   it; with several stages in a row each makes its share of the buckets final, and where other stages come between the
//   unit's own (tied embedding and head), all of them become final in the last row.
// - back-pressure: a backward that opens a unit's gradient waits until the last bucket of the slot's former unit is
//   reduced.
// - without overlap every operation waits for the one before it, on whatever stream.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace lamina {

enum class StreamKind { compute, gather, reduce };
inline constexpr std::size_t stream_kinds = 3;

// release takes no time: it marks where a gathered unit's slot becomes free.
enum class OperationKind { gather, forward, backward, release, reduce };

struct Operation {
  OperationKind kind = OperationKind::gather;
  StreamKind stream = StreamKind::gather;
  std::size_t unit = 0;
  std::size_t stage = 0;                // of a reduce: the stage whose backward makes the bucket final
  bool in_backward = false;             // of a gather: its use is a backward; true for backward and reduce
  std::size_t part = 0, parts = 1;      // of a backward or a reduce: bucket `part` of `parts`
  std::vector<std::size_t> waits = {};  // places in the list, all before its own, whose end it waits for
};

struct ScheduledStage {
  std::size_t unit = 0;
  bool backward_needs_weights = true;
};

struct ScheduleShape {
  std::vector<ScheduledStage> stages;  // in the order of the forward pass; at least one
  std::vector<std::size_t> buckets;    // of each unit's gradient, at least 1 each
  std::optional<std::size_t> root;     // a unit that stays full all the time
  std::size_t prefetch = 1;            // later uses whose gathers may be under way
  std::size_t gradient_slots = 2;      // units whose gradients may exist at once
  bool keep_full = false;              // a gathered unit stays until its last use: one gather a unit
  bool overlap = true;
};

// Throws InternalError for a shape that breaks the limits above, names a unit that has no bucket count, or needs more
// gradient slots than there are.
[[nodiscard]] std::vector<Operation> micro_step_schedule(const ScheduleShape& shape);

}  // namespace lamina
