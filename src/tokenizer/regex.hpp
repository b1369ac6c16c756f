// Regular expressions of tokenizer.json (Oniguruma syntax there) on PCRE2 with UTF, UCP and JIT.
//
// The pattern is translated so that character properties mean what they mean in the `tokenizers` library (Unicode 16,
// \s = White_Space), whatever Unicode version PCRE2 was built with. Constructs that the two engines read differently
// are refused, not guessed.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lamina {

// Match memory of one thread; may serve any number of expressions, one search at a time.
class RegexScratch {
 public:
  RegexScratch();

 private:
  friend class Regex;
  struct Free {
    void operator()(void* memory) const noexcept;
  };
  struct FreeContext {
    void operator()(void* memory) const noexcept;
  };
  struct FreeStack {
    void operator()(void* memory) const noexcept;
  };
  std::unique_ptr<void, Free> match_data_;
  std::unique_ptr<void, FreeStack> stack_;
  std::unique_ptr<void, FreeContext> context_;
};

class Regex {
 public:
  struct Match {
    std::size_t begin, end;
  };

  // `pattern` as tokenizer.json writes it. Throws std::invalid_argument saying what cannot be honoured.
  explicit Regex(std::string_view pattern);
  // An expression that matches `text` itself.
  [[nodiscard]] static Regex literal(std::string_view text);

  // The first match in valid UTF-8 `text` at or after byte `from`. Throws DataError when matching needs more memory or
  // steps than any sane pattern does.
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from, RegexScratch& scratch) const;

 private:
  struct Free {
    void operator()(void* code) const noexcept;
  };
  Regex() = default;
  void compile(std::string_view translated);
  std::unique_ptr<void, Free> code_;
  bool jit_ = false;
};

// Calls `visit(begin, end)` for each match from left to right, empty ones included once each place, as `tokenizers`
// does.
template <typename Visit>
void for_each_match(const Regex& regex, std::string_view text, RegexScratch& scratch, Visit&& visit) {
  std::size_t from = 0;
  std::size_t last_end = std::string_view::npos;
  while (from <= text.size()) {
    const auto match = regex.find(text, from, scratch);
    if (!match) return;
    if (match->begin == match->end && match->end == last_end) {
      ++from;
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
      continue;
    }
    visit(match->begin, match->end);
    from = last_end = match->end;
  }
}

// The PCRE2 form of an Oniguruma pattern. Throws std::invalid_argument.
[[nodiscard]] std::string translate_pattern(std::string_view pattern);

}  // namespace lamina
