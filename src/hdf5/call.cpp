#include "call.hpp"

#include <fmt/format.h>

namespace lamina::hdf5 {

namespace {

// The first record of an upward walk is where the failure happened.
herr_t keep_first(unsigned, const H5E_error2_t* record, void* target) {
  auto& text = *static_cast<std::string*>(target);
  if (text.empty() && record->desc != nullptr) text = record->desc;
  return 0;
}

// System errors come wrapped in times, descriptors and sizes: keep the system's own words.
std::string shorten(const std::string& text) {
  static constexpr std::string_view marker = "error message = '";
  const std::size_t begin = text.find(marker);
  if (begin == std::string::npos) return text;
  const std::size_t from = begin + marker.size();
  const std::size_t end = text.find('\'', from);
  return end == std::string::npos ? text : text.substr(from, end - from);
}

std::string reason() {
  std::string text;
  if (H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, &keep_first, &text) < 0 || text.empty()) text = "HDF5 gives no reason";
  return shorten(text);
}

// HDF5's clean-up at exit crashes after a failed close (a full disk, seen with 1.10.8). Files are closed by their
// owners.
bool leave_exit_alone() { return H5dont_atexit() >= 0; }

}  // namespace

void be_quiet() {
  static const bool no_exit_work = leave_exit_alone();  // must come before any other call
  static_cast<void>(no_exit_work);
  thread_local const bool done = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  static_cast<void>(done);
}

DataError failure(std::string_view attempt, std::string_view place) {
  return DataError(one_line(fmt::format("cannot {} {}", attempt, place), reason()));
}

}  // namespace lamina::hdf5
