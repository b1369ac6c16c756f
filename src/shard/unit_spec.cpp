#include <functional>
#include <numeric>

#include <lamina/shard/unit_spec.hpp>

namespace lamina {

std::int64_t TensorSpec::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t UnitSpec::elements() const {
  std::int64_t sum = 0;
  for (const TensorSpec& tensor : tensors) sum += tensor.elements();
  return sum;
}

}  // namespace lamina
