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
  require(!shape.root || *shape.root < shape.buckets.size(), "the root is a unit of the schedule");
  require(std::ranges::all_of(shape.buckets, [](std::size_t n) { return n >= 1; }), "a unit has at least one bucket");
}

// One stage of one pass. The last stage's forward runs its backward, too.
struct Visit {
  std::size_t stage = 0, unit = 0;
  bool in_backward = false;
  bool needs_weights = true, writes_gradient = false;
  bool begins_use = false, ends_use = false;
  std::size_t first_bucket = 0, end_bucket = 0;  // these become final here
};

void mark_uses(std::vector<Visit>& visits, const ScheduleShape& shape) {
  Visit* last = nullptr;
  for (Visit& visit : visits) {
    if (!visit.needs_weights || visit.unit == shape.root) continue;
    visit.begins_use = last == nullptr || last->unit != visit.unit;
    if (last != nullptr) last->ends_use = visit.begins_use;
    last = &visit;
  }
  if (last != nullptr) last->ends_use = true;
}

// Spreads each unit's buckets evenly over the last row of visits that write its gradient.
void mark_buckets(std::vector<Visit>& visits, const ScheduleShape& shape) {
  std::vector<bool> marked(shape.buckets.size(), false);
  for (std::size_t end = visits.size(); end > 0;) {
    const std::size_t unit = visits[end - 1].unit;
    std::size_t begin = end;
    while (begin > 0 && visits[begin - 1].unit == unit && visits[begin - 1].writes_gradient) --begin;
    for (std::size_t i = begin; i < end && !marked[unit]; ++i) {
      visits[i].first_bucket = shape.buckets[unit] * (i - begin) / (end - begin);
      visits[i].end_bucket = shape.buckets[unit] * (i - begin + 1) / (end - begin);
    }
    marked[unit] = marked[unit] || begin < end;
    end = begin < end ? begin : end - 1;
  }
}

std::vector<Visit> visits_of(const ScheduleShape& shape) {
  std::vector<Visit> visits;
  const std::size_t count = shape.stages.size();
  for (std::size_t stage = 0; stage < count; ++stage) {
    visits.push_back({.stage = stage, .unit = shape.stages[stage].unit, .writes_gradient = stage + 1 == count});
  }
  for (std::size_t stage = count - 1; stage-- > 0;) {
    visits.push_back({.stage = stage,
                      .unit = shape.stages[stage].unit,
                      .in_backward = true,
                      .needs_weights = shape.stages[stage].backward_needs_weights,
                      .writes_gradient = true});
  }
  mark_uses(visits, shape);
  mark_buckets(visits, shape);
  return visits;
}

class Builder {
 public:
  explicit Builder(const ScheduleShape& shape)
      : shape_(shape),
        visits_(visits_of(shape)),
        last_use_end_(shape.buckets.size(), nothing),
        full_(shape.buckets.size(), nothing),
        slots_(shape.gradient_slots) {
    for (const Visit& visit : visits_) {
      if (visit.begins_use) uses_.push_back(visit.unit);
    }
  }

  std::vector<Operation> build() {
    if (shape_.root) full_[*shape_.root] = add_gather(*shape_.root, visits_.front(), {});
    for (const Visit& visit : visits_) {
      if (visit.begins_use) begin_use(visit);
      std::size_t gathered = visit.needs_weights ? full_[visit.unit] : nothing;
      if (!visit.in_backward) {
        add({.kind = OperationKind::forward, .stream = StreamKind::compute, .unit = visit.unit, .stage = visit.stage},
            {gathered});
        gathered = nothing;  // waited for
      }
      if (visit.writes_gradient) add_backward(visit, gathered);
      if (visit.ends_use) end_use(visit);
      if (visit.writes_gradient) add_reductions(visit);
    }
    if (shape_.root) add_release(*shape_.root, visits_.back());
    return std::move(operations_);
  }

 private:
  struct GradientSlot {
    std::size_t unit = nothing;     // whose gradient lies here
    std::size_t reduced = nothing;  // the operation that emptied it last
  };

  std::size_t add(Operation operation, std::initializer_list<std::size_t> waits) {
    for (const std::size_t wait : waits) {
      if (wait != nothing) operation.waits.push_back(wait);
    }
    if (!shape_.overlap && !operations_.empty()) operation.waits.push_back(operations_.size() - 1);
    operations_.push_back(std::move(operation));
    return operations_.size() - 1;
  }

  std::size_t add_gather(std::size_t unit, const Visit& first, std::initializer_list<std::size_t> waits) {
    return add({.kind = OperationKind::gather,
                .stream = StreamKind::gather,
                .unit = unit,
                .stage = first.stage,
                .in_backward = first.in_backward},
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
  // the compute stream as far as the slots allow.
  void begin_use(const Visit& visit) {
    if (full_[visit.unit] != nothing) return;
    const std::size_t slots = shape_.prefetch + 1, index = use_ends_.size();
    full_[visit.unit] =
        add_gather(visit.unit, visit, {index >= slots ? use_ends_[index - slots] : nothing, last_use_end_[visit.unit]});
  }

  void end_use(const Visit& visit) {
    const auto later = uses_.begin() + static_cast<std::ptrdiff_t>(use_ends_.size()) + 1;
    const bool used_later = std::find(later, uses_.end(), visit.unit) != uses_.end();
    std::size_t end = operations_.size() - 1;
    if (!shape_.keep_full || !used_later) {
      end = add_release(visit.unit, visit);
      full_[visit.unit] = nothing;
    }
    use_ends_.push_back(end);
    last_use_end_[visit.unit] = end;
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

  void add_backward(const Visit& visit, std::size_t gathered) {
    const std::size_t parts = std::max<std::size_t>(1, visit.end_bucket - visit.first_bucket);
    const std::size_t slot_free = open_gradient(visit.unit);
    first_part_ = operations_.size();
    for (std::size_t part = 0; part < parts; ++part) {
      add({.kind = OperationKind::backward,
           .stream = StreamKind::compute,
           .unit = visit.unit,
           .stage = visit.stage,
           .in_backward = true,
           .part = part,
           .parts = parts},
          {part == 0 ? gathered : nothing, part == 0 ? slot_free : nothing});
    }
  }

  // Of the buckets that the newest backward made final.
  void add_reductions(const Visit& visit) {
    const std::size_t buckets = shape_.buckets[visit.unit];
    for (std::size_t bucket = visit.first_bucket; bucket < visit.end_bucket; ++bucket) {
      const std::size_t reduced = add({.kind = OperationKind::reduce,
                                       .stream = StreamKind::reduce,
                                       .unit = visit.unit,
                                       .stage = visit.stage,
                                       .in_backward = true,
                                       .part = bucket,
                                       .parts = buckets},
                                      {first_part_ + bucket - visit.first_bucket});
      if (bucket + 1 < buckets) continue;
      for (GradientSlot& slot : slots_) {
        if (slot.unit == visit.unit) slot = {nothing, reduced};
      }
    }
  }

  const ScheduleShape& shape_;
  std::vector<Visit> visits_;
  std::vector<std::size_t> uses_;  // units of the uses, in order
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
