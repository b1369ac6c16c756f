#include "consolidate/merge.hpp"

#include "consolidate/export_weights.hpp"
#include "consolidate/model_config_json.hpp"

#include <system_error>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/checkpoint/proof.hpp>
#include <lamina/checkpoint/transaction.hpp>
#include <lamina/model/model_plan.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace lamina {

namespace {

namespace fs = std::filesystem;

// "out/" means "out": the temporary folder must lie beside it, not in it.
fs::path without_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

void check_out(const fs::path& out) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(out, error))) return;
  if (fs::is_directory(out, error) && fs::is_empty(out, error)) return;
  throw UsageError(one_line(fmt::format("cannot write {}", out.string()), "it exists and is not an empty folder",
                            "name a new folder"));
}

// A folder that is gone unless it was put in place.
class StagedFolder {
 public:
  explicit StagedFolder(const fs::path& target)
      : target_(target), staged_(target.string() + ".tmp-" + CheckpointTransaction::make_id()) {
    if (target_.has_parent_path()) fs::create_directories(target_.parent_path());
    fs::create_directory(staged_);
  }
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  ~StagedFolder() {
    std::error_code ignored;
    fs::remove_all(staged_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return staged_; }
  // Returns what is to be said although the folder is complete, or nothing.
  [[nodiscard]] std::string put_in_place() {
    sync_path(staged_);
    fs::rename(staged_, target_);
    try {
      sync_path(target_.has_parent_path() ? target_.parent_path() : fs::path("."));
    } catch (const std::system_error& error) {
      return fmt::format(
          "{} is complete, but its folder could not be synced ({}): after a power failure it may be "
          "missing",
          target_.string(), error.code().message());
    }
    return {};
  }

 private:
  fs::path target_, staged_;
};

class Merge {
 public:
  explicit Merge(const ConsolidateRequest& request) : Merge(request, prove_checkpoint(request.checkpoint)) {}

  ConsolidateReport run() {
    check_model();
    if (request_.optimizer && !reader_.has(StateKind::exp_avg)) {
      throw CheckpointError(one_line(fmt::format("cannot export the optimizer of {}", reader_.folder().string()),
                                     "it was saved without optimizer state", "leave out --optimizer"));
    }
    if (request_.weights == ExportedWeights::ema) refuse_without_average(reader_);
    StagedFolder staged(without_slash(request_.out));
    write_weights(staged.path());
    if (request_.optimizer) write_optimizer(staged.path());
    write_side_files(staged.path());
    if (const std::string warning = staged.put_in_place(); !warning.empty()) report_.warnings.push_back(warning);
    report_.checkpoint = reader_.folder();
    report_.step = manifest().step;
    return std::move(report_);
  }

 private:
  Merge(const ConsolidateRequest& request, ProvedCheckpoint proved)
      : request_(request), reader_(std::move(proved.reader)) {
    report_.warnings = std::move(proved.skipped);
  }

  [[nodiscard]] const Manifest& manifest() const { return reader_.manifest(); }

  // What is exported must be what config.json describes: transformers will look for exactly that.
  void check_model() const {
    const std::string where = (reader_.folder() / "model" / "config.json").string();
    const ModelPlan plan = make_model_plan(parse_model_config(manifest().model_config_json, where));
    reader_.check_units(plan.units);
  }

  [[nodiscard]] ExportResult export_parts(const fs::path& folder, const std::string& stem,
                                          const std::vector<ExportPart>& parts, DType dtype) const {
    if (request_.format == ExportFormat::hdf5) return export_hdf5(folder, stem, parts, dtype);
    return export_safetensors(folder, stem, parts, dtype, request_.max_file_bytes);
  }

  void take(const ExportResult& result) {
    report_.tensors += result.tensors;
    report_.files += result.files;
    report_.bytes += result.bytes;
    if (result.not_finite.empty()) return;
    report_.warnings.push_back(
        fmt::format("these tensors hold NaN or infinity: {}", fmt::join(result.not_finite, ", ")));
  }

  void write_weights(const fs::path& folder) {
    CheckpointTensors tensors(reader_, request_.weights == ExportedWeights::ema ? StateKind::ema : StateKind::param);
    take(export_parts(folder, "model", {{&tensors, ""}}, request_.dtype));
  }

  void write_optimizer(const fs::path& folder) {
    CheckpointTensors first(reader_, StateKind::exp_avg), second(reader_, StateKind::exp_avg_sq);
    std::vector<ExportPart> parts{{&first, ".exp_avg"}};
    if (reader_.has(StateKind::exp_avg_sq)) parts.push_back({&second, ".exp_avg_sq"});
    take(export_parts(folder, "optimizer", parts, DType::f32));
    nlohmann::ordered_json state = {{"optimizer", manifest().optimizer},
                                    {"step", manifest().optimizer_step},
                                    {"tokens_seen", manifest().tokens_seen},
                                    {"next_sample", manifest().next_sample},
                                    {"seed", manifest().seed},
                                    {"config", manifest().config_text}};
    write(folder, "optimizer.json", state.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }

  void write_side_files(const fs::path& folder) {
    bool has_generation_config = false;
    for (const SideFile& file : read_side_files(reader_.folder() / "model")) {
      has_generation_config = has_generation_config || file.name == "generation_config.json";
      write(folder, file.name, file.content);
    }
    const std::string& config = manifest().model_config_json;
    write(folder, "config.json", with_dtype(config, request_.dtype, reader_.folder().string()));
    if (!has_generation_config) write(folder, "generation_config.json", derive_generation_config(config));
  }

  static void write(const fs::path& folder, const std::string& name, const std::string& content) {
    write_file_atomically(folder / name, content, ExitCode::checkpoint);
  }

  const ConsolidateRequest& request_;
  ShardReader reader_;
  ConsolidateReport report_;
};

}  // namespace

ConsolidateReport consolidate(const ConsolidateRequest& request) {
  try {
    check_out(without_slash(request.out));
    return Merge(request).run();
  } catch (const std::system_error& error) {
    throw CheckpointError(one_line(fmt::format("cannot write {}", request.out.string()), error.code().message(),
                                   "free space or choose another folder"));
  }
}

}  // namespace lamina
