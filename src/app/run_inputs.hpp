// What a run reads before it starts: model, tokenizer, data.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lamina/checkpoint/transaction.hpp>
#include <lamina/config/run_config.hpp>
#include <lamina/config/validate.hpp>
#include <lamina/data/batch.hpp>
#include <lamina/data/data_identity.hpp>
#include <lamina/data/token_mixture.hpp>
#include <lamina/model/model_plan.hpp>
#include <lamina/optim/optimizer.hpp>
#include <lamina/tokenizer/tokenizer.hpp>
#include <lamina/train/trainer.hpp>

namespace lamina {

// What happens when "auto" finds no tokenizer.json beside the model.
enum class MissingTokenizer { refuse, bytes };

// The tokenizer that `data.tokenizer` means: "byte", a path, or "auto": the model folder's tokenizer.json. Throws
// DataError naming what is missing and how to make it.
struct TokenizerChoice {
  Tokenizer tokenizer;
  bool builtin_byte = false;
  std::string folder;    // of its files; empty for the built-in one
  std::string name;      // to identify it by (data/tokenizer_identity.hpp)
  bool assumed = false;  // "auto" found none beside the model: byte is what text will be read with
};
[[nodiscard]] TokenizerChoice choose_tokenizer(const std::string& setting, const std::string& model_path,
                                               MissingTokenizer missing = MissingTokenizer::refuse);

// Token data of a run and the loaders over it. Address-stable: the loaders refer to it.
class RunData {
 public:
  // Opens and checks everything: also that token files were made by the chosen tokenizer, unless that is only assumed.
  // Throws UsageError and DataError.
  RunData(const RunConfig& config, const ModelConfig& model, const TokenizerChoice& choice);
  RunData(const RunData&) = delete;
  RunData& operator=(const RunData&) = delete;

  [[nodiscard]] TrainData loaders();
  // Call when a resumed run says that its data began anew for the `times`-th time, before loaders are used.
  void begin_anew(std::uint64_t times) { mixture_.begin_anew(times); }
  // What the data are (data/data_identity.hpp): reads them. And the hash of the tokenizer; empty: not known.
  [[nodiscard]] std::string identity() const { return identify_data(mixture_); }
  [[nodiscard]] std::string validation_identity() const { return identify_data(validation_sources_); }
  [[nodiscard]] const std::string& tokenizer_hash() const { return tokenizer_hash_; }
  [[nodiscard]] std::string description() const;  // for the log
  // Whether the assumed byte tokenizer is really what made the ids: of text read here, or of token files that say so.
  [[nodiscard]] bool made_of_bytes() const;

 private:
  bool reads_text_ = false;
  bool assumes_bytes_ = false;
  std::string tokenizer_hash_;
  EpochEnd epoch_end_;
  TokenMixture mixture_;
  TrainBatches train_;
  std::vector<std::unique_ptr<TokenSource>> validation_sources_;
  std::optional<EvalBatches> validation_;
  std::uint64_t unlabelled_ = 0, unlabelled_validation_ = 0;  // windows
  TokenBatch train_batch_, validation_batch_;
};

// The files that travel with checkpoints: the model folder's, with the tokenizer's in place of its own where another
// one was chosen, or where bytes are assumed, the data confirm it, and the folder has no tokenizer of any kind.
[[nodiscard]] std::vector<SideFile> travelling_files(const std::string& model_path, const TokenizerChoice& choice,
                                                     const RunData& data);

// Everything that a run reads before it takes memory.
struct RunInputs {
  ModelPlan plan;
  std::unique_ptr<Optimizer> optimizer;
  std::string model_json;
  std::unique_ptr<RunData> data;  // none with NeedsData::no
  std::vector<SideFile> side_files;
};
// Reads and checks it all, as `ranks` ranks would: what is wrong with files and settings shows here. With NeedsData::no
// neither data nor tokenizer is opened. Throws UsageError and DataError.
[[nodiscard]] RunInputs read_run_inputs(const RunConfig& config, std::int64_t ranks,
                                        NeedsData needs_data = NeedsData::yes);

// A filled batch as the model takes it; valid as long as `batch` is not changed.
[[nodiscard]] MicroBatch view_of(const TokenBatch& batch);

}  // namespace lamina
