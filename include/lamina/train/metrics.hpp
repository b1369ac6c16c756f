// metrics.jsonl: one line of JSON a step, for people's plots and for comparing runs bit by bit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <lamina/train/step.hpp>

namespace lamina {

struct StepTimes {
  double step_s = 0;
  double tok_s = 0;
};

// What is not finite is null, and "nan" or "inf" in the _hex fields; a step without an update has "skipped":true, and
// "no_labels":true if that is why: then its loss is null. "tokens" counts the labelled tokens; "tok_s" is of all tokens
// of the global batch a second, "labelled_tok_s" of the labelled ones.
// {"step":1,"loss":5.5,"loss_hex":"0x1.6p+2","grad_norm":...,"grad_norm_hex":...,"lr":...,"tokens":...,"step_s":...,"tok_s":...[,"overlap":...][,"val_loss":...]}
[[nodiscard]] std::string metrics_line(const StepResult& result, const StepTimes& times,
                                       const std::optional<EvaluationResult>& validation);

class MetricsFile {
 public:
  // Opens FOLDER/metrics.jsonl to continue after `last_step`: lines of later steps, from a run that died after its last
  // checkpoint, are dropped, so that every step stands there once. Throws UsageError.
  MetricsFile(const std::filesystem::path& folder, std::int64_t last_step);
  // Writes and flushes. Throws UsageError when the file system refuses.
  void append(const std::string& line);

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace lamina
