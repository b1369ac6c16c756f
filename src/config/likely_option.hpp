// The option that somebody meant: habits from other trainers, sections left out, abbreviations, slips of the keyboard.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lamina::detail {

// `name` without dashes in front, as it was written; `known` are full names ("train.steps", "max_tokens"). Empty when
// none is likely.
[[nodiscard]] std::string likely_option(std::string_view name, std::span<const std::string> known);

}  // namespace lamina::detail
