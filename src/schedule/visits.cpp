#include "visits.hpp"

namespace lamina {

namespace {

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

// How many buckets lie wholly at or behind `offset`.
std::size_t buckets_behind(const ScheduledUnit& unit, std::int64_t offset) {
  std::size_t count = 0;
  while (count < unit.buckets && bucket_range(unit, count).begin >= offset) ++count;
  return count;
}

// Whether stages visited later, up to `end`, write at or behind where visit i's stage begins: a tied tensor is written
// again by the embedding.
bool written_again(const std::vector<Visit>& visits, std::size_t i, std::size_t end, const ScheduleShape& shape) {
  for (std::size_t later = i + 1; later < end; ++later) {
    if (shape.stages[visits[later].stage].offset >= shape.stages[visits[i].stage].offset) return true;
  }
  return false;
}

// Each unit's buckets become final in the last row of visits that write its gradient.
void mark_buckets(std::vector<Visit>& visits, const ScheduleShape& shape) {
  std::vector<bool> marked(shape.units.size(), false);
  for (std::size_t end = visits.size(); end > 0;) {
    const std::size_t unit = visits[end - 1].unit;
    std::size_t begin = end;
    while (begin > 0 && visits[begin - 1].unit == unit && visits[begin - 1].writes_gradient) --begin;
    std::size_t done = 0;
    for (std::size_t i = begin; i < end && !marked[unit]; ++i) {
      visits[i].first_bucket = done;
      if (i + 1 == end) {
        done = shape.units[unit].buckets;
      } else if (!written_again(visits, i, end, shape)) {
        done = buckets_behind(shape.units[unit], shape.stages[visits[i].stage].offset);
      }
      visits[i].end_bucket = done;
    }
    marked[unit] = marked[unit] || begin < end;
    end = begin < end ? begin : end - 1;
  }
}

}  // namespace

std::vector<Visit> visits_of(const ScheduleShape& shape) {
  std::vector<Visit> visits;
  const std::size_t count = shape.stages.size();
  for (std::size_t stage = 0; stage < count; ++stage) {
    visits.push_back(
        {.stage = stage, .unit = shape.stages[stage].unit, .writes_gradient = shape.gradients && stage + 1 == count});
  }
  for (std::size_t stage = count - 1; shape.gradients && stage-- > 0;) {
    visits.push_back({.stage = stage,
                      .unit = shape.stages[stage].unit,
                      .in_backward = true,
                      .needs_weights = shape.stages[stage].backward_needs_weights,
                      .writes_gradient = true});
  }
  mark_uses(visits, shape);
  if (shape.gradients) mark_buckets(visits, shape);
  return visits;
}

}  // namespace lamina
