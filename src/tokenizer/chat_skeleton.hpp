// Jinja templates reduced to what they say, so that two that differ in spacing, quotes or comments compare equal.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lamina {

// One canonical line of `text`: tags without optional space, strings in single quotes with escapes resolved, x['name']
// as x.name, no comments; text outside tags after Jinja's trim_blocks and lstrip_blocks (as transformers sets them).
// Throws std::invalid_argument when the text is not a sequence of tags and text.
[[nodiscard]] std::string chat_skeleton(std::string_view text);

// Matches a skeleton against a pattern, itself a skeleton in which the tag {%*%} stands for anything and @name@ inside
// a string for the text of (that part of) a string; equal names stand for equal text. Gives the named texts, or
// nothing.
using ChatTexts = std::map<std::string, std::string>;
[[nodiscard]] std::optional<ChatTexts> match_skeleton(std::string_view pattern, std::string_view skeleton);

}  // namespace lamina
