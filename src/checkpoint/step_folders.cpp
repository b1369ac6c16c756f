#include "step_folders.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <lamina/checkpoint/transaction.hpp>

namespace lamina {

namespace fs = std::filesystem;

bool StepName::marked_by(std::string_view run_id) const {
  const std::size_t dash = mark.rfind(temporary() ? temporary_mark : replaced_mark);
  if (dash == std::string::npos || run_id.empty()) return false;
  const std::string_view owner =
      std::string_view(mark).substr(dash + (temporary() ? temporary_mark : replaced_mark).size());
  return owner.starts_with(run_id) && owner.substr(run_id.size()).starts_with('.');
}

std::optional<StepName> parse_step_name(const std::string& name) {
  constexpr std::string_view prefix = "step_";
  if (!name.starts_with(prefix)) return std::nullopt;
  StepName result;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, result.step);
  if (error != std::errc() || result.step < 0) return std::nullopt;
  result.base.assign(name.data(), stop);
  result.mark.assign(stop, end);
  const bool known = result.mark.empty() || result.temporary() || result.replaced();
  return known && result.base == checkpoint_name(result.step) ? std::optional(result) : std::nullopt;
}

std::vector<StepFolder> find_step_folders(const fs::path& run_folder) {
  std::vector<StepFolder> found;
  std::error_code error;
  for (fs::directory_iterator it(run_folder, error), end; !error && it != end; it.increment(error)) {
    if (const auto name = parse_step_name(it->path().filename().string())) found.push_back({it->path(), *name});
  }
  if (error && error != std::errc::no_such_file_or_directory) throw fs::filesystem_error("list", run_folder, error);
  return found;
}

bool holds_step(const std::vector<StepFolder>& folders, const std::string& name) {
  return std::ranges::any_of(folders, [&](const StepFolder& f) { return f.name.mark.empty() && f.name.base == name; });
}

}  // namespace lamina
