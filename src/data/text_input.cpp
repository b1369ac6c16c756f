#include "text_input.hpp"

#include "file_kind.hpp"

#include <utility>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina::detail {

namespace {

constexpr std::size_t head_bytes = 1024;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
constexpr std::string_view blanks = " \t\r\n";

TextFormat format_of(const std::filesystem::path& path, TextFormat asked) {
  if (asked != TextFormat::automatic) return asked;
  if (!is_text_name(path)) {
    throw UsageError(one_line(fmt::format("{}: unknown kind of text", path.string()),
                              "its name ends in none of .txt, .jsonl and .json, also followed by .gz",
                              "say what it is with --format text or --format jsonl"));
  }
  return text_extension(path) == ".txt" ? TextFormat::text : TextFormat::json_lines;
}

GzipStream open_stream(const std::filesystem::path& path) {
  InputFile file(path);
  refuse_foreign_kind(file.head(head_bytes), file.name());
  return GzipStream(std::move(file));
}

}  // namespace

void JsonListLines::refuse(std::string_view problem) const {
  throw DataError(one_line(fmt::format("{}: element {}: {}", name_, element_, problem),
                           "the file begins as a JSON list, [element, element, ...]", "repair the file"));
}

void JsonListLines::end_element(bool last) {
  // [] is a list; [1,] and [,1] are not.
  if (!has_value_ && !(last && element_ == 1)) refuse("nothing stands before the comma or the end of the list");
  has_value_ = false;
  if (!last) ++element_;
}

void JsonListLines::add_structure(char c, std::string& lines) {
  const bool blank = blanks.find(c) != std::string_view::npos;
  if (closed_) {
    if (!blank) refuse("text behind the end of the list");
    return;
  }
  if (c == '[' || c == '{') {
    if (depth_++ == 0) return;
  } else if (c == ']' || c == '}') {
    if (--depth_ == 0) {
      if (c != ']') refuse("the list ends with }");
      end_element(true);
      closed_ = true;
      lines.push_back('\n');
      return;
    }
  } else if (c == ',' && depth_ == 1) {
    end_element(false);
    lines.push_back('\n');
    return;
  }
  in_text_ = c == '"';
  has_value_ = has_value_ || !blank;
  lines.push_back(blank ? ' ' : c);
}

void JsonListLines::add(std::string_view text, std::string& lines) {
  for (const char c : text) {
    if (!in_text_) {
      add_structure(c, lines);
      continue;
    }
    if (c == '\n') refuse("a raw line break inside a text; JSON has \\n there");
    lines.push_back(c);
    if (!escaped_ && c == '"') in_text_ = false;
    escaped_ = !escaped_ && c == '\\';
  }
}

void JsonListLines::end() const {
  if (!closed_) refuse("the file ends in the middle of the list");
}

TextInput::TextInput(const std::filesystem::path& path, TextFormat format)
    : stream_(open_stream(path)), format_(format_of(path, format)) {
  stream_.read(head_bytes, head_);
  refuse_foreign_kind(std::as_bytes(std::span(head_)), name());
  refuse_wide_text(std::as_bytes(std::span(head_)), name());
  // The signature that some editors put before UTF-8 is neither text nor JSON.
  if (head_.starts_with(byte_order_mark)) head_.erase(0, byte_order_mark.size());
  if (format_ == TextFormat::text) return;
  const std::size_t first = head_.find_first_not_of(blanks);
  if (first == std::string::npos || head_[first] != '[') return;
  head_.erase(0, first);
  list_.emplace(name());
}

std::string TextInput::place_of_line(std::size_t line) const {
  return fmt::format("{}:{}{}", name(), list_ ? " element " : "", line);
}

void TextInput::read(std::size_t bytes, std::string& out) {
  if (at_end() || bytes == 0) return;
  if (!stream_.at_end() && head_.size() < bytes) stream_.read(bytes - head_.size(), head_);
  if (list_) {
    list_->add(head_, out);
    if (stream_.at_end()) list_->end();
  } else {
    out += head_;
  }
  head_.clear();
}

}  // namespace lamina::detail
