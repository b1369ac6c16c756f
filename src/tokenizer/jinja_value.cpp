#include "jinja_value.hpp"

#include "utf8.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <utf8proc.h>

namespace lamina::jinja {

const Value* Map::find(std::string_view key) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == key; });
  return found == entries.end() ? nullptr : &found->second;
}

double Value::number() const {
  if (const bool* value = boolean()) return *value ? 1 : 0;
  if (const auto* value = integer()) return static_cast<double>(*value);
  return *real();
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return number() != 0;
  if (text() != nullptr) return !text()->bytes.empty();
  if (list() != nullptr) return !list()->empty();
  if (map() != nullptr) return !map()->entries.empty();
  return true;
}

const char* Value::kind() const {
  if (is_undefined()) return "undefined";
  if (is_none()) return "None";
  if (boolean() != nullptr) return "bool";
  if (integer() != nullptr) return "int";
  if (real() != nullptr) return "float";
  if (text() != nullptr) return "str";
  if (list() != nullptr) return "list";
  if (map() != nullptr) return "dict";
  return space() != nullptr ? "namespace" : "function";
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.integer() != nullptr && b.integer() != nullptr) return *a.integer() == *b.integer();
    return a.number() == b.number();
  }
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.text() != nullptr && b.text() != nullptr) return a.text()->bytes == b.text()->bytes;
  if (a.list() != nullptr && b.list() != nullptr) return std::ranges::equal(*a.list(), *b.list(), equal);
  if (a.map() != nullptr && b.map() != nullptr) {
    if (a.map() == b.map()) return true;
    if (a.map()->entries.size() != b.map()->entries.size()) return false;
    return std::ranges::all_of(a.map()->entries, [&](const auto& entry) {
      const Value* other = b.map()->find(entry.first);
      return other != nullptr && equal(entry.second, *other);
    });
  }
  return a.space() != nullptr && a.space() == b.space();
}

int compare(const Value& a, const Value& b) {
  const auto sign = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.integer() != nullptr && b.integer() != nullptr) return sign(*a.integer(), *b.integer());
  if (a.is_number() && b.is_number()) return sign(a.number(), b.number());
  if (a.text() != nullptr && b.text() != nullptr) return sign(a.text()->bytes, b.text()->bytes);
  throw TemplateError(fmt::format("{} and {} have no order", a.kind(), b.kind()));
}

void add_sources(Sources& out, const Sources& more) {
  if (more.empty()) return;
  if (out.empty()) {
    out = more;
    return;
  }
  Sources both;
  std::ranges::set_union(out, more, std::back_inserter(both));
  out = std::move(both);
}

void collect_sources(const Value& value, Sources& out) {
  if (const Text* text = value.text()) add_sources(out, text->sources);
  if (const List* list = value.list()) {
    for (const Value& item : *list) collect_sources(item, out);
  }
  if (const Map* map = value.map()) {
    for (const auto& entry : map->entries) collect_sources(entry.second, out);
  }
}

void append(Text& out, const Text& more) {
  const std::size_t begin = out.bytes.size();
  out.bytes += more.bytes;
  if (more.has_own()) {
    out.first = out.has_own() ? out.first : begin + more.first;
    out.last = begin + more.last;
  }
  add_sources(out.sources, more.sources);
}

Text part_of(const Text& text, std::size_t begin, std::size_t end) {
  Text part{text.bytes.substr(begin, end - begin), 1, 0, text.sources};
  if (text.has_own() && text.first <= end && text.last >= begin) {
    part.first = std::max(text.first, begin) - begin;
    part.last = std::min(text.last, end) - begin;
  }
  return part;
}

Text with_bytes(const Text& origin, std::string bytes) {
  Text out{std::move(bytes), 1, 0, origin.sources};
  if (origin.has_own()) {
    out.first = 0;
    out.last = out.bytes.size();
  }
  return out;
}

namespace {

bool printable(char32_t code) {
  if (code == ' ') return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

// Python's repr of a text.
std::string quoted(std::string_view text) {
  const bool twice = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = twice ? '"' : '\'';
  std::string out(1, quote);
  while (!text.empty()) {
    const auto [code, size] = utf8::decode_first(text);
    const std::string_view character = text.substr(0, size);
    text.remove_prefix(size);
    if (code == static_cast<char32_t>(quote) || code == '\\') {
      out += '\\';
      out += character;
    } else if (code == '\n' || code == '\r' || code == '\t') {
      out += code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
    } else if (printable(code)) {
      out += character;
    } else {
      const auto number = static_cast<std::uint32_t>(code);
      out += code < 0x100     ? fmt::format("\\x{:02x}", number)
             : code < 0x10000 ? fmt::format("\\u{:04x}", number)
                              : fmt::format("\\U{:08x}", number);
    }
  }
  return out + quote;
}

Text plain(std::string text) { return {std::move(text), 1, 0, {}}; }

Text container_repr(const Value& value) {
  const bool list = value.list() != nullptr;
  Text out = plain(list ? "[" : "{");
  bool first = true;
  const auto next = [&] {
    if (!first) append(out, plain(", "));
    first = false;
  };
  if (list) {
    for (const Value& item : *value.list()) {
      next();
      append(out, to_repr(item));
    }
  } else {
    for (const auto& [key, item] : value.map()->entries) {
      next();
      append(out, plain(quoted(key) + ": "));
      append(out, to_repr(item));
    }
  }
  append(out, plain(list ? "]" : "}"));
  return out;
}

}  // namespace

Text to_text(const Value& value) {
  if (const Text* text = value.text()) return *text;
  if (value.is_undefined()) return {};
  if (value.is_none()) return plain("None");
  if (const bool* boolean = value.boolean()) return plain(*boolean ? "True" : "False");
  if (const auto* integer = value.integer()) return plain(fmt::format("{}", *integer));
  if (const double* real = value.real()) return plain(python_float(*real));
  if (value.list() != nullptr || value.map() != nullptr) return container_repr(value);
  throw TemplateError(fmt::format("a {} cannot be written", value.kind()));
}

Text to_repr(const Value& value) {
  if (const Text* text = value.text()) return with_bytes(*text, quoted(text->bytes));
  return to_text(value);
}

List items_of(const Value& value) {
  if (value.is_undefined()) return {};
  if (const List* list = value.list()) return *list;
  List out;
  if (const Map* map = value.map()) {
    for (const auto& entry : map->entries) out.emplace_back(entry.first);
    return out;
  }
  if (const Text* text = value.text()) {
    for (std::size_t at = 0; at < text->bytes.size();) {
      const std::size_t size = utf8::next_sequence(std::string_view(text->bytes).substr(at)).size;
      out.emplace_back(part_of(*text, at, at + size));
      at += size;
    }
    return out;
  }
  throw TemplateError(fmt::format("a {} cannot be visited item by item", value.kind()));
}

}  // namespace lamina::jinja
