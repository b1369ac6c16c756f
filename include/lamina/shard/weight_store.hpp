// Weights, gradients and optimizer state of a model on one rank, behind one interface for every sharding strategy.
//
// A unit is SHARDED until gather() starts to collect it (GATHERING); get() waits and hands out its flat buffer (FULL)
// until release(). Where a rank holds all weights the same calls cost nothing. Misuse (get without gather, a second
// gather, release of what is not full, a unit gathered before its last update) throws InternalError.
//
// A unit's gradient is written by the rank into gradient(), handed in with reduce(), and summed over ranks into an
// accumulator, micro-step by micro-step; finish_gradients() completes what the optimizer needs; clear_gradients()
// starts the next step. Every rank calls in the same order.
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
  std::vector<std::uint64_t> gathers, reductions;  // by unit
  int most_full_units = 0;                         // units gathering or full at the same time
  int most_gradient_slots = 0;                     // gradient slots held at the same time
};

class WeightStore {
 public:
  virtual ~WeightStore() = default;

  [[nodiscard]] virtual std::size_t unit_count() const = 0;
  [[nodiscard]] virtual const FlatLayout& layout(std::size_t unit) const = 0;

  virtual void gather(std::size_t unit) = 0;
  [[nodiscard]] virtual std::span<const float> get(std::size_t unit) = 0;
  virtual void release(std::size_t unit) = 0;
  [[nodiscard]] virtual UnitState state(std::size_t unit) const = 0;
  // How many units may be gathered ahead of the one in use.
  [[nodiscard]] virtual int prefetch() const = 0;
  // Units stay full from their first use in a micro-step to their last.
  [[nodiscard]] virtual bool keeps_full() const = 0;

  // This rank's gradient of `unit`: its slot is held from the first call to reduce(). Content is undefined at first.
  [[nodiscard]] virtual std::span<float> gradient(std::size_t unit) = 0;
  virtual void reduce(std::size_t unit) = 0;
  virtual void finish_gradients() = 0;
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
  // What this rank has asked of the fabrics since clear_gradients().
  [[nodiscard]] virtual const CollectiveOrder& collective_order() const = 0;
};

// The one factory of stores. Allocates everything; collective. `device` and `fabrics` must outlive the store. Weights
// start as zeros: fill optimizer_shard(unit).param of every unit, then publish(unit).
[[nodiscard]] std::unique_ptr<WeightStore> make_weight_store(const StorePlan& plan, Device& device, FabricSet& fabrics);

}  // namespace lamina
