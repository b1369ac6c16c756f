#include "staging.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include <lamina/base/hash.hpp>

#include <fmt/format.h>

namespace lamina {

std::uint64_t dataset_checksum(const hdf5::Dataset& dataset, std::vector<float>& staging) {
  Xxh3Stream stream;
  for (std::int64_t first = 0; first < dataset.elements(); first += staging_floats) {
    const auto count = static_cast<std::size_t>(std::min(staging_floats, dataset.elements() - first));
    if (staging.size() < count) staging.resize(count);
    dataset.read(first, std::span(staging).first(count));
    stream.update(staging.data(), count * sizeof(float));
  }
  return stream.digest();
}

std::uint64_t file_checksum(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::system_error(errno, std::generic_category());
  std::vector<char> block(std::size_t{1} << 16);
  Xxh3Stream stream;
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    stream.update(block.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) throw std::system_error(errno, std::generic_category());
  return stream.digest();
}

void with_checkpoint_errors(const std::filesystem::path& path, const std::function<void()>& work) {
  try {
    work();
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  } catch (const std::system_error& error) {
    throw CheckpointError(one_line(fmt::format("cannot use {}", path.string()), error.code().message()));
  }
}

}  // namespace lamina
