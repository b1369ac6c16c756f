#include <lamina/base/error.hpp>
#include <lamina/config/parse_value.hpp>
#include <lamina/config/step_range.hpp>

#include <fmt/format.h>

namespace lamina {

StepRange parse_step_range(std::string_view text, std::string_view what) {
  const std::size_t colon = text.find(':');
  StepRange range;
  range.first = parse_integer(text.substr(0, colon), what, {1});
  range.last = colon == std::string_view::npos ? range.first : parse_integer(text.substr(colon + 1), what, {1});
  if (range.last < range.first)
    throw UsageError(one_line(fmt::format("{} is {}", what, text), "it ends before it begins", "write FIRST:LAST"));
  return range;
}

}  // namespace lamina
