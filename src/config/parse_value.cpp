#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>
#include <lamina/config/parse_value.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view what, std::string_view why, std::string_view fix) {
  throw UsageError(one_line(fmt::format("{}: cannot use '{}'", what, text), why, fix));
}

template <class Integer>
bool parse_digits(std::string_view text, Integer& value) {
  if (text.starts_with("+-")) return false;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool parse_decimal(std::string_view text, double& value) {
  if (text.starts_with("+-")) return false;
  if (text.starts_with('+')) text.remove_prefix(1);
  // from_chars also knows "inf" and "nan": finite numbers begin with a digit, a point or a minus.
  if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

// A decimal notation of an integer that a double holds exactly.
bool parse_exact(std::string_view text, std::int64_t& value) {
  double number = 0;
  if (!parse_decimal(text, number) || std::abs(number) > 0x1p53 || number != std::trunc(number)) return false;
  value = static_cast<std::int64_t>(number);
  return true;
}

std::string range_text(IntegerRange range) {
  const IntegerRange all;
  if (range.highest == all.highest) return fmt::format("write an integer of at least {}", range.lowest);
  if (range.lowest == all.lowest) return fmt::format("write an integer of at most {}", range.highest);
  return fmt::format("write an integer from {} to {}", range.lowest, range.highest);
}

}  // namespace

std::int64_t parse_integer(std::string_view text, std::string_view what, IntegerRange range) {
  std::int64_t value = 0;
  if (!parse_digits(text, value) && !parse_exact(text, value)) {
    refuse(text, what, "it is not an integer of 64 bits", "write digits only, such as 1000");
  }
  if (value < range.lowest || value > range.highest) refuse(text, what, "it is out of range", range_text(range));
  return value;
}

std::uint64_t parse_unsigned(std::string_view text, std::string_view what) {
  std::uint64_t value = 0;
  if (parse_digits(text, value)) return value;
  std::int64_t exact = 0;
  if (!parse_exact(text, exact) || exact < 0) {
    refuse(text, what, "it is not an integer from 0 to 2^64 - 1", "write digits only, such as 1234");
  }
  return static_cast<std::uint64_t>(exact);
}

double parse_number(std::string_view text, std::string_view what) {
  double value = 0;
  if (!parse_decimal(text, value)) {
    refuse(text, what, "it is not a finite decimal number", "write a number such as 0.1 or 3e-4");
  }
  return value;
}

bool parse_switch(std::string_view text, std::string_view what) {
  if (text == "yes" || text == "true") return true;
  if (text == "no" || text == "false") return false;
  refuse(text, what, "it is neither yes nor no", "write yes or no");
}

std::size_t parse_choice(std::string_view text, std::string_view what, std::span<const std::string> allowed) {
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (allowed[i] == text) return i;
  }
  const std::string nearest = nearest_name(text, allowed);
  refuse(text, what, fmt::format("known values are {}", fmt::join(allowed, ", ")),
         nearest.empty() ? "choose one of them" : fmt::format("did you mean {}?", nearest));
}

std::string parse_plain_text(std::string_view text, std::string_view what) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (text.find('#') != std::string_view::npos || std::any_of(text.begin(), text.end(), is_control)) {
    refuse(text, what, "a config file cannot hold '#' or control characters in a value", "use another name");
  }
  if (text.starts_with(' ') || text.ends_with(' ')) {
    refuse(text, what, "a config file drops blanks around a value", "remove them");
  }
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front()) {
    refuse(text, what, "quotes would be part of the value", "write the value without quotes");
  }
  return std::string(text);
}

std::string number_text(double value) { return fmt::format("{}", value); }

}  // namespace lamina
