#include "jinja_expression_parser.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

namespace lamina::jinja {

namespace {

constexpr int deepest = 200;

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::end:
    case TokenKind::data:
      return "the end of the template";
    case TokenKind::output_end:
    case TokenKind::block_end:
    case TokenKind::output_begin:
    case TokenKind::block_begin:
      return "the end of the tag";
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.depth_ > deepest) {
    --parser_.depth_;
    parser_.fail("the template is nested too deeply");
  }
}

void ExpressionParser::fail(std::string_view why) const {
  throw TemplateError(fmt::format("line {}: {}", here().line, why));
}

bool ExpressionParser::accept_sign(std::string_view text) {
  if (!is_sign(text)) return false;
  ++at_;
  return true;
}

bool ExpressionParser::accept_name(std::string_view text) {
  if (!is_name(text)) return false;
  ++at_;
  return true;
}

const Token& ExpressionParser::take(TokenKind kind, std::string_view what) {
  if (!is(kind)) fail(fmt::format("{} stands where {} is expected", describe(here()), what));
  return tokens_[at_++];
}

void ExpressionParser::expect_sign(std::string_view text) {
  if (!accept_sign(text)) fail(fmt::format("{} stands where '{}' is expected", describe(here()), text));
}

ExpressionPtr ExpressionParser::make(ExpressionKind kind, std::string name) const {
  auto out = std::make_unique<Expression>();
  out->kind = kind;
  out->line = here().line;
  out->name = std::move(name);
  return out;
}

std::vector<std::string> ExpressionParser::names() {
  const bool bracket = accept_sign("(");
  std::vector<std::string> out;
  do {
    out.push_back(take(TokenKind::name, "a name").text);
  } while (accept_sign(","));
  if (bracket) expect_sign(")");
  return out;
}

ExpressionPtr ExpressionParser::tuple() {
  ExpressionPtr first = expression();
  if (!is_sign(",")) return first;
  auto out = make(ExpressionKind::list);
  out->parts.push_back(std::move(first));
  while (accept_sign(",")) {
    if (is(TokenKind::block_end) || is(TokenKind::output_end)) break;
    out->parts.push_back(expression());
  }
  return out;
}

ExpressionPtr ExpressionParser::expression() {
  const Level level(*this);
  ExpressionPtr value = condition();
  while (is_name("if")) {
    auto out = make(ExpressionKind::conditional);
    ++at_;
    out->parts.push_back(std::move(value));
    out->parts.push_back(condition());
    out->parts.push_back(accept_name("else") ? expression() : nullptr);
    value = std::move(out);
  }
  return value;
}

ExpressionPtr ExpressionParser::joined(Rule rule, const char* word, ExpressionKind kind) {
  ExpressionPtr left = (this->*rule)();
  while (is_name(word)) {
    auto out = make(kind);
    ++at_;
    out->parts.push_back(std::move(left));
    out->parts.push_back((this->*rule)());
    left = std::move(out);
  }
  return left;
}

ExpressionPtr ExpressionParser::condition() {
  return joined(&ExpressionParser::conjunction, "or", ExpressionKind::either);
}
ExpressionPtr ExpressionParser::conjunction() {
  return joined(&ExpressionParser::negation, "and", ExpressionKind::both);
}

ExpressionPtr ExpressionParser::negation() {
  if (!is_name("not")) return comparison();
  const Level level(*this);
  auto out = make(ExpressionKind::unary, "not");
  ++at_;
  out->parts.push_back(negation());
  return out;
}

std::string ExpressionParser::comparison_sign() {
  for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
    if (accept_sign(sign)) return std::string(sign);
  }
  if (accept_name("in")) return "in";
  if (is_name("not") && ahead().kind == TokenKind::name && ahead().text == "in") {
    at_ += 2;
    return "not in";
  }
  return {};
}

ExpressionPtr ExpressionParser::comparison() {
  ExpressionPtr first = sum();
  auto out = make(ExpressionKind::comparison);
  for (std::string sign = comparison_sign(); !sign.empty(); sign = comparison_sign()) {
    if (out->parts.empty()) out->parts.push_back(std::move(first));
    out->signs.push_back(std::move(sign));
    out->parts.push_back(sum());
  }
  return out->parts.empty() ? std::move(first) : std::move(out);
}

ExpressionPtr ExpressionParser::chain(Rule rule, std::initializer_list<std::string_view> signs) {
  ExpressionPtr left = (this->*rule)();
  for (;;) {
    const auto found = std::ranges::find_if(signs, [&](std::string_view sign) { return is_sign(sign); });
    if (found == signs.end()) return left;
    auto out = make(ExpressionKind::binary, std::string(*found));
    ++at_;
    out->parts.push_back(std::move(left));
    out->parts.push_back((this->*rule)());
    left = std::move(out);
  }
}

ExpressionPtr ExpressionParser::sum() { return chain(&ExpressionParser::concatenation, {"+", "-"}); }
ExpressionPtr ExpressionParser::concatenation() { return chain(&ExpressionParser::product, {"~"}); }
ExpressionPtr ExpressionParser::product() { return chain(&ExpressionParser::filtered, {"*", "/", "//", "%"}); }

ExpressionPtr ExpressionParser::filtered() {
  ExpressionPtr inner = signed_primary();
  if (is_sign("**")) fail("'**' is not supported");
  for (;;) {
    if (accept_sign("|")) {
      auto out = make(ExpressionKind::filter, take(TokenKind::name, "a filter").text);
      out->parts.push_back(std::move(inner));
      if (accept_sign("(")) arguments(*out);
      inner = std::move(out);
    } else if (is_name("is")) {
      inner = test(std::move(inner));
    } else if (is_sign("(")) {
      inner = postfix(std::move(inner));
    } else {
      return inner;
    }
  }
}

ExpressionPtr ExpressionParser::test(ExpressionPtr inner) {
  ++at_;
  const bool negated = accept_name("not");
  auto out = make(ExpressionKind::test, take(TokenKind::name, "a test").text);
  out->parts.push_back(std::move(inner));
  const auto starts_argument = [&] {
    if (is(TokenKind::text) || is(TokenKind::integer) || is(TokenKind::real) || is_sign("[") || is_sign("{"))
      return true;
    return is(TokenKind::name) && !is_name("else") && !is_name("or") && !is_name("and") && !is_name("is") &&
           !is_name("if") && !is_name("not") && !is_name("in");
  };
  if (accept_sign("(")) {
    arguments(*out);
  } else if (starts_argument()) {
    out->parts.push_back(postfix(primary()));
  }
  if (!negated) return out;
  auto no = make(ExpressionKind::unary, "not");
  no->parts.push_back(std::move(out));
  return no;
}

ExpressionPtr ExpressionParser::signed_primary() {
  if (!is_sign("-") && !is_sign("+")) return postfix(primary());
  const Level level(*this);
  auto out = make(ExpressionKind::unary, here().text);
  ++at_;
  out->parts.push_back(signed_primary());
  return out;
}

ExpressionPtr ExpressionParser::container(std::string_view close, ExpressionKind kind) {
  auto out = make(kind);
  while (!accept_sign(close)) {
    out->parts.push_back(expression());
    if (kind == ExpressionKind::map) {
      expect_sign(":");
      out->parts.push_back(expression());
    }
    if (!is_sign(close)) expect_sign(",");
  }
  return out;
}

ExpressionPtr ExpressionParser::primary() {
  const Token token = here();
  const auto literal = [&](Value value) {
    auto out = make(ExpressionKind::literal);
    out->value = std::move(value);
    return out;
  };
  if (is(TokenKind::text)) {
    std::string text;
    while (is(TokenKind::text)) text += tokens_[at_++].text;
    return literal(Value(std::move(text)));
  }
  if (is(TokenKind::integer)) {
    std::int64_t number = 0;
    const char* end = token.text.data() + token.text.size();
    if (std::from_chars(token.text.data(), end, number).ptr != end) fail("the number is too large");
    ++at_;
    return literal(Value(number));
  }
  if (is(TokenKind::real)) {
    ++at_;
    return literal(Value(std::strtod(token.text.c_str(), nullptr)));
  }
  if (is(TokenKind::name)) {
    ++at_;
    if (token.text == "true" || token.text == "True") return literal(Value(true));
    if (token.text == "false" || token.text == "False") return literal(Value(false));
    if (token.text == "none" || token.text == "None") return literal(Value::none());
    used_.insert(token.text);
    return make(ExpressionKind::name, token.text);
  }
  const Level level(*this);
  if (accept_sign("[")) return container("]", ExpressionKind::list);
  if (accept_sign("{")) return container("}", ExpressionKind::map);
  if (!accept_sign("(")) fail(fmt::format("{} stands where a value is expected", describe(token)));
  if (accept_sign(")")) return make(ExpressionKind::list);
  ExpressionPtr inner = expression();
  if (accept_sign(")")) return inner;
  expect_sign(",");
  auto rest = container(")", ExpressionKind::list);
  rest->parts.insert(rest->parts.begin(), std::move(inner));
  return rest;
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr inner) {
  for (;;) {
    if (accept_sign(".")) {
      auto out = make(ExpressionKind::attribute);
      if (is(TokenKind::integer)) fail("an item by '.' and number is not supported");
      out->name = take(TokenKind::name, "an attribute's name").text;
      out->parts.push_back(std::move(inner));
      inner = std::move(out);
    } else if (accept_sign("[")) {
      inner = subscript(std::move(inner));
    } else if (accept_sign("(")) {
      auto out = make(ExpressionKind::call);
      out->parts.push_back(std::move(inner));
      arguments(*out);
      inner = std::move(out);
    } else {
      return inner;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr inner) {
  auto out = make(ExpressionKind::index);
  out->parts.push_back(std::move(inner));
  const auto bound = [&]() -> ExpressionPtr { return is_sign(":") || is_sign("]") ? nullptr : expression(); };
  ExpressionPtr start = bound();
  if (!is_sign(":")) {
    if (!start) fail("an index is missing");
    out->parts.push_back(std::move(start));
    expect_sign("]");
    return out;
  }
  out->kind = ExpressionKind::slice;
  out->parts.push_back(std::move(start));
  for (int i = 0; i < 2; ++i) out->parts.push_back(accept_sign(":") ? bound() : nullptr);
  expect_sign("]");
  return out;
}

void ExpressionParser::arguments(Expression& out) {
  const Level level(*this);
  while (!accept_sign(")")) {
    if (is_sign("*") || is_sign("**")) fail("arguments with '*' are not supported");
    if (is(TokenKind::name) && ahead().kind == TokenKind::sign && ahead().text == "=") {
      std::string name = here().text;
      at_ += 2;
      out.named.emplace_back(std::move(name), expression());
    } else {
      out.parts.push_back(expression());
    }
    if (!is_sign(")")) expect_sign(",");
  }
}

}  // namespace lamina::jinja
