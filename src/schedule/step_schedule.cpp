#include <algorithm>
#include <limits>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/schedule/step_schedule.hpp>

namespace lamina {

namespace {

constexpr std::size_t nothing = std::numeric_limits<std::size_t>::max();

void check_shape(const ScheduleShape& shape) {
  require(!shape.stages.empty(), "a schedule has at least one stage");
  require(shape.gradient_slots >= 1, "a schedule has at least one gradient slot");
  for (const ScheduledStage& stage : shape.stages) {
    require(stage.unit < shape.buckets.size(), "every unit of a schedule has a number of buckets");
  }
  require(std::ranges::all_of(shape.buckets, [](std::size_t n) { return n >= 1; }), "a unit has at least one bucket");
}

// One use of a unit's gathered weights.
struct Use {
  std::size_t stage = 0;
  bool in_backward = false;
};

// The forward's, then the backward's. The last stage's backward belongs to its forward's use.
std::vector<Use> uses_of(const ScheduleShape& shape) {
  std::vector<Use> uses;
  for (std::size_t stage = 0; stage < shape.stages.size(); ++stage) uses.push_back({stage, false});
  for (std::size_t stage = shape.stages.size() - 1; stage-- > 0;) {
    if (shape.stages[stage].backward_needs_weights) uses.push_back({stage, true});
  }
  return uses;
}

class Builder {
 public:
  explicit Builder(const ScheduleShape& shape)
      : shape_(shape),
        uses_(uses_of(shape)),
        last_use_end_(shape.buckets.size(), nothing),
        full_(shape.buckets.size(), nothing),
        slots_(shape.gradient_slots) {}

  std::vector<Operation> build() {
    const std::size_t last = shape_.stages.size() - 1;
    for (std::size_t stage = 0; stage <= last; ++stage) {
      const std::size_t gathered = begin_use();
      add({.kind = OperationKind::forward, .stream = StreamKind::compute, .stage = stage}, {gathered});
      if (stage == last) add_backward(last, gathered);
      end_use();
      if (stage == last) add_reductions(last);
    }
    for (std::size_t stage = last; stage-- > 0;) {
      const bool gathers = shape_.stages[stage].backward_needs_weights;
      add_backward(stage, gathers ? begin_use() : nothing);
      if (gathers) end_use();
      add_reductions(stage);
    }
    return std::move(operations_);
  }

 private:
  struct GradientSlot {
    std::size_t unit = nothing;     // whose gradient lies here
    std::size_t reduced = nothing;  // the operation that emptied it last
  };

  std::size_t add(Operation operation, std::initializer_list<std::size_t> waits) {
    operation.unit = shape_.stages[operation.stage].unit;
    for (const std::size_t wait : waits) {
      if (wait != nothing) operation.waits.push_back(wait);
    }
    if (!shape_.overlap && !operations_.empty()) operation.waits.push_back(operations_.size() - 1);
    operations_.push_back(std::move(operation));
    return operations_.size() - 1;
  }

  [[nodiscard]] std::size_t unit_of(const Use& use) const { return shape_.stages[use.stage].unit; }

  // The gather that the next use waits for. It stands beside its use in the list; the gather stream runs ahead of the
  // compute stream as far as the slots allow.
  std::size_t begin_use() {
    const Use& use = uses_[use_ends_.size()];
    const std::size_t unit = unit_of(use);
    if (full_[unit] != nothing) return full_[unit];
    const std::size_t slots = shape_.prefetch + 1, index = use_ends_.size();
    full_[unit] = add({.kind = OperationKind::gather,
                       .stream = StreamKind::gather,
                       .stage = use.stage,
                       .in_backward = use.in_backward},
                      {index >= slots ? use_ends_[index - slots] : nothing, last_use_end_[unit]});
    return full_[unit];
  }

  void end_use() {
    const std::size_t index = use_ends_.size();
    const Use& use = uses_[index];
    const std::size_t unit = unit_of(use);
    const bool used_later = std::any_of(uses_.begin() + static_cast<std::ptrdiff_t>(index) + 1, uses_.end(),
                                        [&](const Use& later) { return unit_of(later) == unit; });
    std::size_t end = operations_.size() - 1;
    if (!shape_.keep_full || !used_later) {
      end = add({.kind = OperationKind::release,
                 .stream = StreamKind::compute,
                 .stage = use.stage,
                 .in_backward = use.in_backward},
                {});
      full_[unit] = nothing;
    }
    use_ends_.push_back(end);
    last_use_end_[unit] = end;
  }

  // Backwards run from the last stage to the first.
  [[nodiscard]] bool completes_gradient(std::size_t stage) const {
    return std::none_of(shape_.stages.begin(), shape_.stages.begin() + static_cast<std::ptrdiff_t>(stage),
                        [&](const ScheduledStage& other) { return other.unit == shape_.stages[stage].unit; });
  }

  // The operation that must be over before the unit's gradient may be written: the slot that was emptied first is
  // taken.
  std::size_t open_gradient(std::size_t unit) {
    if (std::ranges::any_of(slots_, [&](const GradientSlot& slot) { return slot.unit == unit; })) return nothing;
    GradientSlot* chosen = nullptr;
    for (GradientSlot& slot : slots_) {
      const bool earlier = chosen == nullptr || (slot.reduced + 1 < chosen->reduced + 1);  // `nothing` + 1 is 0
      if (slot.unit == nothing && earlier) chosen = &slot;
    }
    require(chosen != nullptr, "a schedule with more open gradients than gradient slots");
    chosen->unit = unit;
    return chosen->reduced;
  }

  void add_backward(std::size_t stage, std::size_t gathered) {
    const std::size_t unit = shape_.stages[stage].unit;
    const std::size_t parts = completes_gradient(stage) ? shape_.buckets[unit] : 1;
    const std::size_t slot_free = open_gradient(unit);
    first_part_ = operations_.size();
    for (std::size_t part = 0; part < parts; ++part) {
      add({.kind = OperationKind::backward,
           .stream = StreamKind::compute,
           .stage = stage,
           .in_backward = true,
           .part = part,
           .parts = parts},
          {part == 0 ? gathered : nothing, part == 0 ? slot_free : nothing});
    }
  }

  void add_reductions(std::size_t stage) {
    if (!completes_gradient(stage)) return;
    const std::size_t unit = shape_.stages[stage].unit, parts = shape_.buckets[unit];
    std::size_t last = nothing;
    for (std::size_t part = 0; part < parts; ++part) {
      last = add({.kind = OperationKind::reduce,
                  .stream = StreamKind::reduce,
                  .stage = stage,
                  .in_backward = true,
                  .part = part,
                  .parts = parts},
                 {first_part_ + part});
    }
    for (GradientSlot& slot : slots_) {
      if (slot.unit == unit) slot = {nothing, last};
    }
  }

  const ScheduleShape& shape_;
  std::vector<Use> uses_;
  std::vector<Operation> operations_;
  std::vector<std::size_t> use_ends_;      // by use: the operation whose end frees its slot
  std::vector<std::size_t> last_use_end_;  // by unit
  std::vector<std::size_t> full_;          // by unit: the gather that made it full
  std::vector<GradientSlot> slots_;
  std::size_t first_part_ = 0;  // of the newest backward
};

}  // namespace

std::vector<Operation> micro_step_schedule(const ScheduleShape& shape) {
  check_shape(shape);
  return Builder(shape).build();
}

}  // namespace lamina
