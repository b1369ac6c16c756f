#include "exchange.hpp"
#include "reduction.hpp"
#include "slot_memory.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <lamina/base/check.hpp>
#include <lamina/comm/mpi_fabric.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr int gather_tag = 1;
constexpr std::size_t most_message = std::size_t{1} << 28;  // floats: counts in MPI are ints

class MpiFabric final : public Fabric {
 public:
  MpiFabric(const mpi::Communicator& world, const Topology& topology, SumOrder order)
      : world_(world.duplicate()),
        topology_(topology),
        node_(world_.split(topology_.node(), topology_.rank())),
        routes_(make_routes(topology_)),
        reduction_(world_, topology_, order) {
    rules_.deadline = world_.deadline();
    rules_.progress = [this] { return progress(); };
    rules_.who = [this] { return fmt::format("rank {} on {}", topology_.rank(), topology_.host_of(topology_.rank())); };
  }

  [[nodiscard]] std::string_view name() const override { return "mpi"; }
  [[nodiscard]] const Topology& topology() const override { return topology_; }

  void allocate(const SlotPlan& plan) override {
    require(!memory_, "MpiFabric: slots are allocated once");
    require_shared_memory(world_, topology_, plan);
    memory_.emplace(node_, plan);
    world_.agree([&] { memory_->populate(); }, "the slots of all nodes");
    reduction_.allocate(largest_block(plan));
    plan_ = plan;
    gathers_.resize(static_cast<std::size_t>(plan.parameter_slots));
    reductions_.resize(static_cast<std::size_t>(plan.gradient_slots));
  }

  void gather_start(int slot, std::span<const float> own_block) override {
    Gather& gather = gathers_.at(static_cast<std::size_t>(slot));
    require(!gather.running, "MpiFabric: gather_start on a slot in use");
    wait_for(memory_->parameter_counters(slot).released, gather.uses * local_size(), rules_,
             "the release of a parameter slot");
    gather.running = true;
    ++gather.uses;
    gather.block_elements = own_block.size();
    std::memcpy(block_in_slot(slot, topology_.rank(), own_block.size()), own_block.data(), own_block.size_bytes());
    const std::span<const float> shared_block(block_in_slot(slot, topology_.rank(), own_block.size()),
                                              own_block.size());
    post_rail_messages(slot, shared_block, gather);
    if (gather.messages.empty()) memory_->parameter_counters(slot).arrived.add_one();
  }

  [[nodiscard]] std::span<const float> gather_finish(int slot) override {
    Gather& gather = gathers_.at(static_cast<std::size_t>(slot));
    require(gather.running, "MpiFabric: gather_finish without gather_start");
    if (!gather.messages.empty()) {
      world_.wait_all(gather.messages, "a unit's blocks from other nodes");
      gather.messages.clear();
      memory_->parameter_counters(slot).arrived.add_one();
    }
    wait_for(memory_->parameter_counters(slot).arrived, gather.uses * local_size(), rules_,
             "a unit's blocks from this node");
    return {memory_->parameter(slot), gather.block_elements * static_cast<std::size_t>(topology_.world_size())};
  }

  void release(int slot) override {
    Gather& gather = gathers_.at(static_cast<std::size_t>(slot));
    require(gather.running && gather.messages.empty(), "MpiFabric: release of a slot that is not full");
    gather.running = false;
    memory_->parameter_counters(slot).released.add_one();
  }

  [[nodiscard]] std::span<float> gradient(int slot) override {
    const std::uint32_t uses = reductions_.at(static_cast<std::size_t>(slot));
    wait_for(memory_->gradient_counters(slot).reduced, uses * local_size(), rules_,
             "the last reduction of a gradient slot");
    return {memory_->gradient(topology_.local_rank(), slot), static_cast<std::size_t>(plan_.slot_elements)};
  }

  void reduce_scatter(int slot, std::span<float> accumulator) override {
    std::uint32_t& uses = reductions_.at(static_cast<std::size_t>(slot));
    ++uses;
    GradientCounters& counters = memory_->gradient_counters(slot);
    counters.written.add_one();
    wait_for(counters.written, uses * local_size(), rules_, "the gradients of this node");
    std::vector<const float*> slots;
    for (int local = 0; local < topology_.local_size(); ++local) slots.push_back(memory_->gradient(local, slot));
    reduction_.run(slots, accumulator);
    counters.reduced.add_one();
  }

  void exchange(std::span<const FloatSend> sends, std::span<const FloatReceive> receives) override {
    exchange_floats_sent_ += exchange_floats(world_, topology_, sends, receives);
  }

  [[nodiscard]] std::uint64_t floats_sent() const override {
    return gather_floats_sent_ + exchange_floats_sent_ + reduction_.floats_sent();
  }

 private:
  struct Gather {
    bool running = false;
    std::uint32_t uses = 0;
    std::size_t block_elements = 0;
    std::vector<mpi::Request> messages;
  };

  [[nodiscard]] std::int64_t largest_block(const SlotPlan& plan) const {
    return plan.slot_elements / topology_.world_size();
  }
  [[nodiscard]] std::uint32_t local_size() const { return static_cast<std::uint32_t>(topology_.local_size()); }

  [[nodiscard]] float* block_in_slot(int slot, int owner, std::size_t block_elements) const {
    return memory_->parameter(slot) + static_cast<std::size_t>(topology_.block_of(owner)) * block_elements;
  }

  void post_rail_messages(int slot, std::span<const float> own_block, Gather& gather) {
    for (std::size_t begin = 0; begin < own_block.size(); begin += most_message) {
      const std::size_t count = std::min(most_message, own_block.size() - begin);
      for (const int ward : routes_.wards) {
        float* target = block_in_slot(slot, ward, own_block.size()) + begin;
        gather.messages.push_back(world_.receive({target, count}, ward, gather_tag));
      }
      for (const int partner : routes_.partners) {
        gather.messages.push_back(world_.send(own_block.subspan(begin, count), partner, gather_tag));
        gather_floats_sent_ += count;
      }
    }
  }

  // MPI moves messages only inside its calls: whoever sleeps on a counter looks after running gathers meanwhile.
  bool progress() {
    bool outstanding = false;
    for (Gather& gather : gathers_) {
      for (mpi::Request& message : gather.messages) outstanding |= !message.test();
    }
    return outstanding;
  }

  mpi::Communicator world_;
  Topology topology_;
  mpi::Communicator node_;
  Routes routes_;
  Reduction reduction_;
  SlotPlan plan_;
  WaitRules rules_;
  std::optional<SlotMemory> memory_;
  std::vector<Gather> gathers_;
  std::vector<std::uint32_t> reductions_;  // uses of each gradient slot
  std::uint64_t gather_floats_sent_ = 0, exchange_floats_sent_ = 0;
};

}  // namespace

std::unique_ptr<Fabric> make_mpi_fabric(const mpi::Communicator& world, const Topology& topology, SumOrder order) {
  return std::make_unique<MpiFabric>(world, topology, order);
}

}  // namespace lamina
