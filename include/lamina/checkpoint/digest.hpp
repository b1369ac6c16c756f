// Digests of a model that depend on tensor names and fp32 values only: not on world size, units, shards, files or
// stored dtype.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <lamina/checkpoint/tensor_source.hpp>

namespace lamina {

struct TensorDigest {
  std::string name;
  std::uint64_t digest = 0;  // XXH3-64 of the fp32 values, little-endian, in order
};

struct ModelDigest {
  std::vector<TensorDigest> tensors;  // sorted by name; a tied tensor once, under its own name
  std::uint64_t all = 0;              // XXH3-64 over name, zero byte, digest (little-endian) of each, in that order
};

// Streams every tensor once through a block of 4 MiB.
[[nodiscard]] ModelDigest digest_of(TensorSource& source);

// "0123456789abcdef"
[[nodiscard]] std::string hex_digest(std::uint64_t digest);

}  // namespace lamina
