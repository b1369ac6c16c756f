// Proving a checkpoint in one process, for tools. A run's ranks share the work (train/checkpointer.hpp).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/shard_reader.hpp>

namespace lamina {

// The advice of an error that makes one checkpoint useless.
inline constexpr std::string_view take_another = "take another checkpoint";
// What such an error says, without that advice: for messages that go on with advice of their own.
[[nodiscard]] std::string reason_of(const Error& error);

struct ProvedCheckpoint {
  ShardReader reader;
  std::vector<std::string> skipped;  // a line for each one that was passed over
};

// The checkpoint a user means by `path` (checkpoint_candidates), every checksum of it proved. Of a run folder the
// newest intact one. Throws CheckpointError when there is none.
[[nodiscard]] ProvedCheckpoint prove_checkpoint(const std::filesystem::path& path);

// Why a complete checkpoint cannot be used after all; empty when every checksum of it is right.
[[nodiscard]] std::string damage_of(const CatalogEntry& entry);

// "skipped FOLDER: REASON"
[[nodiscard]] std::string skipped_line(const CatalogEntry& entry);

}  // namespace lamina
