#include <filesystem>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

void require(bool condition, std::string_view what, std::source_location where) {
  if (condition) return;
  throw InternalError(fmt::format("internal check failed: {} ({}:{})", what,
                                  std::filesystem::path(where.file_name()).filename().string(), where.line()));
}

}  // namespace lamina
