#include "chat_skeleton.hpp"

#include <cctype>
#include <stdexcept>
#include <vector>

namespace lamina {

namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

void put_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\'' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
}

// What stands between two tags, and the tags themselves.
class Skeleton {
 public:
  explicit Skeleton(std::string_view text) : rest_(text) {
    // Jinja drops one newline at the very end.
    if (rest_.ends_with('\n')) rest_.remove_suffix(1);
  }

  std::string run() {
    while (!rest_.empty()) {
      const std::size_t tag = next_tag();
      plain(rest_.substr(0, tag), tag < rest_.size() ? rest_.substr(tag) : std::string_view());
      rest_.remove_prefix(tag);
      if (!rest_.empty()) take_tag();
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::size_t next_tag() const {
    for (std::size_t at = rest_.find('{'); at != std::string_view::npos; at = rest_.find('{', at + 1)) {
      if (at + 1 < rest_.size() && std::string_view("{%#").find(rest_[at + 1]) != std::string_view::npos) return at;
    }
    return rest_.size();
  }

  // Text outside tags, after the white space rules of the tags around it.
  void plain(std::string_view text, std::string_view tag) {
    if (strip_left_) {
      while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    } else if (after_block_ && text.starts_with('\n')) {
      text.remove_prefix(1);
    }
    if (tag.size() > 2 && tag[2] == '-') {
      while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    } else if (!tag.empty() && tag[1] != '{') {
      std::size_t keep = text.size();
      while (keep > 0 && (text[keep - 1] == ' ' || text[keep - 1] == '\t')) --keep;
      const bool line_start = keep == 0 ? (out_.empty() || after_block_) : text[keep - 1] == '\n';
      if (line_start) text = text.substr(0, keep);
    }
    if (text.empty()) return;
    out_ += "{{'";
    put_escaped(out_, text);
    out_ += "'}}";
  }

  void take_tag() {
    const char kind = rest_[1];
    rest_.remove_prefix(2);
    if (rest_.starts_with('-') || rest_.starts_with('+')) rest_.remove_prefix(1);
    if (kind == '#') {
      const std::size_t end = rest_.find("#}");
      if (end == std::string_view::npos) throw std::invalid_argument("a comment is not closed");
      close(end > 0 && rest_[end - 1] == '-', true);
      rest_.remove_prefix(end + 2);
      return;
    }
    out_ += kind == '{' ? "{{" : "{%";
    const std::string_view end = kind == '{' ? "}}" : "%}";
    bool trim = false;
    for (;;) {
      while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
      if (rest_.empty()) throw std::invalid_argument("a tag is not closed");
      trim = rest_.starts_with('-') && rest_.substr(1).starts_with(end);
      if (trim || rest_.starts_with(end)) break;
      take_item();
    }
    rest_.remove_prefix(trim ? 3 : 2);
    out_ += end;
    close(trim, kind == '%');
  }

  void close(bool trim, bool block) {
    strip_left_ = trim;
    after_block_ = block;
  }

  // A string, a word or a sign.
  void take_item() {
    const char c = rest_.front();
    if (c == '\'' || c == '"') return take_string();
    std::size_t size = 1;
    if (is_word(c)) {
      while (size < rest_.size() && is_word(rest_[size])) ++size;
      if (!out_.empty() && is_word(out_.back())) out_.push_back(' ');
    }
    out_ += rest_.substr(0, size);
    rest_.remove_prefix(size);
  }

  void take_string() {
    const char quote = rest_.front();
    std::string text;
    std::size_t at = 1;
    for (; at < rest_.size() && rest_[at] != quote; ++at) {
      char c = rest_[at];
      if (c == '\\' && at + 1 < rest_.size()) {
        c = rest_[++at];
        c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      }
      text.push_back(c);
    }
    if (at == rest_.size()) throw std::invalid_argument("a string is not closed");
    rest_.remove_prefix(at + 1);
    if (out_.ends_with('[') && member(text)) return;
    out_.push_back('\'');
    put_escaped(out_, text);
    out_.push_back('\'');
  }

  // x['name'] becomes x.name; the bracket before is already out.
  bool member(const std::string& text) {
    for (const char c : text) {
      if (!is_word(c)) return false;
    }
    std::string_view after = rest_;
    while (!after.empty() && is_space(after.front())) after.remove_prefix(1);
    const char before = out_.size() < 2 ? ' ' : out_[out_.size() - 2];
    if (text.empty() || !after.starts_with(']') || !(is_word(before) || before == ']' || before == ')')) return false;
    out_.back() = '.';
    out_ += text;
    rest_ = after.substr(1);
    return true;
  }

  std::string_view rest_;
  std::string out_;
  bool strip_left_ = false;
  bool after_block_ = false;
};

struct Part {
  enum class Kind { text, any, named } kind;
  std::string text;  // to match, or the name
};

std::vector<Part> parts_of(std::string_view pattern) {
  constexpr std::string_view any = "{%*%}";
  std::vector<Part> parts;
  std::string text;
  const auto flush = [&] {
    if (!text.empty()) parts.push_back({Part::Kind::text, text});
    text.clear();
  };
  while (!pattern.empty()) {
    const std::size_t close = pattern.front() == '@' ? pattern.find('@', 1) : std::string_view::npos;
    if (pattern.starts_with(any)) {
      flush();
      parts.push_back({Part::Kind::any, {}});
      pattern.remove_prefix(any.size());
    } else if (close != std::string_view::npos) {
      flush();
      parts.push_back({Part::Kind::named, std::string(pattern.substr(1, close - 1))});
      pattern.remove_prefix(close + 1);
    } else {
      text.push_back(pattern.front());
      pattern.remove_prefix(1);
    }
  }
  flush();
  return parts;
}

class Matcher {
 public:
  explicit Matcher(std::vector<Part> parts) : parts_(std::move(parts)) {}
  bool match(std::size_t index, std::string_view rest) {
    if (index == parts_.size()) return rest.empty();
    if (--budget_ < 0) return false;
    const Part& part = parts_[index];
    if (part.kind == Part::Kind::text) {
      return rest.starts_with(part.text) && match(index + 1, rest.substr(part.text.size()));
    }
    if (part.kind == Part::Kind::named && texts.contains(part.text)) {
      const std::string known = texts.at(part.text);
      return rest.starts_with(known) && match(index + 1, rest.substr(known.size()));
    }
    for (std::size_t size = 0; size <= rest.size(); ++size) {
      // A named text ends inside its string.
      if (part.kind == Part::Kind::named) {
        if (size > 0 && rest[size - 1] == '\\' && size < rest.size()) ++size;
        texts[part.text] = rest.substr(0, size);
      }
      if (match(index + 1, rest.substr(size))) return true;
      if (part.kind == Part::Kind::named && size < rest.size() && rest[size] == '\'') break;
    }
    texts.erase(part.text);
    return false;
  }
  ChatTexts texts;

 private:
  std::vector<Part> parts_;
  long budget_ = 10'000'000;
};

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out.push_back(text[i]);
  }
  return out;
}

}  // namespace

std::string chat_skeleton(std::string_view text) { return Skeleton(text).run(); }

std::optional<ChatTexts> match_skeleton(std::string_view pattern, std::string_view skeleton) {
  Matcher matcher(parts_of(pattern));
  if (!matcher.match(0, skeleton)) return std::nullopt;
  for (auto& [name, text] : matcher.texts) text = unescaped(text);
  return matcher.texts;
}

}  // namespace lamina
