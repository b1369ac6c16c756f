// Jinja's expressions from tokens.
#pragma once

#include "jinja_lexer.hpp"
#include "jinja_syntax.hpp"

#include <set>
#include <span>

namespace lamina::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::span<const Token> tokens) : tokens_(tokens) {}

  [[nodiscard]] ExpressionPtr expression();        // with an inline if
  [[nodiscard]] ExpressionPtr condition();         // without one
  [[nodiscard]] ExpressionPtr tuple();             // expression, or several with commas
  [[nodiscard]] std::vector<std::string> names();  // targets: a name or several with commas

  [[nodiscard]] const Token& here() const { return tokens_[at_]; }
  [[nodiscard]] bool is(TokenKind kind, std::string_view text = {}) const {
    return here().kind == kind && (text.empty() || here().text == text);
  }
  [[nodiscard]] bool is_sign(std::string_view text) const { return is(TokenKind::sign, text); }
  [[nodiscard]] bool is_name(std::string_view text) const { return is(TokenKind::name, text); }
  bool accept_sign(std::string_view text);
  bool accept_name(std::string_view text);
  const Token& take(TokenKind kind, std::string_view what);
  void expect_sign(std::string_view text);
  [[noreturn]] void fail(std::string_view why) const;
  [[nodiscard]] const std::set<std::string>& used_names() const { return used_; }

  // Counts nesting, so that no input exhausts the stack.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  using Rule = ExpressionPtr (ExpressionParser::*)();

  [[nodiscard]] const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  [[nodiscard]] ExpressionPtr make(ExpressionKind kind, std::string name = {}) const;
  [[nodiscard]] ExpressionPtr chain(Rule rule, std::initializer_list<std::string_view> signs);
  [[nodiscard]] ExpressionPtr joined(Rule rule, const char* word, ExpressionKind kind);
  [[nodiscard]] ExpressionPtr conjunction();
  [[nodiscard]] ExpressionPtr negation();
  [[nodiscard]] ExpressionPtr comparison();
  [[nodiscard]] ExpressionPtr sum();
  [[nodiscard]] ExpressionPtr concatenation();
  [[nodiscard]] ExpressionPtr product();
  [[nodiscard]] ExpressionPtr filtered();
  [[nodiscard]] ExpressionPtr signed_primary();
  [[nodiscard]] ExpressionPtr primary();
  [[nodiscard]] ExpressionPtr container(std::string_view close, ExpressionKind kind);
  [[nodiscard]] ExpressionPtr postfix(ExpressionPtr inner);
  [[nodiscard]] ExpressionPtr subscript(ExpressionPtr inner);
  [[nodiscard]] ExpressionPtr test(ExpressionPtr inner);
  [[nodiscard]] std::string comparison_sign();
  void arguments(Expression& out);

  std::span<const Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::set<std::string> used_;
};

}  // namespace lamina::jinja
