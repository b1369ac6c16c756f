#include "jinja_lexer.hpp"

#include "jinja_value.hpp"
#include "utf8.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace lamina::jinja {

namespace {

constexpr auto npos = std::string_view::npos;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_word_start(c) || is_digit(c); }

std::string unix_lines(std::string_view source) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(unix_lines(source)), rest_(text_) {}

  std::vector<Token> run() {
    while (!rest_.empty()) {
      const std::size_t tag = next_tag();
      data(rest_.substr(0, tag), rest_.substr(tag));
      advance(tag);
      if (!rest_.empty()) take_tag();
    }
    put(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string_view why) const { throw TemplateError(fmt::format("line {}: {}", line_, why)); }

  void put(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void advance(std::size_t size) {
    line_ += static_cast<int>(std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(size), '\n'));
    rest_.remove_prefix(size);
  }

  [[nodiscard]] std::size_t next_tag() const {
    for (std::size_t at = rest_.find('{'); at != npos; at = rest_.find('{', at + 1)) {
      if (at + 1 < rest_.size() && std::string_view("{%#").find(rest_[at + 1]) != npos) return at;
    }
    return rest_.size();
  }

  // Text outside tags, after the rules of the tag behind it.
  void data(std::string_view text, std::string_view tag) {
    const char sign = tag.size() > 2 ? tag[2] : ' ';
    if (sign == '-') {
      while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    } else if (!tag.empty() && tag[1] != '{' && sign != '+') {
      const std::size_t line = text.rfind('\n') + 1;  // npos + 1 = 0
      const bool blank = std::all_of(text.begin() + static_cast<std::ptrdiff_t>(line), text.end(), is_space);
      if (blank && (line > 0 || line_start_)) text = text.substr(0, line);
    }
    if (!text.empty()) put(TokenKind::data, std::string(text));
  }

  void take_tag() {
    const char kind = rest_[1];
    advance(2);
    if (kind == '#') {
      const std::size_t close = rest_.find("#}");
      if (close == npos) fail("a comment is not closed");
      const char sign = close > 0 ? rest_[close - 1] : ' ';
      advance(close + 2);
      return after_tag(sign, true);
    }
    if (rest_.starts_with('-') || rest_.starts_with('+')) advance(1);
    const bool output = kind == '{';
    put(output ? TokenKind::output_begin : TokenKind::block_begin, "");
    depth_.clear();
    const std::string_view end = output ? "}}" : "%}";
    for (;;) {
      skip_spaces();
      if (rest_.empty()) fail("a tag is not closed");
      const bool signed_end = (rest_.front() == '-' || rest_.front() == '+') && rest_.substr(1).starts_with(end);
      if (depth_.empty() && (signed_end || rest_.starts_with(end))) {
        const char sign = signed_end ? rest_.front() : ' ';
        put(output ? TokenKind::output_end : TokenKind::block_end, "");
        advance(signed_end ? 3 : 2);
        return after_tag(sign, !output);
      }
      take_item();
    }
  }

  void after_tag(char sign, bool trims) {
    std::size_t size = 0;
    if (sign == '-') {
      while (size < rest_.size() && is_space(rest_[size])) ++size;
    } else if (sign != '+' && trims && rest_.starts_with('\n')) {
      size = 1;
    }
    line_start_ = size > 0 && rest_[size - 1] == '\n';
    advance(size);
  }

  void skip_spaces() {
    std::size_t size = 0;
    while (size < rest_.size() && is_space(rest_[size])) ++size;
    advance(size);
  }

  void take_item() {
    const char c = rest_.front();
    if (c == '\'' || c == '"') return take_text(c);
    if (is_digit(c)) return take_number();
    if (is_word_start(c)) {
      std::size_t size = 1;
      while (size < rest_.size() && is_word(rest_[size])) ++size;
      put(TokenKind::name, std::string(rest_.substr(0, size)));
      return advance(size);
    }
    constexpr std::array<std::string_view, 26> signs = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                        "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                        ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const auto found = std::ranges::find_if(signs, [&](std::string_view sign) { return rest_.starts_with(sign); });
    if (found == signs.end())
      fail(fmt::format("'{}' is not understood", rest_.substr(0, utf8::next_sequence(rest_).size)));
    if (std::string_view("([{").find(c) != npos) depth_.push_back(c);
    if (std::string_view(")]}").find(c) != npos) {
      if (depth_.empty()) fail(fmt::format("'{}' closes nothing", c));
      depth_.pop_back();
    }
    put(TokenKind::sign, std::string(*found));
    advance(found->size());
  }

  void take_number() {
    std::size_t size = 1;
    bool real = false;
    while (size < rest_.size()) {
      const bool point = rest_[size] == '.' && !real && size + 1 < rest_.size() && is_digit(rest_[size + 1]);
      if (!is_digit(rest_[size]) && rest_[size] != '_' && !point) break;
      real = real || point;
      ++size;
    }
    std::string digits(rest_.substr(0, size));
    std::erase(digits, '_');
    put(real ? TokenKind::real : TokenKind::integer, digits);
    advance(size);
  }

  void take_text(char quote) {
    std::string text;
    std::size_t at = 1;
    while (at < rest_.size() && rest_[at] != quote) {
      if (rest_[at] == '\\' && at + 1 < rest_.size()) {
        at = escape(at + 1, text);
      } else {
        text += rest_[at++];
      }
    }
    if (at >= rest_.size()) fail("a text is not closed");
    put(TokenKind::text, std::move(text));
    advance(at + 1);
  }

  // Python's escapes; `at` is behind the backslash. Returns where the text goes on.
  std::size_t escape(std::size_t at, std::string& out) const {
    constexpr std::string_view names = "ntr\\'\"abfv", values = "\n\t\r\\'\"\a\b\f\v";
    const char c = rest_[at];
    if (const std::size_t known = names.find(c); known != npos) {
      out += values[known];
      return at + 1;
    }
    if (c == '\n') return at + 1;
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0 && !(c >= '0' && c <= '7') && c != 'N') {
      out += '\\';
      return at;
    }
    const std::string_view written = rest_.substr(at + 1, digits);
    std::uint32_t code = 0;
    for (const char digit : written) {
      const std::size_t value =
          std::string_view("0123456789abcdef").find(static_cast<char>(digit | (is_digit(digit) ? 0 : 0x20)));
      if (value == npos) fail("an escape in a text is not understood");
      code = code * 16 + static_cast<std::uint32_t>(value);
    }
    if (digits == 0 || written.size() < digits || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      fail("an escape in a text is not understood");
    }
    utf8::append(out, code);
    return at + 1 + digits;
  }

  std::string text_;
  std::string_view rest_;
  std::vector<Token> tokens_;
  std::string depth_;  // brackets that are open
  int line_ = 1;
  bool line_start_ = true;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace lamina::jinja
