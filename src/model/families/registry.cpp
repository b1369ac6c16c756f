#include "family.hpp"

#include <algorithm>
#include <array>

#include <lamina/base/check.hpp>

namespace lamina {

std::span<const Family> all_families() {
  static const std::array families{
      llama_family,    //
      mistral_family,  //
      qwen2_family,    //
      qwen3_family,    //
      gpt2_family,     //
  };
  return families;
}

const Family* find_family(std::string_view model_type) {
  const auto families = all_families();
  const auto found = std::ranges::find(families, model_type, &Family::model_type);
  return found == families.end() ? nullptr : &*found;
}

const Family& family_of(const ModelConfig& config) {
  const Family* family = find_family(config.family);
  require(family != nullptr, "a model config names a known family");
  return *family;
}

NamedTensor named_matrix(Role role, std::string name, std::int64_t rows, std::int64_t cols) {
  return {role, {.name = std::move(name), .shape = {rows, cols}, .decay = true, .aliases = {}}};
}

NamedTensor named_vector(Role role, std::string name, std::int64_t size) {
  return {role, {.name = std::move(name), .shape = {size}, .decay = false, .aliases = {}}};
}

}  // namespace lamina
