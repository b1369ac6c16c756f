#include "run_inputs.hpp"

#include <algorithm>
#include <filesystem>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/data/tokenizer_identity.hpp>
#include <lamina/model/model_config.hpp>
#include <lamina/ops/ops.hpp>
#include <lamina/tokenizer/byte_tokenizer.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lamina {

static_assert(no_label == ignored_label, "data and ops must agree on the label that does not count");

namespace {

namespace fs = std::filesystem;

// The files of a tokenizer that is not one tokenizer.json.
std::vector<std::string> other_tokenizer_files(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name != "tokenizer.json" && is_tokenizer_file(name)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

[[noreturn]] void refuse_without_tokenizer(const fs::path& folder) {
  const std::vector<std::string> others = other_tokenizer_files(folder);
  const std::string found =
      others.empty() ? "it holds no tokenizer at all" : fmt::format("it holds only {}", fmt::join(others, ", "));
  throw DataError(one_line(
      fmt::format("cannot read or write text with {}: there is no tokenizer.json", folder.string()), found,
      "make one in Python with transformers.AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR), name another with "
      "the option tokenizer, or say tokenizer = byte for raw bytes"));
}

// Bytes stand in only for a model that starts from nothing, in a folder without a trace of a tokenizer.
MissingTokenizer when_missing(const RunConfig& config) {
  const auto is_text = [](const std::string& data, std::string_view key) {
    return !data.empty() && needs_tokenizer(parse_mixture(data, key));
  };
  const bool text = is_text(config.data.train, "data.train") || is_text(config.data.validation, "data.validation");
  const bool has_own = config.model.init == ModelInit::pretrained || !other_tokenizer_files(config.model.path).empty();
  return text && has_own ? MissingTokenizer::refuse : MissingTokenizer::bytes;
}

}  // namespace

TokenizerChoice choose_tokenizer(const std::string& setting, const std::string& model_path, MissingTokenizer missing) {
  const bool automatic = setting == "auto";
  if (automatic) require_model_folder(model_path);
  const fs::path path = automatic ? fs::path(model_path) / "tokenizer.json" : fs::path(setting);
  if (automatic && !fs::exists(path) && missing == MissingTokenizer::refuse) refuse_without_tokenizer(model_path);
  if (setting == "byte" || (automatic && !fs::exists(path))) {
    return {Tokenizer::byte(), true, "", "byte", automatic};
  }
  const fs::path file = fs::is_directory(path) ? path / "tokenizer.json" : path;
  return {Tokenizer::load(file), false, file.parent_path().string(), file.string(), false};
}

std::vector<SideFile> travelling_files(const std::string& model_path, const TokenizerChoice& choice,
                                       const RunData& data) {
  std::vector<SideFile> files = read_side_files(model_path);
  const auto is_tokenizers = [](const SideFile& file) { return is_tokenizer_file(file.name); };
  std::error_code none;
  const fs::path own = fs::path(model_path) / "tokenizer.json";
  if (!choice.builtin_byte && fs::equivalent(choice.name, own, none)) return files;
  const bool other_known = choice.assumed && (!data.made_of_bytes() || std::ranges::any_of(files, is_tokenizers));
  if (other_known) return files;  // bytes were assumed, and may not be what the model reads
  std::erase_if(files, is_tokenizers);
  if (choice.builtin_byte) {
    files.push_back({"tokenizer.json", make_byte_tokenizer_json()});
    files.push_back({"tokenizer_config.json", make_byte_tokenizer_config_json()});
    return files;
  }
  files.push_back({"tokenizer.json", read_file(choice.name)});
  for (SideFile& file : read_tokenizer_files(choice.folder)) {
    if (file.name != "tokenizer.json") files.push_back(std::move(file));
  }
  return files;
}

RunInputs read_run_inputs(const RunConfig& config, std::int64_t ranks, NeedsData needs_data) {
  check_config(config, ranks, needs_data);
  const ModelConfig model = read_model_config(config.model.path);
  if (config.data.seq_len > model.max_positions) {
    throw UsageError(one_line(fmt::format("data.seq_len is {}", config.data.seq_len),
                              fmt::format("the model has {} positions", model.max_positions), "lower data.seq_len"));
  }
  RunInputs inputs;
  inputs.plan = make_model_plan(model, parse_unit_rule(config.parallel.units));
  inputs.optimizer = make_optimizer(config.optim, inputs.plan.units);
  inputs.model_json = read_file(std::filesystem::path(config.model.path) / "config.json");
  if (needs_data == NeedsData::no) return inputs;
  const TokenizerChoice choice = choose_tokenizer(config.data.tokenizer, config.model.path, when_missing(config));
  inputs.data = std::make_unique<RunData>(config, model, choice);
  inputs.side_files = travelling_files(config.model.path, choice, *inputs.data);
  return inputs;
}

MicroBatch view_of(const TokenBatch& batch) {
  return {batch.sequences, batch.seq_len, batch.tokens, batch.labels, batch.positions, batch.first_visible};
}

namespace {

TextRules text_rules(const RunConfig& config) {
  return {config.data.chat_key, config.data.text_key, parse_key_list(config.data.ignore_keys), config.data.date};
}

SourceOptions source_options(const RunConfig& config, const ModelConfig& model, const Tokenizer& tokenizer) {
  return {&tokenizer, {config.data.bin_dtype, model.vocab_size}, config.data.append_eos, text_rules(config)};
}

EpochEnd epoch_end(const RunConfig& config) {
  return {config.data.last_batch, static_cast<std::uint64_t>(config.train.global_batch)};
}

TokenMixture open_training(const RunConfig& config, const ModelConfig& model, const Tokenizer& tokenizer) {
  const std::vector<MixtureEntry> entries = parse_mixture(config.data.train, "data.train");
  return TokenMixture(entries, open_mixture(entries, source_options(config, model, tokenizer)), config.data.seq_len,
                      config.run.seed, epoch_end(config));
}

std::vector<std::unique_ptr<TokenSource>> open_validation(const RunConfig& config, const ModelConfig& model,
                                                          const Tokenizer& tokenizer) {
  if (config.data.validation.empty()) return {};
  return open_mixture(parse_mixture(config.data.validation, "data.validation"),
                      source_options(config, model, tokenizer));
}

}  // namespace

RunData::RunData(const RunConfig& config, const ModelConfig& model, const TokenizerChoice& choice)
    : reads_text_(needs_tokenizer(parse_mixture(config.data.train, "data.train"))),
      assumes_bytes_(choice.assumed),
      epoch_end_(epoch_end(config)),
      mixture_(open_training(config, model, choice.tokenizer)),
      train_(mixture_, {model.vocab_size, config.data.document_mask}),
      validation_sources_(open_validation(config, model, choice.tokenizer)) {
  const BatchRules rules{model.vocab_size, config.data.document_mask};
  const TokenizerIdentity identity = choice.assumed ? TokenizerIdentity() : identify_tokenizer(choice.name);
  const auto check = [&](const TokenSource& source) {
    check_batch_rules(source, rules);
    check_token_ids(source, model.vocab_size, choice.assumed ? nullptr : &choice.tokenizer);
    if (!choice.assumed) check_tokenizer(source, identity);
  };
  tokenizer_hash_ = choice.assumed && made_of_bytes() ? identify_tokenizer("byte").hash : identity.hash;
  for (const auto& source : mixture_.sources()) check(*source);
  for (const auto& source : validation_sources_) check(*source);
  if (!validation_sources_.empty()) {
    validation_.emplace(validation_sources_, config.data.seq_len, rules, WindowLabels::next_token,
                        static_cast<std::uint64_t>(config.train.eval_sequences));
    unlabelled_validation_ = validation_->windows_without_label();
  }
  unlabelled_ = train_.windows_without_label();
}

TrainData RunData::loaders() {
  TrainData data;
  data.train = [this](std::uint64_t first, std::int64_t count) {
    train_.fill(first, count, train_batch_);
    return view_of(train_batch_);
  };
  if (validation_) {
    data.validation = [this](std::uint64_t first, std::int64_t count) {
      validation_->fill(first, count, validation_batch_);
      return view_of(validation_batch_);
    };
    data.validation_sequences = static_cast<std::int64_t>(validation_->windows());
  }
  return data;
}

bool RunData::made_of_bytes() const {
  const std::string bytes = identify_tokenizer("byte").hash;
  const auto says_bytes = [&](const auto& source) { return source->tokenizer_hash() == bytes; };
  return reads_text_ || std::ranges::all_of(mixture_.sources(), says_bytes);
}

std::string RunData::description() const {
  std::string text = fmt::format("data: {} tokens, {} windows of {} an epoch", mixture_.tokens(), mixture_.windows(),
                                 mixture_.seq_len());
  const std::uint64_t windows = mixture_.windows(), samples = samples_an_epoch(windows, epoch_end_);
  if (samples < windows) text += fmt::format(", {} of them left out as data.last_batch says", windows - samples);
  if (samples > windows) text += fmt::format(" and {} rows of padding", samples - windows);
  if (unlabelled_ > 0)
    text += fmt::format(", {} of them without any label: nothing is learned from these", unlabelled_);
  if (validation_) text += fmt::format("; validation on {} windows", validation_->windows());
  if (unlabelled_validation_ > 0) text += fmt::format(", {} of them without any label", unlabelled_validation_);
  if (reads_text_ && assumes_bytes_) text += "; text is read as bytes, for the model folder has no tokenizer";
  return text;
}

}  // namespace lamina
