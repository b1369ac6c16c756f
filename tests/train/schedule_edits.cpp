#include "train/schedule_edits.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace lamina::test {

namespace {

constexpr std::size_t gone = static_cast<std::size_t>(-1);

void require_change(bool changed) {
  if (!changed) throw std::logic_error("this schedule has nothing for the mutation to change");
}

// Gives the operations new places: new_place[old place], or gone.
void renumber_waits(Schedule& schedule, const std::vector<std::size_t>& new_place) {
  for (Operation& operation : schedule) {
    for (std::size_t& wait : operation.waits) wait = new_place[wait];
    std::erase(operation.waits, gone);
  }
}

}  // namespace

void drop_waits(Schedule& schedule, const Pick& who, const Pick& whom) {
  std::size_t dropped = 0;
  for (Operation& operation : schedule) {
    if (!who(operation)) continue;
    dropped += std::erase_if(operation.waits, [&](std::size_t wait) { return whom(schedule[wait]); });
  }
  require_change(dropped > 0);
}

void remove_operations(Schedule& schedule, const Pick& which) {
  std::vector<std::size_t> new_place;
  std::size_t next = 0;
  for (const Operation& operation : schedule) new_place.push_back(which(operation) ? gone : next++);
  require_change(next < schedule.size());
  std::erase_if(schedule, which);
  renumber_waits(schedule, new_place);
}

void insert_operations(Schedule& schedule, std::size_t place, const Schedule& operations) {
  require_change(!operations.empty());
  std::vector<std::size_t> new_place(schedule.size());
  for (std::size_t old = 0; old < schedule.size(); ++old) new_place[old] = old < place ? old : old + operations.size();
  renumber_waits(schedule, new_place);
  schedule.insert(schedule.begin() + static_cast<std::ptrdiff_t>(place), operations.begin(), operations.end());
}

void move_operation(Schedule& schedule, std::size_t from, std::size_t to) {
  std::vector<std::size_t> order(schedule.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(from));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(from < to ? to - 1 : to), from);
  Schedule moved;
  std::vector<std::size_t> new_place(schedule.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    new_place[order[place]] = place;
    moved.push_back(schedule[order[place]]);
  }
  require_change(new_place[from] != from);
  renumber_waits(moved, new_place);
  for (std::size_t place = 0; place < moved.size(); ++place)
    std::erase_if(moved[place].waits, [place](std::size_t wait) { return wait >= place; });
  schedule = std::move(moved);
}

std::size_t find_operation(const Schedule& schedule, const Pick& which, std::size_t begin) {
  const auto found = std::find_if(schedule.begin() + static_cast<std::ptrdiff_t>(begin), schedule.end(), which);
  require_change(found != schedule.end());
  return static_cast<std::size_t>(found - schedule.begin());
}

}  // namespace lamina::test
