#include "visits.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/schedule/step_schedule.hpp>

namespace lamina {

namespace {

constexpr std::size_t nothing = std::numeric_limits<std::size_t>::max();
constexpr std::size_t batches_at_once = 2;

void check_shape(const ScheduleShape& shape) {
  require(!shape.stages.empty(), "a schedule has at least one stage");
  require(shape.gradient_slots >= 1 && shape.micro_steps >= 1, "a schedule has a gradient slot and a micro-step");
  for (const ScheduledStage& stage : shape.stages) {
    require(stage.unit < shape.units.size(), "every unit of a stage is one of the schedule's");
    require(stage.offset >= 0, "a stage lies inside its unit");
  }
  require(!shape.root || *shape.root < shape.units.size(), "the root is a unit of the schedule");
  require(std::ranges::all_of(shape.units, [](const ScheduledUnit& u) { return u.buckets >= 1 && u.elements >= 1; }),
          "a unit has at least one element and one bucket");
}

std::size_t rotating_slots(const ScheduleShape& shape) {
  return (shape.gradients ? std::max(shape.prefetch, shape.prefetch_backward) : shape.prefetch) + 1;
}

class Builder {
 public:
  explicit Builder(const ScheduleShape& shape)
      : shape_(shape),
        visits_(visits_of(shape)),
        last_use_end_(shape.units.size(), nothing),
        full_(shape.units.size(), nothing),
        gradients_(shape.gradient_slots) {
    for (const Visit& visit : visits_) {
      if (visit.begins_use) uses_.push_back(visit.unit);
    }
  }

  std::vector<Operation> build() {
    if (shape_.root) full_[*shape_.root] = add_gather(*shape_.root, visits_.front(), root_slot(), {});
    for (; micro_step_ < shape_.micro_steps; ++micro_step_) add_micro_step();
    if (shape_.root) add_release(*shape_.root, visits_.back());
    return std::move(operations_);
  }

 private:
  struct GradientSlot {
    std::size_t unit = nothing;     // whose gradient lies here
    std::size_t reduced = nothing;  // the operation that emptied it last
  };

  [[nodiscard]] bool last_micro_step() const { return micro_step_ + 1 == shape_.micro_steps; }
  [[nodiscard]] std::size_t root_slot() const { return shape_.keep_full ? *shape_.root : parameter_slots(shape_) - 1; }

  void add_micro_step() {
    std::size_t loaded = nothing;
    if (shape_.load) {
      loaded = add({.kind = OperationKind::load, .stream = StreamKind::copy},
                   {micro_step_ >= batches_at_once ? ends_[micro_step_ - batches_at_once] : nothing});
    }
    for (const Visit& visit : visits_) {
      if (visit.begins_use) begin_use(visit);
      std::size_t gathered = visit.needs_weights ? full_[visit.unit] : nothing;
      if (!visit.in_backward) {
        add({.kind = OperationKind::forward, .stream = StreamKind::compute, .unit = visit.unit, .stage = visit.stage},
            {std::exchange(loaded, nothing), std::exchange(gathered, nothing)});
      }
      if (visit.writes_gradient) add_backward(visit, gathered);
      const std::size_t first_part = first_part_;
      if (visit.ends_use) end_use(visit);
      if (visit.writes_gradient) add_reductions(visit, first_part);
      if (&visit == &visits_.back()) ends_.push_back(last_compute_);
    }
  }

  std::size_t add(Operation operation, std::initializer_list<std::size_t> waits) {
    for (const std::size_t wait : waits) {
      if (wait != nothing) operation.waits.push_back(wait);
    }
    if (!shape_.overlap && !operations_.empty()) operation.waits.push_back(operations_.size() - 1);
    operation.micro_step = micro_step_;
    if (operation.stream == StreamKind::compute) last_compute_ = operations_.size();
    operations_.push_back(std::move(operation));
    return operations_.size() - 1;
  }

  std::size_t add_gather(std::size_t unit, const Visit& first, std::size_t slot,
                         std::initializer_list<std::size_t> waits) {
    return add({.kind = OperationKind::gather,
                .stream = StreamKind::gather,
                .unit = unit,
                .stage = first.stage,
                .in_backward = first.in_backward,
                .slot = slot},
               waits);
  }

  std::size_t add_release(std::size_t unit, const Visit& last) {
    return add({.kind = OperationKind::release,
                .stream = StreamKind::compute,
                .unit = unit,
                .stage = last.stage,
                .in_backward = last.in_backward},
               {});
  }

  // Makes the unit of the next use full. The gather stands beside its use in the list; the gather stream runs ahead of
  // the compute stream as far as the prefetch allows.
  void begin_use(const Visit& visit) {
    if (full_[visit.unit] != nothing) return;
    const std::size_t index = use_ends_.size();
    const std::size_t ahead = (visit.in_backward ? shape_.prefetch_backward : shape_.prefetch) + 1;
    const std::size_t slot = shape_.keep_full ? visit.unit : index % rotating_slots(shape_);
    full_[visit.unit] = add_gather(visit.unit, visit, slot,
                                   {index >= ahead ? use_ends_[index - ahead] : nothing, last_use_end_[visit.unit]});
  }

  [[nodiscard]] bool used_later(std::size_t unit) const {
    if (!last_micro_step()) return true;
    const std::size_t use = use_ends_.size() - micro_step_ * uses_.size();
    return std::find(uses_.begin() + static_cast<std::ptrdiff_t>(use) + 1, uses_.end(), unit) != uses_.end();
  }

  void end_use(const Visit& visit) {
    std::size_t end = operations_.size() - 1;
    if (!shape_.keep_full || !used_later(visit.unit)) {
      end = add_release(visit.unit, visit);
      full_[visit.unit] = nothing;
    }
    use_ends_.push_back(end);
    last_use_end_[visit.unit] = end;
  }

  // The slot for the unit's gradient: the one that was emptied first.
  std::size_t open_gradient(std::size_t unit) {
    const auto held = std::ranges::find(gradients_, unit, &GradientSlot::unit);
    if (held != gradients_.end()) return static_cast<std::size_t>(held - gradients_.begin());
    std::size_t chosen = nothing;
    for (std::size_t slot = 0; slot < gradients_.size(); ++slot) {
      if (gradients_[slot].unit != nothing) continue;
      const bool earlier = chosen == nothing || gradients_[slot].reduced + 1 < gradients_[chosen].reduced + 1;
      if (earlier) chosen = slot;  // `nothing` + 1 is 0
    }
    require(chosen != nothing, "a schedule with more open gradients than gradient slots");
    gradients_[chosen].unit = unit;
    return chosen;
  }

  void add_backward(const Visit& visit, std::size_t gathered) {
    const std::size_t parts = std::max<std::size_t>(1, visit.end_bucket - visit.first_bucket);
    const bool opens = std::ranges::find(gradients_, visit.unit, &GradientSlot::unit) == gradients_.end();
    const std::size_t slot = open_gradient(visit.unit);
    const std::size_t slot_free = opens ? gradients_[slot].reduced : nothing;
    first_part_ = operations_.size();
    for (std::size_t part = 0; part < parts; ++part) {
      add({.kind = OperationKind::backward,
           .stream = StreamKind::compute,
           .unit = visit.unit,
           .stage = visit.stage,
           .in_backward = true,
           .part = part,
           .parts = parts,
           .slot = slot,
           .first_bucket = visit.first_bucket},
          {part == 0 ? gathered : nothing, part == 0 ? slot_free : nothing});
    }
  }

  // Of the buckets that the backward beginning at `first_part` made final.
  void add_reductions(const Visit& visit, std::size_t first_part) {
    const std::size_t buckets = shape_.units[visit.unit].buckets;
    const bool reduces = last_micro_step() || !shape_.reduce_last_only;
    for (std::size_t bucket = visit.first_bucket; bucket < visit.end_bucket; ++bucket) {
      const auto slot = std::ranges::find(gradients_, visit.unit, &GradientSlot::unit);
      const bool completes = bucket + 1 == buckets;
      const std::size_t reduced = add({.kind = reduces ? OperationKind::reduce : OperationKind::accumulate,
                                       .stream = StreamKind::reduce,
                                       .unit = visit.unit,
                                       .stage = visit.stage,
                                       .in_backward = true,
                                       .part = bucket,
                                       .parts = buckets,
                                       .slot = static_cast<std::size_t>(slot - gradients_.begin()),
                                       .completes = completes},
                                      {first_part + bucket - visit.first_bucket});
      if (completes) *slot = {nothing, reduced};
    }
    if (!shape_.finish || !last_micro_step() || visit.end_bucket != buckets) return;
    add({.kind = OperationKind::finish, .stream = StreamKind::reduce, .unit = visit.unit, .in_backward = true}, {});
  }

  const ScheduleShape& shape_;
  std::vector<Visit> visits_;
  std::vector<std::size_t> uses_;  // units of the uses of a micro-step, in order
  std::vector<Operation> operations_;
  std::size_t micro_step_ = 0;
  std::vector<std::size_t> ends_;          // by micro-step: its last computation
  std::vector<std::size_t> use_ends_;      // by use: the operation whose end frees its slot
  std::vector<std::size_t> last_use_end_;  // by unit
  std::vector<std::size_t> full_;          // by unit: the gather that made it full
  std::vector<GradientSlot> gradients_;
  std::size_t first_part_ = 0;  // of the newest backward
  std::size_t last_compute_ = nothing;
};

}  // namespace

FlatRange bucket_range(const ScheduledUnit& unit, std::size_t bucket) {
  const auto count = static_cast<std::int64_t>(unit.buckets), index = static_cast<std::int64_t>(bucket);
  const std::int64_t size = (unit.elements + count - 1) / count;
  return {std::max<std::int64_t>(0, unit.elements - (index + 1) * size),
          std::max<std::int64_t>(0, unit.elements - index * size)};
}

std::string_view name_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::load:
      return "load";
    case OperationKind::gather:
      return "gather";
    case OperationKind::forward:
      return "forward";
    case OperationKind::backward:
      return "backward";
    case OperationKind::release:
      return "release";
    case OperationKind::accumulate:
      return "accumulate";
    case OperationKind::reduce:
      return "reduce";
    case OperationKind::finish:
      return "finish";
  }
  return "?";
}

std::string_view name_of(StreamKind stream) {
  switch (stream) {
    case StreamKind::compute:
      return "compute";
    case StreamKind::gather:
      return "gather";
    case StreamKind::reduce:
      return "reduce";
    case StreamKind::copy:
      return "copy";
  }
  return "?";
}

std::size_t parameter_slots(const ScheduleShape& shape) {
  return shape.keep_full ? shape.units.size() : rotating_slots(shape) + (shape.root ? 1 : 0);
}

std::vector<Operation> step_schedule(const ScheduleShape& shape) {
  check_shape(shape);
  return Builder(shape).build();
}

}  // namespace lamina
