// What a unit is made of: the names and shapes of the tensors that are gathered, computed, reduced and stored together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lamina {

struct TensorSpec {
  std::string name;                  // the model's own (Hugging Face) name
  std::vector<std::int64_t> shape;   // may hold zeros; rank 0 means one element
  bool decay = true;                 // weight decay applies (matrices yes, norms and biases no)
  std::vector<std::string> aliases;  // further names of the same tensor (tied embeddings)
  bool block_matrix = false;         // a weight matrix of a decoder block: what Muon orthogonalises; in no manifest

  [[nodiscard]] std::int64_t elements() const;
  bool operator==(const TensorSpec&) const = default;
};

struct UnitSpec {
  std::string name;  // "embedding", "layers.0", ..., "head"
  std::vector<TensorSpec> tensors;

  [[nodiscard]] std::int64_t elements() const;
  bool operator==(const UnitSpec&) const = default;
};

}  // namespace lamina
