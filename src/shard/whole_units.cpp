// parallel.ignore: units that stay whole on every rank.
#include <algorithm>
#include <sstream>

#include <lamina/base/error.hpp>
#include <lamina/shard/store_plan.hpp>
#include <lamina/shard/tensor_pattern.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

std::vector<std::string> split_patterns(const std::string& text) {
  std::vector<std::string> patterns;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) {
    const std::size_t begin = word.find_first_not_of(' '), end = word.find_last_not_of(' ');
    if (begin == std::string::npos) {
      throw UsageError(one_line(fmt::format("parallel.ignore is '{}'", text), "one of its patterns is empty",
                                "write patterns of tensor names between commas"));
    }
    patterns.push_back(word.substr(begin, end - begin + 1));
  }
  return patterns;
}

StorePlan part_of(const StorePlan& plan, bool whole) {
  StorePlan part = plan;
  part.units.clear();
  part.second.clear();
  part.whole_units.clear();
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    if (plan.whole_units[unit] != whole) continue;
    part.units.push_back(plan.units[unit]);
    if (!plan.second.empty()) part.second.push_back(plan.second[unit]);
  }
  return part;
}

}  // namespace

std::vector<bool> find_whole_units(const std::string& ignore, const std::vector<UnitSpec>& units) {
  const std::vector<std::string> patterns = split_patterns(ignore);
  for (const std::string& pattern : patterns) {
    const auto matches_any = [&](const UnitSpec& unit) {
      return std::ranges::any_of(unit.tensors,
                                 [&](const TensorSpec& tensor) { return matches_pattern(pattern, tensor); });
    };
    if (std::ranges::none_of(units, matches_any)) {
      refuse_unmatched_pattern("parallel.ignore", pattern);
    }
  }
  std::vector<bool> whole;
  for (const UnitSpec& unit : units) {
    const auto matched = std::ranges::count_if(unit.tensors, [&](const TensorSpec& tensor) {
      return std::ranges::any_of(patterns,
                                 [&](const std::string& pattern) { return matches_pattern(pattern, tensor); });
    });
    if (matched != 0 && matched != std::ssize(unit.tensors)) {
      throw UsageError(one_line(fmt::format("parallel.ignore matches {} of the {} tensors of unit {}", matched,
                                            unit.tensors.size(), unit.name),
                                "a unit is sharded, or stays whole on every rank, as one",
                                "match all of its tensors or none, or choose other parallel.units"));
    }
    whole.push_back(matched != 0);
  }
  return whole;
}

bool splits_units(const StorePlan& plan) {
  return plan.shard_size > 1 && std::ranges::find(plan.whole_units, true) != plan.whole_units.end();
}

StorePlan sharded_part(const StorePlan& plan) { return part_of(plan, false); }

StorePlan whole_part(const StorePlan& plan) {
  StorePlan part = part_of(plan, true);
  part.shard_size = 1;
  part.keep_full = part.optimizer_over_world = part.defer_replicas = false;
  part.pinned_units = 0;
  return part;
}

}  // namespace lamina
