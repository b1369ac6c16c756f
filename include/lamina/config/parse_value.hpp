// Text to values, strictly: the whole text is used, nothing is rounded, clipped or guessed.
//
// Each function throws UsageError "`text` is not a value of WHAT: why; what to write". `what` names the option for the
// message, e.g. "--train.steps" or "runs/a.ini:12: train.steps".
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace lamina {

struct IntegerRange {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  std::int64_t highest = std::numeric_limits<std::int64_t>::max();
};

// Decimal digits with an optional sign, or a decimal notation whose value is exactly an integer ("1e3", "2.5e4").
[[nodiscard]] std::int64_t parse_integer(std::string_view text, std::string_view what, IntegerRange range = {});
// The same without a sign, up to 2^64 - 1.
[[nodiscard]] std::uint64_t parse_unsigned(std::string_view text, std::string_view what);
// A finite decimal number.
[[nodiscard]] double parse_number(std::string_view text, std::string_view what);
// yes | true | no | false.
[[nodiscard]] bool parse_switch(std::string_view text, std::string_view what);
// The position of `text` in `allowed`; a miss names the nearest one.
[[nodiscard]] std::size_t parse_choice(std::string_view text, std::string_view what,
                                       std::span<const std::string> allowed);
// Text that a line of a config file can hold: no '#', no control character, no blank at either end, not in quotes. May
// be empty.
[[nodiscard]] std::string parse_plain_text(std::string_view text, std::string_view what);

// The shortest decimal text that parses back to exactly `value`.
[[nodiscard]] std::string number_text(double value);

}  // namespace lamina
