// What Python does with texts, keeping where they come from.
#include "jinja_builtins.hpp"
#include "unicode_tables.hpp"
#include "utf8.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <utf8proc.h>

namespace lamina::jinja {

namespace {

bool is_python_space(char32_t code) { return unicode::is_white_space(code) || (code >= 0x1C && code <= 0x1F); }

char32_t upper(char32_t code) { return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))); }
char32_t lower(char32_t code) { return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))); }

}  // namespace

Text strip(const Text& text, Side side, const std::string* characters) {
  const std::string_view bytes = text.bytes;
  const auto goes = [&](std::string_view character) {
    if (characters != nullptr) return characters->find(character) != std::string::npos;
    return is_python_space(utf8::decode_first(character).code);
  };
  std::size_t begin = 0, end = bytes.size();
  while (side != Side::right && begin < end) {
    const std::size_t size = utf8::decode_first(bytes.substr(begin)).size;
    if (!goes(bytes.substr(begin, size))) break;
    begin += size;
  }
  while (side != Side::left && end > begin) {
    const std::size_t size = utf8::decode_last(bytes.substr(begin, end - begin)).size;
    if (!goes(bytes.substr(end - size, size))) break;
    end -= size;
  }
  return part_of(text, begin, end);
}

Text replace(const Text& text, const Text& from, const Text& to, std::int64_t most) {
  if (from.bytes.empty()) throw TemplateError("replace of the empty text");
  Text out;
  std::size_t at = 0;
  for (std::int64_t count = 0; most < 0 || count < most; ++count) {
    const std::size_t found = text.bytes.find(from.bytes, at);
    if (found == std::string::npos) break;
    append(out, part_of(text, at, found));
    // What takes the place of a message's own bytes counts as its own.
    const bool own = text.has_own() && found >= text.first && found + from.bytes.size() <= text.last;
    append(out, own ? with_bytes(text, to.bytes) : to);
    at = found + from.bytes.size();
  }
  append(out, part_of(text, at, text.bytes.size()));
  add_sources(out.sources, text.sources);
  return out;
}

Text change_case(const Text& text, const std::string& how) {
  std::string out;
  bool start = true;
  std::size_t first = 1, last = 0;
  for (std::size_t at = 0; at < text.bytes.size();) {
    const auto [code, size] = utf8::decode_first(std::string_view(text.bytes).substr(at));
    if (text.has_own() && at == text.first) first = out.size();
    const bool raise = how == "upper" || (how != "lower" && start);
    const char32_t changed = raise ? upper(code) : lower(code);
    const bool letter = upper(code) != code || lower(code) != code;
    start = how == "title" ? !letter && code != '\'' : false;
    utf8::append(out, changed);
    at += size;
    if (text.has_own() && at == text.last) last = out.size();
  }
  Text result{std::move(out), first, last, text.sources};
  if (text.has_own() && !result.has_own()) result.first = result.last = std::min(text.first, result.bytes.size());
  return result;
}

std::int64_t length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.list() != nullptr) return static_cast<std::int64_t>(value.list()->size());
  if (value.map() != nullptr) return static_cast<std::int64_t>(value.map()->entries.size());
  if (const Text* text = value.text()) {
    return std::ranges::count_if(text->bytes, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  }
  throw TemplateError(fmt::format("a {} has no length", value.kind()));
}

Value join(const Value& items, const Text& between) {
  Text out;
  bool first = true;
  for (const Value& item : items_of(items)) {
    if (!first) append(out, between);
    first = false;
    append(out, to_text(item));
  }
  return Value(std::move(out));
}

}  // namespace lamina::jinja
