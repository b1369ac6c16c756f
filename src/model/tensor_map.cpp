#include "tensor_map.hpp"

#include <algorithm>
#include <iterator>

#include <lamina/base/check.hpp>

namespace lamina {

std::vector<NamedTensor> in_flat_order(std::vector<NamedTensor> tensors) {
  std::ranges::sort(tensors, {}, &NamedTensor::role);
  const auto twice = std::ranges::adjacent_find(tensors, {}, &NamedTensor::role);
  require(twice == tensors.end(), "a unit holds each role once");
  return tensors;
}

std::vector<NamedTensor> head_unit_tensors(const ModelConfig& config) {
  const Family& family = family_of(config);
  std::vector<NamedTensor> tensors = family.head(config);
  if (config.tied_head) std::ranges::move(family.embedding(config), std::back_inserter(tensors));
  return in_flat_order(std::move(tensors));
}

std::vector<NamedTensor> embedding_unit_tensors(const ModelConfig& config) {
  return config.tied_head ? head_unit_tensors(config) : in_flat_order(family_of(config).embedding(config));
}

std::vector<NamedTensor> block_unit_tensors(const ModelConfig& config, std::int64_t layer) {
  std::vector<NamedTensor> tensors = in_flat_order(family_of(config).block(config, layer));
  for (NamedTensor& tensor : tensors) tensor.spec.block_matrix = tensor.spec.shape.size() == 2;
  return tensors;
}

TensorMap::TensorMap(const std::vector<NamedTensor>& tensors) {
  std::int64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::int64_t elements = tensor.spec.elements();
    places_[static_cast<std::size_t>(tensor.role)] = {offset, elements};
    offset += elements;
  }
}

void TensorMap::check_extent(Role first, Role last, std::int64_t elements) const {
  const Place& end = at(last);
  require(end.offset + end.elements - at(first).offset == elements, "fused tensors lie one after another");
}

}  // namespace lamina
