// Makers of ConfigOptions: each binds one field of RunConfig to its notation.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lamina/config/command_line.hpp>
#include <lamina/config/parse_value.hpp>

#include <fmt/format.h>

namespace lamina::detail {

// Where a value lies inside RunConfig.
template <class Section, class Value>
struct Field {
  Section RunConfig::*section;
  Value Section::*member;

  [[nodiscard]] Value& in(RunConfig& config) const { return (config.*section).*member; }
  [[nodiscard]] const Value& in(const RunConfig& config) const { return (config.*section).*member; }
};

template <class Section, class Value>
Field<Section, Value> field(Section RunConfig::*section, Value Section::*member) {
  return {section, member};
}

template <class F>
ConfigOption text_option(std::string section, std::string key, std::string value_name, std::string explanation, F f) {
  return {std::move(section),
          std::move(key),
          std::move(value_name),
          std::move(explanation),
          [f](RunConfig& config, std::string_view text, std::string_view what) {
            f.in(config) = parse_plain_text(text, what);
          },
          [f](const RunConfig& config) { return f.in(config); }};
}

template <class F>
ConfigOption integer_option(std::string section, std::string key, std::string explanation, IntegerRange range, F f) {
  const bool bounded = range.highest != IntegerRange{}.highest;
  return {std::move(section),
          std::move(key),
          bounded ? fmt::format("{}..{}", range.lowest, range.highest) : fmt::format("N >= {}", range.lowest),
          std::move(explanation),
          [f, range](RunConfig& config, std::string_view text, std::string_view what) {
            f.in(config) = parse_integer(text, what, range);
          },
          [f](const RunConfig& config) { return fmt::format("{}", f.in(config)); }};
}

template <class F>
ConfigOption seed_option(std::string section, std::string key, std::string explanation, F f) {
  return {std::move(section),
          std::move(key),
          "N >= 0",
          std::move(explanation),
          [f](RunConfig& config, std::string_view text, std::string_view what) {
            f.in(config) = parse_unsigned(text, what);
          },
          [f](const RunConfig& config) { return fmt::format("{}", f.in(config)); }};
}

template <class F>
ConfigOption number_option(std::string section, std::string key, std::string value_name, std::string explanation, F f) {
  return {
      std::move(section),
      std::move(key),
      std::move(value_name),
      std::move(explanation),
      [f](RunConfig& config, std::string_view text, std::string_view what) { f.in(config) = parse_number(text, what); },
      [f](const RunConfig& config) { return number_text(f.in(config)); }};
}

template <class F>
ConfigOption switch_option(std::string section, std::string key, std::string explanation, F f) {
  return {
      std::move(section),
      std::move(key),
      "yes|no",
      std::move(explanation),
      [f](RunConfig& config, std::string_view text, std::string_view what) { f.in(config) = parse_switch(text, what); },
      [f](const RunConfig& config) { return std::string(f.in(config) ? "yes" : "no"); }};
}

// `names` in the order of the enumerators, which count from 0.
template <class F>
ConfigOption choice_option(std::string section, std::string key, std::vector<std::string> names,
                           std::string explanation, F f) {
  return {std::move(section),
          std::move(key),
          fmt::format("{}", fmt::join(names, "|")),
          std::move(explanation),
          [f, names](RunConfig& config, std::string_view text, std::string_view what) {
            auto& value = f.in(config);
            value = static_cast<std::remove_reference_t<decltype(value)>>(parse_choice(text, what, names));
          },
          [f, names](const RunConfig& config) { return names.at(static_cast<std::size_t>(f.in(config))); }};
}

template <class F>
ConfigOption text_choice_option(std::string section, std::string key, std::vector<std::string> names,
                                std::string explanation, F f) {
  return {std::move(section),
          std::move(key),
          fmt::format("{}", fmt::join(names, "|")),
          std::move(explanation),
          [f, names](RunConfig& config, std::string_view text, std::string_view what) {
            f.in(config) = names[parse_choice(text, what, names)];
          },
          [f](const RunConfig& config) { return f.in(config); }};
}

}  // namespace lamina::detail
