#include "strict_names.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lamina {

namespace {

using NameMap = std::map<std::string, const TensorSpec*>;

void add_names(const TensorSpec& tensor, NameMap& names) {
  names.emplace(tensor.name, &tensor);
  for (const std::string& alias : tensor.aliases) names.emplace(alias, &tensor);
}

std::vector<std::string> absent(const NameMap& from, const NameMap& in) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : from) {
    if (!in.contains(name)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> all_names(const TensorSpec& tensor) {
  std::vector<std::string> names = tensor.aliases;
  names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string compare_common(const NameMap& wanted, const NameMap& held) {
  for (const auto& [name, tensor] : wanted) {
    const TensorSpec& other = *held.at(name);
    if (tensor->shape != other.shape) {
      return fmt::format("{} has shape {} there and {} in this model", name, shape_text(other.shape),
                         shape_text(tensor->shape));
    }
    if (all_names(*tensor) != all_names(other)) return fmt::format("{} is tied differently there", name);
  }
  return {};
}

}  // namespace

std::string join_names(std::span<const std::string> names) {
  constexpr std::size_t most = 12;
  const auto shown = names.first(std::min(most, names.size()));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string compare_tensors(std::span<const UnitSpec> units, std::span<const TensorSpec> stored) {
  NameMap wanted, held;
  for (const UnitSpec& unit : units) {
    for (const TensorSpec& tensor : unit.tensors) add_names(tensor, wanted);
  }
  for (const TensorSpec& tensor : stored) add_names(tensor, held);
  const std::vector<std::string> missing = absent(wanted, held), extra = absent(held, wanted);
  std::string text;
  if (!missing.empty()) text += "it lacks " + join_names(missing);
  if (!extra.empty())
    text += (text.empty() ? "" : ", and ") + ("it holds " + join_names(extra)) + ", which the model does not have";
  return text.empty() ? compare_common(wanted, held) : text;
}

}  // namespace lamina
