#include "record_text.hpp"

#include <optional>
#include <utility>

#include <lamina/base/error.hpp>
#include <lamina/base/log.hpp>
#include <lamina/checkpoint/proof.hpp>
#include <lamina/checkpoint/shard_writer.hpp>
#include <lamina/config/command_line.hpp>
#include <lamina/optim/optimizer.hpp>
#include <lamina/train/checkpointer.hpp>
#include <lamina/train/initialise.hpp>
#include <lamina/train/start_choice.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

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

// Each tensor has its second moment here and there, or in neither place.
void check_second_moments(const ShardReader& reader, WeightStore& store) {
  if (!reader.has(StateKind::exp_avg_sq)) return;  // none at all: check_optimizer has seen that
  for (std::size_t unit = 0; unit < store.unit_count(); ++unit) {
    const PackedTensors* here = store.optimizer_shard(unit).second;
    const std::vector<TensorSpec>& tensors = store.layout(unit).unit().tensors;
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      const bool kept = here == nullptr || here->holds(tensor);
      if (reader.keeps(tensors[tensor].name, StateKind::exp_avg_sq) == kept) continue;
      throw CheckpointError(
          one_line(fmt::format("cannot go on from {}", reader.folder().string()),
                   fmt::format("it holds {} exp_avg_sq of {}", kept ? "no" : "the", tensors[tensor].name),
                   "use the version of lamina that saved it, or start from weights exported by lamina-consolidate"));
    }
  }
}

// Averaged weights are never dropped on the way.
void check_average(const ShardReader& reader, const OptimSection& optim) {
  if (!reader.has(StateKind::ema) || optim.ema_decay > 0) return;
  throw UsageError(one_line(
      fmt::format("optim.ema_decay is 0 but {} holds averaged weights", reader.folder().string()),
      "going on without them would lose them",
      "set optim.ema_decay as it was, or start in another run.dir from weights exported by lamina-consolidate"));
}

}  // namespace

Checkpointer::Checkpointer(const mpi::Communicator& world, WeightStore& store, const RunConfig& config,
                           RunIdentity identity, std::vector<SideFile> side_files)
    : world_(world),
      store_(store),
      config_(config),
      identity_(std::move(identity)),
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
    slices.push_back(
        {unit, range, cut(shard.param), cut(shard.exp_avg), shard.exp_avg_sq_of(range), cut(shard.ema), shard.second});
  }
  return write_shard_file(folder, world_.rank(), units, slices);
}

std::vector<std::string> Checkpointer::without_second_moment() const {
  std::vector<std::string> names;
  for (std::size_t unit = 0; unit < store_.unit_count(); ++unit) {
    const PackedTensors* second = store_.optimizer_shard(unit).second;
    const std::vector<TensorSpec>& tensors = store_.layout(unit).unit().tensors;
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      if (second != nullptr && !second->holds(tensor)) names.push_back(tensors[tensor].name);
    }
  }
  return names;
}

Manifest Checkpointer::make_manifest(const RunState& state, std::vector<ShardFileRecord> files) const {
  Manifest manifest;
  manifest.step = state.step;
  manifest.optimizer_step = state.updates;
  manifest.skipped_steps = state.skipped;
  manifest.skipped_in_a_row = state.skipped_in_a_row;
  manifest.tokens_seen = state.tokens_seen;
  manifest.next_sample = state.next_sample;
  manifest.data_restarts = state.data_restarts;
  manifest.data_identity = identity_.data;
  manifest.validation_identity = identity_.validation;
  manifest.tokenizer_identity = identity_.tokenizer;
  manifest.world_size = manifest.shard_count = world_.size();
  manifest.strategy = name_of(config_.parallel.strategy);
  for (std::size_t unit = 0; unit < store_.unit_count(); ++unit) manifest.units.push_back(store_.layout(unit).unit());
  manifest.optimizer = name_of(config_.optim.kind);
  manifest.no_exp_avg_sq = without_second_moment();
  manifest.seed = config_.run.seed;
  manifest.config_text = to_ini(config_);
  manifest.model_config_json = identity_.model_json;
  manifest.files = std::move(files);
  return manifest;
}

std::filesystem::path Checkpointer::save(const RunState& state) {
  const bool speaks = world_.rank() == 0;
  const std::string id = world_.broadcast(speaks ? CheckpointTransaction::make_id() : "", 0, "the checkpoint's id");
  if (run_id_.empty()) run_id_ = id;
  CheckpointTransaction transaction(config_.run.dir, state.step, run_id_, id);
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

void Checkpointer::read_shards(ShardReader& reader) {
  const int moments = moment_count(config_.optim);
  const bool averaged = reader.has(StateKind::ema);
  for (std::size_t unit = 0; unit < store_.unit_count(); ++unit) {
    const OptimizerShard shard = store_.optimizer_shard(unit);
    const FlatLayout& layout = store_.layout(unit);
    reader.read(layout, shard.range, StateKind::param, shard.param);
    if (moments > 0) reader.read(layout, shard.range, StateKind::exp_avg, shard.exp_avg);
    for (const Span& span : layout.spans(shard.range)) {
      const FlatRange part{span.flat_offset, span.flat_offset + span.length};
      const std::span<float> second = shard.exp_avg_sq_of(part);
      if (!second.empty()) reader.read(layout, part, StateKind::exp_avg_sq, second);
    }
    if (averaged) reader.read(layout, shard.range, StateKind::ema, shard.ema);
  }
  if (averaged || config_.optim.ema_decay == 0) return;
  begin_average(store_);
  if (world_.rank() == 0) {
    log_warn(fmt::format("{} holds no averaged weights: the average begins anew, as the weights of step {}",
                         reader.folder().string(), reader.manifest().step));
  }
}

RunState Checkpointer::state_after(const Manifest& saved, const RunDrift& drift) const {
  if (world_.rank() == 0) {
    if (const std::string line = describe_told(drift); !line.empty()) log_info(line);
    if (const std::string line = describe_allowed(drift, saved); !line.empty()) log_warn(line);
    if (saved.data_identity.empty() && !identity_.data.empty())
      log_warn("the checkpoint does not say what its data were, so nobody can tell whether they are the same");
  }
  RunState state{saved.step,          saved.next_sample,      saved.tokens_seen,   saved.optimizer_step,
                 saved.skipped_steps, saved.skipped_in_a_row, saved.data_restarts, {}};
  if (drift.new_order) {
    state.next_sample = 0;
    ++state.data_restarts;
  }
  return state;
}

RunDrift Checkpointer::check(const ShardReader& reader) const {
  std::vector<UnitSpec> units;
  for (std::size_t unit = 0; unit < store_.unit_count(); ++unit) units.push_back(store_.layout(unit).unit());
  reader.check_units(units);
  check_optimizer(reader, config_.optim);
  check_second_moments(reader, store_);
  check_average(reader, config_.optim);
  return compare_runs(reader.manifest(), reader.folder().string(), config_, identity_);
}

// What is wrong with the checkpoint's content, the same on every rank; empty when all of it is proved. Each rank reads
// its share of the files.
std::string Checkpointer::damage_of(ShardReader& reader) const {
  try {
    world_.agree(
        [&] {
          const FileShare share = file_share(reader.manifest().files.size(), world_.rank(), world_.size());
          reader.verify_files(share.first, share.count);
        },
        "the proving of the checkpoint");
    return {};
  } catch (const mpi::AgreedError& error) {
    if (error.code() != ExitCode::checkpoint) throw;
    return reason_of(error);
  }
}

Checkpointer::Loaded Checkpointer::load_first_intact(const std::vector<std::filesystem::path>& candidates) {
  Loaded loaded;
  for (const std::filesystem::path& folder : candidates) {
    std::optional<ShardReader> reader;
    RunDrift drift;
    world_.agree(
        [&] {
          reader.emplace(folder);
          drift = check(*reader);
        },
        "the checkpoint's manifest");
    if (std::string damage = damage_of(*reader); !damage.empty()) {
      CatalogEntry entry;
      entry.folder = folder;
      entry.step = reader->manifest().step;
      entry.reason = std::move(damage);
      loaded.damaged.push_back(std::move(entry));
      continue;
    }
    world_.agree(
        [&] {
          read_shards(*reader);
          loaded.state = state_after(reader->manifest(), drift);
          loaded.state.last_checkpoint = folder;
        },
        "the loading of the checkpoint");
    run_id_ = reader->manifest().run_id;
    publish_all(store_);
    return loaded;
  }
  world_.agree(
      [&] {
        if (config_.run.resume != "auto" && loaded.damaged.size() == 1)
          throw CheckpointError(one_line(loaded.damaged.front().reason, "", take_another));
        throw_none_usable(config_.run.dir, loaded.damaged, how_to_begin_anew);
      },
      "the choice of a checkpoint");
  return loaded;
}

RunState Checkpointer::load(const std::filesystem::path& checkpoint) { return load_first_intact({checkpoint}).state; }

}  // namespace lamina
