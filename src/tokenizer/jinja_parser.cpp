// Jinja's statements from tokens.
#include "jinja_expression_parser.hpp"
#include "jinja_syntax.hpp"

#include <fmt/format.h>

namespace lamina::jinja {

namespace {

class Parser {
 public:
  explicit Parser(std::span<const Token> tokens) : in_(tokens) {}

  Syntax run() {
    Syntax out;
    out.statements = block({});
    if (!in_.is(TokenKind::end)) in_.fail("the template goes on behind its end");
    out.names.assign(in_.used_names().begin(), in_.used_names().end());
    return out;
  }

 private:
  static Statement make(StatementKind kind, int line) { return {kind, line, {}, {}, {}, {}}; }

  // Statements until a tag with one of the names, whose name is taken, or the template's end.
  Block block(std::initializer_list<std::string_view> ends) {
    const ExpressionParser::Level level(in_);
    Block out;
    for (;;) {
      const int line = in_.here().line;
      if (in_.is(TokenKind::data)) {
        out.push_back(make(StatementKind::data, line));
        out.back().text = in_.take(TokenKind::data, "text").text;
      } else if (in_.is(TokenKind::output_begin)) {
        (void)in_.take(TokenKind::output_begin, "a tag");
        out.push_back(make(StatementKind::output, line));
        out.back().parts.push_back(in_.tuple());
        (void)in_.take(TokenKind::output_end, "the end of the tag");
      } else if (in_.is(TokenKind::block_begin)) {
        (void)in_.take(TokenKind::block_begin, "a tag");
        ended_by_ = in_.take(TokenKind::name, "a statement").text;
        for (const std::string_view end : ends) {
          if (ended_by_ == end) return out;
        }
        out.push_back(statement(ended_by_, line));
      } else {
        if (ends.size() > 0) in_.fail(fmt::format("'{}' is missing", *(ends.end() - 1)));
        return out;
      }
    }
  }

  void tag_end() { (void)in_.take(TokenKind::block_end, "the end of the tag"); }

  Statement statement(const std::string& name, int line) {
    if (name == "for") return loop(line);
    if (name == "if") return branch(line);
    if (name == "set") return set(line);
    if (name == "macro") return macro(line);
    if (name == "generation") {
      Statement out = make(StatementKind::generation, line);
      tag_end();
      out.blocks.push_back(block({"endgeneration"}));
      tag_end();
      return out;
    }
    if (name == "break" || name == "continue") {
      tag_end();
      return make(name == "break" ? StatementKind::stop_loop : StatementKind::next_item, line);
    }
    throw TemplateError(fmt::format("line {}: the statement '{}' is not supported here", line, name));
  }

  Statement loop(int line) {
    Statement out = make(StatementKind::loop, line);
    out.names = in_.names();
    if (!in_.accept_name("in")) in_.fail("'in' is missing");
    out.parts.push_back(in_.condition());
    out.parts.push_back(in_.accept_name("if") ? in_.expression() : nullptr);
    if (in_.is_name("recursive")) in_.fail("'recursive' is not supported");
    tag_end();
    out.blocks.push_back(block({"else", "endfor"}));
    if (ended_by_ == "else") {
      tag_end();
      out.blocks.push_back(block({"endfor"}));
    }
    tag_end();
    return out;
  }

  Statement branch(int line) {
    Statement out = make(StatementKind::branch, line);
    for (ended_by_ = "elif"; ended_by_ == "elif";) {
      out.parts.push_back(in_.tuple());
      tag_end();
      out.blocks.push_back(block({"elif", "else", "endif"}));
    }
    if (ended_by_ == "else") {
      tag_end();
      out.blocks.push_back(block({"endif"}));
    }
    tag_end();
    return out;
  }

  Statement set(int line) {
    Statement out = make(StatementKind::set, line);
    out.names = in_.names();
    if (in_.accept_sign(".")) {
      out.text = out.names.back();
      out.names.back() = in_.take(TokenKind::name, "an attribute's name").text;
      if (out.names.size() > 1) in_.fail("several attributes at once are not supported");
    }
    if (in_.accept_sign("=")) {
      out.parts.push_back(in_.tuple());
      tag_end();
      return out;
    }
    if (in_.is_sign("|")) in_.fail("a filter on a block is not supported");
    out.kind = StatementKind::set_block;
    tag_end();
    out.blocks.push_back(block({"endset"}));
    tag_end();
    return out;
  }

  Statement macro(int line) {
    Statement out = make(StatementKind::macro, line);
    out.text = in_.take(TokenKind::name, "the macro's name").text;
    in_.expect_sign("(");
    while (!in_.accept_sign(")")) {
      out.names.push_back(in_.take(TokenKind::name, "a parameter").text);
      out.parts.push_back(in_.accept_sign("=") ? in_.expression() : nullptr);
      if (!in_.is_sign(")")) in_.expect_sign(",");
    }
    tag_end();
    out.blocks.push_back(block({"endmacro"}));
    if (in_.is(TokenKind::name)) (void)in_.take(TokenKind::name, "the macro's name");
    tag_end();
    return out;
  }

  ExpressionParser in_;
  std::string ended_by_;
};

}  // namespace

Syntax parse(std::string_view source) {
  const std::vector<Token> tokens = tokenize(source);
  return Parser(tokens).run();
}

}  // namespace lamina::jinja
