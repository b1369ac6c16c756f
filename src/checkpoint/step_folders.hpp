// The names of a run folder's checkpoints, and of what saving leaves beside them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

inline constexpr std::string_view temporary_mark = ".tmp-";
inline constexpr std::string_view replaced_mark = ".replaced-";

// The parts of "step_00000100.tmp-RUN.ATTEMPT".
struct StepName {
  std::int64_t step = 0;
  std::string base;  // "step_00000100"
  std::string mark;  // ".tmp-RUN.ATTEMPT", ".replaced-RUN.ATTEMPT" or nothing
  [[nodiscard]] bool temporary() const { return mark.find(temporary_mark) != std::string::npos; }
  [[nodiscard]] bool replaced() const { return mark.starts_with(replaced_mark) && !temporary(); }
  // Whether the run of that id gave it its last mark.
  [[nodiscard]] bool marked_by(std::string_view run_id) const;
};

[[nodiscard]] std::optional<StepName> parse_step_name(const std::string& name);

struct StepFolder {
  std::filesystem::path path;
  StepName name;
};

// Everything in a run folder that is named so, links that lead nowhere and plain files too. A run folder that does not
// exist holds nothing. Throws std::filesystem::filesystem_error.
[[nodiscard]] std::vector<StepFolder> find_step_folders(const std::filesystem::path& run_folder);

// Whether the unmarked folder of that name is among them.
[[nodiscard]] bool holds_step(const std::vector<StepFolder>& folders, const std::string& name);

}  // namespace lamina
