// Weights, gradients and optimizer state of a model on one rank, behind one interface for every sharding strategy.
//
// A unit is SHARDED until gather() starts to collect it (GATHERING) and FULL when gather() returns, until release().
// Where a rank holds all weights the same calls cost nothing. Misuse (weights without gather, a second gather, release
// of what is not full, use of a unit that was gathered before its last update) throws InternalError.
//
// A unit's gradient is written by the rank into gradient(), handed in bucket by bucket with reduce(), and summed over
// ranks into an accumulator, micro-step by micro-step; finish_gradient() completes what the optimizer needs;
// clear_gradients() starts the next step. Every rank calls in the same order.
//
// Slots are chosen by the caller (schedule/step_schedule.hpp), the same on every rank. Threads: gather() may run at the
// same time as reduce(), accumulate() and finish_gradient(), and both at the same time as the other functions, on
// different units and slots; the caller orders what belongs to one unit or slot.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <lamina/comm/fabric_set.hpp>
#include <lamina/device/device.hpp>
#include <lamina/shard/collective_order.hpp>
#include <lamina/shard/flat_layout.hpp>
#include <lamina/shard/packed_tensors.hpp>
#include <lamina/shard/store_plan.hpp>

namespace lamina {

enum class UnitState { sharded, gathering, full };

// The part of a unit that this rank's optimizer updates. All spans have the length of `range` (padding included: it
// stays zero), or are empty where the plan has fewer moments or no averaged weights. exp_avg_sq may be kept for some of
// the unit's tensors only: it then holds theirs, packed.
struct OptimizerShard {
  FlatRange range;  // in the unit's flat buffer
  std::span<float> param, exp_avg, exp_avg_sq, grad;
  std::span<float> ema;                   // averaged weights
  const PackedTensors* second = nullptr;  // where exp_avg_sq is packed; null: its elements are those of `range`

  // Of a part of `range` that lies in one tensor; empty where that has none.
  [[nodiscard]] std::span<float> exp_avg_sq_of(FlatRange part) const;
};

struct StoreCounters {
  std::vector<std::uint64_t> gathers, reductions;  // by unit; a reduction of several buckets counts once
  int most_full_units = 0;                         // units gathering or full at the same time
  int most_gradient_slots = 0;                     // gradient slots held at the same time
};

class WeightStore {
 public:
  virtual ~WeightStore() = default;

  [[nodiscard]] virtual std::size_t unit_count() const = 0;
  [[nodiscard]] virtual const FlatLayout& layout(std::size_t unit) const = 0;

  // Collects the unit into a parameter slot and waits until it is full.
  virtual void gather(std::size_t unit, std::size_t slot) = 0;
  // The full unit's flat buffer, without padding.
  [[nodiscard]] virtual std::span<const float> weights(std::size_t unit) = 0;
  virtual void release(std::size_t unit) = 0;
  [[nodiscard]] virtual UnitState state(std::size_t unit) const = 0;

  // This rank's gradient of `unit`, in a gradient slot that is held from the first call to the reduction that completes
  // it. Waits until all ranks have read the slot's last content. Content is undefined at first.
  [[nodiscard]] virtual std::span<float> gradient(std::size_t unit, std::size_t slot) = 0;
  // Adds the bucket's elements of all ranks' gradients to the accumulators. `completes`: the unit's last bucket of this
  // micro-step.
  virtual void reduce(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) = 0;
  // Instead of reduce(), in all micro-steps but the last: adds the bucket to this rank's own sums, which the last
  // micro-step's reduce() includes. Only with StorePlan::local_sums.
  virtual void accumulate(std::size_t unit, std::size_t slot, FlatRange bucket, bool completes) = 0;
  // After the last reduction of a step. Only where exchanges_once_a_step (store_plan.hpp).
  virtual void finish_gradient(std::size_t unit) = 0;
  virtual void clear_gradients() = 0;

  [[nodiscard]] virtual OptimizerShard optimizer_shard(std::size_t unit) = 0;
  // After optimizer_shard(unit).param was written on every rank: a new version of the unit's weights, for all who hold
  // them. Collective.
  virtual void publish(std::size_t unit) = 0;
  // The ranks that hold one copy of the optimizer's state between them (store_plan.hpp): this rank's number among them,
  // the part of `unit` that each updates, and messages between them, as Fabric::exchange.
  [[nodiscard]] virtual int optimizer_rank() const = 0;
  [[nodiscard]] virtual std::vector<FlatRange> optimizer_ranges(std::size_t unit) const = 0;
  virtual void exchange(std::span<const FloatSend> sends, std::span<const FloatReceive> receives) = 0;
  // The part that this rank alone stands for when something is counted or written once over all ranks: without padding,
  // inside the optimizer's.
  [[nodiscard]] virtual FlatRange counted_range(std::size_t unit) const = 0;

  [[nodiscard]] virtual const StoreCounters& counters() const = 0;
  // What this rank has asked of the fabrics since clear_collective_order(): over steps and whatever lies between them.
  [[nodiscard]] virtual const CollectiveOrder& collective_order() const = 0;
  virtual void clear_collective_order() = 0;
  // Ends all waits in the fabrics with PeerError. May be called from any thread.
  virtual void interrupt() = 0;
};

// The one factory of stores. Allocates everything; collective. `device` and `fabrics` must outlive the store. Weights
// start as zeros: fill optimizer_shard(unit).param of every unit, then publish(unit).
[[nodiscard]] std::unique_ptr<WeightStore> make_weight_store(const StorePlan& plan, Device& device, FabricSet& fabrics);

}  // namespace lamina
