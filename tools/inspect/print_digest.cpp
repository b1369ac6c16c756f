#include "inspect/describe.hpp"

#include <lamina/base/error.hpp>
#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/digest.hpp>
#include <lamina/checkpoint/folder_tensors.hpp>
#include <lamina/checkpoint/shard_reader.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

ModelDigest digest_at(const std::filesystem::path& path) {
  if (SafetensorsFolder::present(path)) {
    FolderTensors tensors(path);
    return digest_of(tensors);
  }
  ShardReader reader(resolve_checkpoint(path));
  reader.verify_all();
  CheckpointTensors tensors(reader, StateKind::param);
  return digest_of(tensors);
}

}  // namespace

std::string digest_text(const std::filesystem::path& path) {
  const ModelDigest digest = digest_at(path);
  std::string text;
  for (const TensorDigest& tensor : digest.tensors) {
    text += fmt::format("{}  {}\n", hex_digest(tensor.digest), tensor.name);
  }
  return text + fmt::format("{}  all\n", hex_digest(digest.all));
}

}  // namespace lamina
