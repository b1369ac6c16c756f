// json.dumps for values of templates.
#include "jinja_value.hpp"
#include "utf8.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace lamina::jinja {

namespace {

void put_escape(std::string& out, char32_t code) {
  const auto unit = [&](std::uint32_t value) { out += fmt::format("\\u{:04x}", value); };
  const auto number = static_cast<std::uint32_t>(code);
  if (number < 0x10000) return unit(number);
  unit(0xD800 + ((number - 0x10000) >> 10));
  unit(0xDC00 + ((number - 0x10000) & 0x3FF));
}

std::string json_quoted(std::string_view text, bool ensure_ascii) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto [code, size] = utf8::decode_first(text);
    const std::string_view character = text.substr(0, size);
    text.remove_prefix(size);
    constexpr std::string_view plain_escapes = "\"\\\n\r\t\b\f", letters = "\"\\nrtbf";
    const std::size_t known = size == 1 ? plain_escapes.find(character.front()) : std::string_view::npos;
    if (known != std::string_view::npos) {
      out += '\\';
      out += letters[known];
    } else if (code < 0x20 || (ensure_ascii && code > 0x7E)) {
      put_escape(out, code);
    } else {
      out += character;
    }
  }
  return out + '"';
}

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {
    if (style_.item_separator.empty()) style_.item_separator = style.indent < 0 ? ", " : ",";
    if (style_.key_separator.empty()) style_.key_separator = ": ";
  }

  void write(const Value& value, std::size_t depth) {
    if (value.is_none()) return plain("null");
    if (const bool* boolean = value.boolean()) return plain(*boolean ? "true" : "false");
    if (const double* real = value.real()) {
      return plain(std::isnan(*real)   ? "NaN"
                   : std::isinf(*real) ? (*real > 0 ? "Infinity" : "-Infinity")
                                       : python_float(*real));
    }
    if (const Text* text = value.text())
      return append(out, with_bytes(*text, json_quoted(text->bytes, style_.ensure_ascii)));
    if (value.integer() != nullptr) return append(out, to_text(value));
    if (const List* list = value.list()) {
      return container('[', ']', list->size(), depth, [&](std::size_t i) { write((*list)[i], depth + 1); });
    }
    if (value.map() == nullptr) throw TemplateError(fmt::format("a {} has no JSON form", value.kind()));
    std::vector<const std::pair<std::string, Value>*> entries;
    for (const auto& entry : value.map()->entries) entries.push_back(&entry);
    if (style_.sort_keys)
      std::ranges::sort(entries, {}, [](const auto* entry) { return std::string_view(entry->first); });
    container('{', '}', entries.size(), depth, [&](std::size_t i) {
      plain(json_quoted(entries[i]->first, style_.ensure_ascii) + style_.key_separator);
      write(entries[i]->second, depth + 1);
    });
  }

  Text out;

 private:
  void plain(const std::string& text) { append(out, {text, 1, 0, {}}); }

  template <typename Item>
  void container(char open, char close, std::size_t size, std::size_t depth, Item&& item) {
    if (size == 0) return plain({open, close});
    const auto line = [&](std::size_t level) {
      if (style_.indent >= 0) plain("\n" + std::string(level * static_cast<std::size_t>(style_.indent), ' '));
    };
    plain(std::string(1, open));
    for (std::size_t i = 0; i < size; ++i) {
      if (i > 0) plain(style_.item_separator);
      line(depth + 1);
      item(i);
    }
    line(depth);
    plain(std::string(1, close));
  }

  JsonStyle style_;
};

}  // namespace

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::fabs(value);
  char buffer[64];
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  std::string text(buffer, end);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

Text to_json(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace lamina::jinja
