#include "exchange.hpp"
#include "message_pieces.hpp"
#include "reduction.hpp"
#include "slot_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

#include <lamina/base/check.hpp>
#include <lamina/comm/mpi_fabric.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr int gather_tag = 1;

class MpiFabric final : public Fabric {
 public:
  MpiFabric(const mpi::Communicator& world, const Topology& topology, SumOrder order)
      : gather_world_(world.duplicate()),
        reduce_world_(world.duplicate()),
        topology_(topology),
        node_(gather_world_.split(topology_.node(), topology_.rank())),
        routes_(make_routes(topology_)),
        reduction_(reduce_world_, topology_, order) {
    rules_.patience = &gather_world_.patience();
    rules_.interrupted = &interrupted_;
    rules_.who = [this] { return fmt::format("rank {} on {}", topology_.rank(), topology_.host_of(topology_.rank())); };
  }

  [[nodiscard]] std::string_view name() const override { return "mpi"; }
  [[nodiscard]] const Topology& topology() const override { return topology_; }

  void allocate(const SlotPlan& plan) override {
    require(!memory_, "MpiFabric: slots are allocated once");
    require_shared_memory(gather_world_, topology_, plan);
    memory_.emplace(node_, plan);
    gather_world_.agree([&] { memory_->populate(); }, "the slots of all nodes");
    reduction_.allocate(largest_block(plan));
    plan_ = plan;
    for (int slot = 0; slot < plan.parameter_slots; ++slot) gathers_.emplace_back();
    reductions_.resize(static_cast<std::size_t>(plan.gradient_slots));
  }

  [[nodiscard]] std::span<const float> gather(int slot, std::span<const float> own_block) override {
    Gather& gather = gathers_.at(static_cast<std::size_t>(slot));
    require(!gather.full, "MpiFabric: gather into a slot in use");
    ParameterCounters& counters = memory_->parameter_counters(slot);
    wait_for(counters.released, gather.uses * local_size(), rules_, "the release of a parameter slot");
    gather.full = true;
    ++gather.uses;
    float* const shared_block = block_in_slot(slot, topology_.rank(), own_block.size());
    std::memcpy(shared_block, own_block.data(), own_block.size_bytes());
    exchange_over_rails(slot, {shared_block, own_block.size()});
    counters.arrived.add_one();
    wait_for(counters.arrived, gather.uses * local_size(), rules_, "a unit's blocks from this node");
    return {memory_->parameter(slot), own_block.size() * static_cast<std::size_t>(topology_.world_size())};
  }

  void release(int slot) override {
    Gather& gather = gathers_.at(static_cast<std::size_t>(slot));
    require(gather.full, "MpiFabric: release of a slot that is not full");
    gather.full = false;
    memory_->parameter_counters(slot).released.add_one();
  }

  [[nodiscard]] std::span<float> gradient(int slot) override {
    const std::uint32_t buckets = reductions_.at(static_cast<std::size_t>(slot));
    wait_for(memory_->gradient_counters(slot).reduced, buckets * local_size(), rules_,
             "the last reduction of a gradient slot");
    return {memory_->gradient(topology_.local_rank(), slot), static_cast<std::size_t>(plan_.slot_elements)};
  }

  void reduce_scatter(int slot, std::int64_t begin, std::int64_t end, std::span<float> accumulator) override {
    std::uint32_t& buckets = reductions_.at(static_cast<std::size_t>(slot));
    ++buckets;
    GradientCounters& counters = memory_->gradient_counters(slot);
    // A rank is at most one bucket ahead of the slowest, so the counter reaches this only when all have written.
    counters.written.add_one();
    wait_for(counters.written, buckets * local_size(), rules_, "the gradients of this node");
    std::vector<const float*> slots;
    for (int local = 0; local < topology_.local_size(); ++local) slots.push_back(memory_->gradient(local, slot));
    reduction_.run(slots, begin, end, accumulator);
    counters.reduced.add_one();
  }

  void exchange(std::span<const FloatSend> sends, std::span<const FloatReceive> receives) override {
    exchange_floats_sent_ += exchange_floats(gather_world_, topology_, sends, receives);
  }

  void interrupt() override {
    interrupted_ = true;
    gather_world_.interrupt();
    reduce_world_.interrupt();
  }

  [[nodiscard]] std::uint64_t floats_sent() const override {
    return gather_floats_sent_ + exchange_floats_sent_ + reduction_.floats_sent();
  }

 private:
  struct Gather {
    std::atomic<bool> full = false;
    std::uint32_t uses = 0;
  };

  [[nodiscard]] std::int64_t largest_block(const SlotPlan& plan) const {
    return plan.slot_elements / topology_.world_size();
  }
  [[nodiscard]] std::uint32_t local_size() const { return static_cast<std::uint32_t>(topology_.local_size()); }

  [[nodiscard]] float* block_in_slot(int slot, int owner, std::size_t block_elements) const {
    return memory_->parameter(slot) + static_cast<std::size_t>(topology_.block_of(owner)) * block_elements;
  }

  void exchange_over_rails(int slot, std::span<const float> own_block) {
    for (const int ward : routes_.wards) {
      const std::span<float> target(block_in_slot(slot, ward, own_block.size()), own_block.size());
      in_message_pieces(target,
                        [&](auto piece) { messages_.push_back(gather_world_.receive(piece, ward, gather_tag)); });
    }
    for (const int partner : routes_.partners) {
      in_message_pieces(own_block,
                        [&](auto piece) { messages_.push_back(gather_world_.send(piece, partner, gather_tag)); });
      gather_floats_sent_ += own_block.size();
    }
    gather_world_.wait_all(messages_, "a unit's blocks from other nodes");
    messages_.clear();
  }

  mpi::Communicator gather_world_, reduce_world_;
  Topology topology_;
  mpi::Communicator node_;
  Routes routes_;
  Reduction reduction_;
  SlotPlan plan_;
  WaitRules rules_;
  std::optional<SlotMemory> memory_;
  std::deque<Gather> gathers_;             // by parameter slot
  std::vector<mpi::Request> messages_;     // of the gather under way
  std::vector<std::uint32_t> reductions_;  // by gradient slot: buckets reduced
  std::atomic<bool> interrupted_ = false;
  std::uint64_t gather_floats_sent_ = 0, exchange_floats_sent_ = 0;
};

}  // namespace

std::unique_ptr<Fabric> make_mpi_fabric(const mpi::Communicator& world, const Topology& topology, SumOrder order) {
  return std::make_unique<MpiFabric>(world, topology, order);
}

}  // namespace lamina
