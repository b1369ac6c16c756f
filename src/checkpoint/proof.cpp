#include <utility>

#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/proof.hpp>

#include <fmt/format.h>

namespace lamina {

std::string reason_of(const Error& error) {
  std::string text = error.what();
  const std::string advice = fmt::format("; {}", take_another);
  if (text.ends_with(advice)) text.resize(text.size() - advice.size());
  return text;
}

std::string skipped_line(const CatalogEntry& entry) {
  return fmt::format("skipped {}: {}", entry.folder.string(), entry.reason);
}

std::string damage_of(const CatalogEntry& entry) {
  try {
    ShardReader(entry.folder).verify_all();
    return {};
  } catch (const CheckpointError& error) {
    return reason_of(error);
  }
}

ProvedCheckpoint prove_checkpoint(const std::filesystem::path& path) {
  CheckpointCandidates candidates = checkpoint_candidates(path);
  for (CatalogEntry& entry : candidates.complete) {
    try {
      ShardReader reader(entry.folder);
      reader.verify_all();
      std::vector<std::string> skipped;
      for (const CatalogEntry& other : candidates.others) skipped.push_back(skipped_line(other));
      return {std::move(reader), std::move(skipped)};
    } catch (const CheckpointError& error) {
      if (candidates.named) throw;
      entry.reason = reason_of(error);
      candidates.others.push_back(entry);
    }
  }
  throw_none_usable(path, candidates.others, "name an intact checkpoint or another run folder");
}

}  // namespace lamina
