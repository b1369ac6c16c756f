// Oniguruma's Ruby syntax, as far as both engines agree, to PCRE2's.
#include "json_node.hpp"
#include "regex.hpp"
#include "unicode_tables.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>

namespace lamina {

namespace {

using unicode::CodeRange;

std::string class_ranges(std::span<const CodeRange> ranges) {
  std::string out;
  for (const auto& range : ranges) {
    out += fmt::format("\\x{{{:x}}}", static_cast<unsigned>(range.first));
    if (range.last != range.first) out += fmt::format("-\\x{{{:x}}}", static_cast<unsigned>(range.last));
  }
  return out;
}

std::string complement(std::span<const CodeRange> ranges) {
  std::vector<CodeRange> gaps;
  char32_t next = 0;
  const auto gap = [&](char32_t first, char32_t last) {
    if (first <= last) gaps.push_back({first, last});
  };
  for (const auto& range : ranges) {
    gap(next, range.first - 1);
    next = range.last + 1;
  }
  gap(next, 0x10FFFF);
  return class_ranges(gaps);
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : rest_(pattern) {}

  std::string run() {
    while (!rest_.empty()) {
      const char c = take();
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (c == '(') {
        group();
      } else if (c == '{') {
        interval();
      } else if (c == '^' || c == '$') {
        refuse(fmt::format("'{}' is not supported", c));
      } else {
        out_.push_back(c);
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] static void refuse(const std::string& why) { throw std::invalid_argument("in the pattern " + why); }

  char take() {
    if (rest_.empty()) refuse("something is cut off at the end");
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  void set(const std::string& members, bool negated, bool in_class) {
    if (!in_class) {
      out_ += fmt::format("[{}{}]", negated ? "^" : "", members);
    } else if (negated) {
      refuse("a negated property inside a class is not supported");
    } else {
      out_ += members;
    }
  }

  void property(bool negated, bool in_class) {
    if (!skip("{")) refuse("\\p must be followed by '{'");
    if (skip("^")) negated = !negated;
    const std::size_t close = rest_.find('}');
    if (close == std::string_view::npos) refuse("a property name is not closed");
    const std::string_view name = rest_.substr(0, close);
    rest_.remove_prefix(close + 1);
    for (const auto& entry : unicode::property_additions()) {
      if (entry.name != name) continue;
      // ASCII letters and digits by name first: PCRE2 tests them with one bit before it looks up properties.
      const char* quick = name == "L" ? "A-Za-z" : name == "N" || name == "Nd" ? "0-9" : "";
      return set(fmt::format("{}\\p{{{}}}{}", quick, name, class_ranges(entry.ranges)), negated, in_class);
    }
    refuse(fmt::format("property {} is not supported", in_quotes(name)));
  }

  void hex_code(std::size_t digits) {
    unsigned value = 0;
    const std::string_view text = rest_.substr(0, digits);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || end == text.data() || end != text.data() + text.size() || value > 0x10FFFF) {
      refuse("a hexadecimal character code is malformed");
    }
    rest_.remove_prefix(digits);
    out_ += fmt::format("\\x{{{:x}}}", value);
  }

  void hex_escape() {
    if (!skip("{")) return hex_code(2);
    const std::size_t close = rest_.find('}');
    if (close == std::string_view::npos) refuse("a hexadecimal character code is malformed");
    hex_code(close);
    rest_.remove_prefix(1);
  }

  void escape(bool in_class) {
    const char c = take();
    switch (c) {
      case 's':
        return set(class_ranges(unicode::white_space), false, in_class);
      case 'S':
        if (in_class) return set(complement(unicode::white_space), false, true);
        return set(class_ranges(unicode::white_space), true, false);
      case 'd':
      case 'D':
        return digit(c == 'D', in_class);
      case 'p':
      case 'P':
        return property(c == 'P', in_class);
      case 'u':
        return hex_code(4);
      case 'x':
        return hex_escape();
      case 'n':
      case 'r':
      case 't':
      case 'f':
        out_ += {'\\', c};
        return;
      case 'v':
        out_ += "\\x{b}";
        return;
      default:
        break;
    }
    const auto byte = static_cast<unsigned char>(c);
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (byte >= 0x80 || alphanumeric) refuse(fmt::format("'\\{}' is not supported", byte < 0x80 ? c : '?'));
    out_ += {'\\', c};
  }

  void digit(bool negated, bool in_class) {
    for (const auto& entry : unicode::property_additions()) {
      if (entry.name == "Nd") return set("0-9\\p{Nd}" + class_ranges(entry.ranges), negated, in_class);
    }
  }

  void character_class() {
    out_ += skip("^") ? "[^" : "[";
    for (bool first = true;; first = false) {
      if (rest_.starts_with("&&")) refuse("'&&' in a class is not supported");
      const char c = take();
      if (c == ']') {
        if (first) refuse("an empty class or a class that starts with ']' is not supported");
        out_.push_back(c);
        return;
      }
      if (c == '[') refuse("'[' in a class is not supported");
      if (c == '\\') {
        escape(true);
      } else {
        out_.push_back(c);
      }
    }
  }

  void group() {
    out_.push_back('(');
    if (rest_.starts_with("*")) refuse("'(*' is not supported");
    if (!skip("?")) return;
    for (const std::string_view known : {"i:", ":", "=", "!", ">", "<=", "<!"}) {
      if (skip(known)) {
        out_.append("?").append(known);
        return;
      }
    }
    refuse(fmt::format("group '(?{}' is not supported", rest_.substr(0, 1)));
  }

  // {n}, {n,}, {n,m}: Oniguruma reads other braces and a following '+' otherwise than PCRE2 does.
  void interval() {
    const std::size_t close = rest_.find('}');
    if (close == std::string_view::npos) refuse("a '{' is not closed");
    const std::string_view body = rest_.substr(0, close);
    const bool well_formed = !body.empty() && body.front() != ',' && std::count(body.begin(), body.end(), ',') <= 1 &&
                             body.find_first_not_of("0123456789,") == std::string_view::npos;
    if (!well_formed) refuse("'{' is not followed by counts");
    rest_.remove_prefix(close + 1);
    if (rest_.starts_with("+")) refuse("'}+' is not supported");
    out_.append("{").append(body).append("}");
  }

  std::string_view rest_;
  std::string out_;
};

}  // namespace

std::string translate_pattern(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace lamina
