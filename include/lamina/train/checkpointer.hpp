// Saving and loading the state of a run, collectively.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/manifest.hpp>
#include <lamina/checkpoint/shard_reader.hpp>
#include <lamina/checkpoint/transaction.hpp>
#include <lamina/config/run_config.hpp>
#include <lamina/mpi/communicator.hpp>
#include <lamina/shard/weight_store.hpp>
#include <lamina/train/run_drift.hpp>

namespace lamina {

// What a run continues with.
struct RunState {
  std::int64_t step = 0;          // steps taken, skipped ones too
  std::uint64_t next_sample = 0;  // global sample index
  std::uint64_t tokens_seen = 0;  // labelled tokens
  std::int64_t updates = 0;       // steps that changed the weights: what the optimizer counts
  std::int64_t skipped = 0;       // the others (skipped_steps.hpp)
  std::int64_t skipped_in_a_row = 0;
  std::uint64_t data_restarts = 0;             // how often the data began anew (run_drift.hpp)
  std::filesystem::path last_checkpoint = {};  // on rank 0: loaded or saved last; empty: none yet
};

class Checkpointer {
 public:
  // identity.model_json and side_files travel with every checkpoint. References must outlive it.
  Checkpointer(const mpi::Communicator& world, WeightStore& store, const RunConfig& config, RunIdentity identity,
               std::vector<SideFile> side_files);

  // Every rank writes its part, rank 0 completes. When any rank fails, all throw AgreedError and the previous
  // checkpoints stay. The first save of a run that was not loaded gives it its id (Manifest::run_id).
  std::filesystem::path save(const RunState& state);

  // Proves checksums (files divided among ranks), checks that names and shapes are the model's, fills this rank's
  // shards. Any world size. Refuses another run (run_drift.hpp) and says what has changed. Averaged weights that the
  // file has not begin as the loaded weights, with a warning; those that it has and the run does not keep are refused.
  [[nodiscard]] RunState load(const std::filesystem::path& checkpoint);

  // The first of `candidates` whose checksums are right: damaged ones are passed over, which `damaged` tells. Throws
  // AgreedError when none is left.
  struct Loaded {
    RunState state;
    std::vector<CatalogEntry> damaged;
  };
  [[nodiscard]] Loaded load_first_intact(const std::vector<std::filesystem::path>& candidates);

 private:
  [[nodiscard]] ShardFileRecord write_shards(const std::filesystem::path& folder) const;
  [[nodiscard]] RunDrift check(const ShardReader& reader) const;
  [[nodiscard]] std::string damage_of(ShardReader& reader) const;
  void read_shards(ShardReader& reader);
  [[nodiscard]] RunState state_after(const Manifest& saved, const RunDrift& drift) const;
  [[nodiscard]] std::vector<std::string> without_second_moment() const;
  [[nodiscard]] Manifest make_manifest(const RunState& state, std::vector<ShardFileRecord> files) const;

  const mpi::Communicator& world_;
  WeightStore& store_;
  const RunConfig& config_;
  RunIdentity identity_;
  std::vector<SideFile> side_files_;
  std::string run_id_;  // empty until the first load or save
};

}  // namespace lamina
