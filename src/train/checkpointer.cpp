#include "record_text.hpp"

#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/checkpoint/catalog.hpp>
#include <lamina/checkpoint/shard_reader.hpp>
#include <lamina/checkpoint/shard_writer.hpp>
#include <lamina/config/command_line.hpp>
#include <lamina/data/sampler.hpp>
#include <lamina/optim/optimizer.hpp>
#include <lamina/train/checkpointer.hpp>
#include <lamina/train/initialise.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// Manifest::sample_order.
std::string sample_order(const RunConfig& config) {
  std::string order(name_of(config.data.last_batch));
  if (config.data.last_batch != LastBatch::wrap) order += fmt::format(" {}", config.train.global_batch);
  return order;
}

// With other epochs the next sample's number would mean another place in the data.
void check_sample_order(const ShardReader& reader, const RunConfig& config) {
  const std::string order = sample_order(config), &saved = reader.manifest().sample_order;
  if (order == saved) return;
  throw UsageError(one_line(
      fmt::format("this run's epochs are \"{}\" (data.last_batch, train.global_batch) but those of {} are \"{}\"",
                  order, reader.folder().string(), saved),
      "windows would be left out or seen twice",
      "set data.last_batch, and with drop or pad train.global_batch, as they were"));
}

// State of one kind means nothing to another: refused, never reinterpreted or dropped.
void check_optimizer(const ShardReader& reader, const OptimSection& optim) {
  const std::string folder = reader.folder().string();
  const std::string_view kind = name_of(optim.kind);
  if (reader.manifest().optimizer != kind) {
    throw UsageError(
        one_line(fmt::format("optim.kind is {} but {} was saved with {}", kind, folder, reader.manifest().optimizer),
                 "the state of one optimizer means nothing to another",
                 fmt::format("set optim.kind to {}, or start in another run.dir from weights exported by "
                             "lamina-consolidate",
                             reader.manifest().optimizer)));
  }
  const int held = (reader.has(StateKind::exp_avg) ? 1 : 0) + (reader.has(StateKind::exp_avg_sq) ? 1 : 0);
  if (held == moment_count(optim)) return;
  if (optim.kind == OptimizerKind::sgd) {
    throw UsageError(one_line(fmt::format("optim.momentum is {} but {} was saved {} momentum", optim.momentum, folder,
                                          held > 0 ? "with" : "without"),
                              "a run cannot change that on its way", "set optim.momentum as it was"));
  }
  throw CheckpointError(one_line(fmt::format("{} holds no complete optimizer state", folder),
                                 "training cannot continue from it", "use a checkpoint that lamina train wrote"));
}

}  // namespace

Checkpointer::Checkpointer(const mpi::Communicator& world, WeightStore& store, const RunConfig& config,
                           std::string model_config_json, std::vector<SideFile> side_files)
    : world_(world),
      store_(store),
      config_(config),
      model_config_json_(std::move(model_config_json)),
      side_files_(std::move(side_files)) {}

ShardFileRecord Checkpointer::write_shards(const std::filesystem::path& folder) const {
  std::vector<UnitSpec> units;
  std::vector<ShardSlice> slices;
  for (std::size_t unit = 0; unit < store_.unit_count(); ++unit) {
    units.push_back(store_.layout(unit).unit());
    const OptimizerShard shard = store_.optimizer_shard(unit);
    const FlatRange range = store_.counted_range(unit);
    const auto begin = static_cast<std::size_t>(range.begin - shard.range.begin),
               length = static_cast<std::size_t>(range.length());
    const auto cut = [&](std::span<float> whole) { return whole.empty() ? whole : whole.subspan(begin, length); };
    slices.push_back({unit, range, cut(shard.param), cut(shard.exp_avg), cut(shard.exp_avg_sq)});
  }
  return write_shard_file(folder, world_.rank(), units, slices);
}

Manifest Checkpointer::make_manifest(const RunState& state, std::vector<ShardFileRecord> files) const {
  Manifest manifest;
  manifest.step = state.step;
  manifest.optimizer_step = state.updates;
  manifest.skipped_steps = state.skipped;
  manifest.skipped_in_a_row = state.skipped_in_a_row;
  manifest.tokens_seen = state.tokens_seen;
  manifest.next_sample = state.next_sample;
  manifest.sample_order = sample_order(config_);
  manifest.world_size = manifest.shard_count = world_.size();
  manifest.strategy = name_of(config_.parallel.strategy);
  for (std::size_t unit = 0; unit < store_.unit_count(); ++unit) manifest.units.push_back(store_.layout(unit).unit());
  manifest.optimizer = name_of(config_.optim.kind);
  manifest.seed = config_.run.seed;
  manifest.config_text = to_ini(config_);
  manifest.model_config_json = model_config_json_;
  manifest.files = std::move(files);
  return manifest;
}

std::filesystem::path Checkpointer::save(const RunState& state) const {
  const bool speaks = world_.rank() == 0;
  const std::string id = world_.broadcast(speaks ? CheckpointTransaction::make_id() : "", 0, "the checkpoint's id");
  CheckpointTransaction transaction(config_.run.dir, state.step, id);
  std::filesystem::path folder;
  try {
    world_.agree(
        [&] {
          if (speaks) transaction.begin();
        },
        "the checkpoint's folder");
    std::string record;
    world_.agree([&] { record = to_text(write_shards(transaction.folder())); }, "the checkpoint's shard files");
    const std::vector<std::string> records = world_.all_gather(record, "the checkpoint's records");
    world_.agree(
        [&] {
          if (!speaks) return;
          std::vector<ShardFileRecord> files;
          for (const std::string& text : records) files.push_back(record_from_text(text));
          folder = transaction.commit(make_manifest(state, std::move(files)), side_files_, config_.checkpoint.keep);
        },
        "the checkpoint's manifest");
  } catch (const mpi::AgreedError&) {
    if (speaks) transaction.abandon();
    throw;
  }
  return folder;
}

RunState Checkpointer::load(const std::filesystem::path& checkpoint) {
  RunState state;
  world_.agree(
      [&] {
        ShardReader reader(checkpoint);
        std::vector<UnitSpec> units;
        for (std::size_t unit = 0; unit < store_.unit_count(); ++unit) units.push_back(store_.layout(unit).unit());
        reader.check_units(units);
        check_optimizer(reader, config_.optim);
        check_sample_order(reader, config_);
        const int moments = moment_count(config_.optim);
        const FileShare share = file_share(reader.manifest().files.size(), world_.rank(), world_.size());
        reader.verify_files(share.first, share.count);
        for (std::size_t unit = 0; unit < store_.unit_count(); ++unit) {
          const OptimizerShard shard = store_.optimizer_shard(unit);
          reader.read(store_.layout(unit), shard.range, StateKind::param, shard.param);
          if (moments > 0) reader.read(store_.layout(unit), shard.range, StateKind::exp_avg, shard.exp_avg);
          if (moments > 1) reader.read(store_.layout(unit), shard.range, StateKind::exp_avg_sq, shard.exp_avg_sq);
        }
        const Manifest& saved = reader.manifest();
        state = {saved.step,           saved.next_sample,   saved.tokens_seen,
                 saved.optimizer_step, saved.skipped_steps, saved.skipped_in_a_row};
      },
      "the loading of the checkpoint");
  publish_all(store_);
  return state;
}

std::filesystem::path choose_checkpoint(const std::filesystem::path& run_folder, const std::string& resume,
                                        std::vector<std::string>& notes) {
  if (resume == "auto") return newest_checkpoint(run_folder, &notes).value_or(std::filesystem::path());
  if (resume != "never") return resolve_checkpoint(resume);
  if (newest_checkpoint(run_folder)) {
    throw UsageError(one_line(fmt::format("{} already holds checkpoints and run.resume is never", run_folder.string()),
                              "a fresh start would overwrite them", "choose another run.dir, or run.resume = auto"));
  }
  return {};
}

}  // namespace lamina
