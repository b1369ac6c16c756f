#include <cerrno>
#include <cstring>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/train/metrics.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lamina {

std::string metrics_line(const StepResult& result, const StepTimes& times,
                         const std::optional<EvaluationResult>& validation) {
  nlohmann::ordered_json line{{"step", result.step},
                              {"loss", result.loss},
                              {"loss_hex", fmt::format("{:a}", result.loss)},
                              {"grad_norm", result.grad_norm},
                              {"grad_norm_hex", fmt::format("{:a}", result.grad_norm)},
                              {"clip", result.clip},
                              {"lr", result.lr},
                              {"tokens", result.tokens},
                              {"step_s", times.step_s},
                              {"tok_s", times.tok_s}};
  if (times.step_s > 0) line["labelled_tok_s"] = static_cast<double>(result.tokens) / times.step_s;
  if (result.overlap) line["overlap"] = *result.overlap;
  if (result.skipped) line["skipped"] = true;
  if (result.no_labels) {
    line["no_labels"] = true;
    line["loss_hex"] = nullptr;
  }
  if (validation) {
    line["val_loss"] = validation->loss;
    line["val_loss_hex"] = fmt::format("{:a}", validation->loss);
    line["val_tokens"] = validation->tokens;
  }
  return line.dump();
}

namespace {

// The lines of steps up to `last_step`; a half-written last line is dropped.
std::string kept_lines(const std::string& text, std::int64_t last_step) {
  std::string kept;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer() && json["step"] <= last_step) {
      kept += line + '\n';
    }
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& folder, std::int64_t last_step)
    : path_(folder / "metrics.jsonl") {
  const std::string before = std::filesystem::exists(path_) ? read_file(path_) : std::string();
  write_file_atomically(path_, kept_lines(before, last_step), ExitCode::usage);
  out_.open(path_, std::ios::app | std::ios::binary);
  if (!out_)
    throw UsageError(
        one_line(fmt::format("cannot write {}", path_.string()), std::strerror(errno), "choose a writable run.dir"));
}

void MetricsFile::append(const std::string& line) {
  out_ << line << '\n' << std::flush;
  if (!out_)
    throw UsageError(
        one_line(fmt::format("cannot write {}", path_.string()), std::strerror(errno), "free space in run.dir"));
}

}  // namespace lamina
