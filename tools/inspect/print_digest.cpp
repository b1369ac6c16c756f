#include "inspect/describe.hpp"

#include <lamina/base/error.hpp>
#include <lamina/checkpoint/digest.hpp>
#include <lamina/checkpoint/folder_tensors.hpp>
#include <lamina/checkpoint/proof.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

ModelDigest digest_at(const std::filesystem::path& path, StateKind kind) {
  if (SafetensorsFolder::present(path)) {
    if (kind != StateKind::param) {
      throw UsageError(one_line("--weights ema cannot be used here",
                                fmt::format("{} is a model folder: it holds weights of one kind", path.string()),
                                "leave it out"));
    }
    FolderTensors tensors(path);
    return digest_of(tensors);
  }
  ProvedCheckpoint proved = prove_checkpoint(path);
  for (const std::string& line : proved.skipped) fmt::print(stderr, "warning: {}\n", line);
  ShardReader& reader = proved.reader;
  if (kind == StateKind::ema) refuse_without_average(reader);
  if (!proved.skipped.empty()) fmt::print(stderr, "taken: {}\n", reader.folder().string());
  CheckpointTensors tensors(reader, kind);
  return digest_of(tensors);
}

}  // namespace

std::string digest_text(const std::filesystem::path& path, StateKind kind) {
  const ModelDigest digest = digest_at(path, kind);
  std::string text;
  for (const TensorDigest& tensor : digest.tensors) {
    text += fmt::format("{}  {}\n", hex_digest(tensor.digest), tensor.name);
  }
  return text + fmt::format("{}  all\n", hex_digest(digest.all));
}

}  // namespace lamina
