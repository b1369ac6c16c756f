// Changes of a schedule that keep its places right. All throw std::logic_error when there is nothing to change: a
// mutation must mutate.
#pragma once

#include <functional>
#include <vector>

#include <lamina/schedule/step_schedule.hpp>

namespace lamina::test {

using Schedule = std::vector<Operation>;
using Pick = std::function<bool(const Operation&)>;

[[nodiscard]] inline Pick of_kind(OperationKind kind) {
  return [kind](const Operation& operation) { return operation.kind == kind; };
}

// Those of `who` no longer wait for those of `whom`.
void drop_waits(Schedule& schedule, const Pick& who, const Pick& whom);
// Nobody waits for what was removed.
void remove_operations(Schedule& schedule, const Pick& which);
// Puts `operations` before `place`; their own waits are for places before it.
void insert_operations(Schedule& schedule, std::size_t place, const Schedule& operations);
// Moves the operation at `from` to before that at `to`; waits that would then be for later operations are dropped.
void move_operation(Schedule& schedule, std::size_t from, std::size_t to);
// The first place from `begin` on.
[[nodiscard]] std::size_t find_operation(const Schedule& schedule, const Pick& which, std::size_t begin = 0);

}  // namespace lamina::test
