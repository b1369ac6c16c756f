#include "staging.hpp"

#include <algorithm>

#include <lamina/base/hash.hpp>
#include <lamina/checkpoint/digest.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

std::uint64_t tensor_digest(TensorSource& source, std::size_t index, std::vector<float>& staging) {
  const std::int64_t elements = source.tensors()[index].elements();
  Xxh3Stream stream;
  for (std::int64_t first = 0; first < elements; first += staging_floats) {
    const auto count = static_cast<std::size_t>(std::min(staging_floats, elements - first));
    if (staging.size() < count) staging.resize(count);
    const auto part = std::span(staging).first(count);
    source.read(index, first, part);
    stream.update(part.data(), part.size_bytes());
  }
  return stream.digest();
}

}  // namespace

ModelDigest digest_of(TensorSource& source) {
  ModelDigest result;
  std::vector<float> staging;
  for (std::size_t i = 0; i < source.tensors().size(); ++i) {
    result.tensors.push_back({source.tensors()[i].name, tensor_digest(source, i, staging)});
  }
  std::sort(result.tensors.begin(), result.tensors.end(),
            [](const TensorDigest& a, const TensorDigest& b) { return a.name < b.name; });
  Xxh3Stream all;
  for (const TensorDigest& tensor : result.tensors) {
    all.update(tensor.name.c_str(), tensor.name.size() + 1);
    all.update(&tensor.digest, sizeof(tensor.digest));
  }
  result.all = all.digest();
  return result;
}

std::string hex_digest(std::uint64_t digest) { return fmt::format("{:016x}", digest); }

}  // namespace lamina
