// The communication seam: how units are gathered and gradients reduced between the ranks of a run.
//
// A fabric owns the slots. A parameter slot holds one gathered unit; inside a node it may exist once for all ranks. A
// gradient slot holds this rank's gradient of one unit. All slots are allocated once, by allocate(); nothing is
// allocated later. Every rank calls the same functions in the same order with the same slots and sizes. Rank r owns
// block Topology::block_of(r) of every unit. Waits sleep and end in PeerError after the communicator's deadline.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <lamina/topology/topology.hpp>

namespace lamina {

// In which order the gradients of a micro-step are added (DESIGN section 4).
enum class SumOrder {
  rank,         // ((acc + g0) + g1) + ... over world ranks: the same bits for every world size
  hierarchical  // acc + (sum of node 0) + (sum of node 1) + ...: less traffic between nodes, same bits for one topology
                // only
};

struct SlotPlan {
  std::int64_t slot_elements = 0;  // of the largest unit, padded
  int parameter_slots = 0;
  int gradient_slots = 0;
};

// One message between two ranks of a fabric, numbered as in its topology.
struct FloatSend {
  int to = 0;
  std::span<const float> data;
};
struct FloatReceive {
  int from = 0;
  std::span<float> data;
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual const Topology& topology() const = 0;

  // Collective. Throws UsageError, on every rank alike, naming the computed need when there is not enough room.
  virtual void allocate(const SlotPlan& plan) = 0;

  // Parameters and gradients have communicators of their own: the two groups of functions below may be called from two
  // threads at the same time.

  // Fills `slot` with the blocks of all ranks and waits until it is full; the content stays valid until release.
  // `own_block` may be reused on return. Waits until the slot's last unit was released by all ranks that share it.
  [[nodiscard]] virtual std::span<const float> gather(int slot, std::span<const float> own_block) = 0;
  // May be called from any thread.
  virtual void release(int slot) = 0;

  // This rank's gradient slot, to be overwritten: waits until all ranks have read its last content.
  [[nodiscard]] virtual std::span<float> gradient(int slot) = 0;
  // accumulator[own block] += the part of every rank's gradient slot that lies in [begin, end) of the unit's flat
  // buffer, in the order that the fabric was made with. `accumulator` holds one block, all of it.
  virtual void reduce_scatter(int slot, std::int64_t begin, std::int64_t end, std::span<float> accumulator) = 0;

  // Makes every wait in this fabric, present and future, throw PeerError soon: a rank that has failed on one thread
  // gets its other threads back. May be called from any thread.
  virtual void interrupt() = 0;

  // Messages between two ranks, all of them at the same time; returns when all are over. Not at the same time as
  // gather(). Never with oneself. What one rank sends another arrives in
  // the order in which both list it, in messages of the same sizes. A rank without messages need not call. The memory
  // of a receive overlaps with no other of the call.
  virtual void exchange(std::span<const FloatSend> sends, std::span<const FloatReceive> receives) = 0;

  // Floats this rank has sent to other nodes so far.
  [[nodiscard]] virtual std::uint64_t floats_sent() const = 0;
};

}  // namespace lamina
