// A template as a tree, and the parser that makes it.
//
// The subset of Jinja that chat templates use: output, for (with if, else, break, continue), if, set (names, attributes
// of namespaces, blocks), macro, generation; expressions with everything but power and starred arguments. What is not
// in it is refused by name and line.
#pragma once

#include "jinja_value.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class ExpressionKind {
  literal,
  name,
  list,         // parts: items
  map,          // parts: key, value, key, value, ...
  attribute,    // parts: object; name
  index,        // parts: object, key
  slice,        // parts: object, start, stop, step (null where left out)
  call,         // parts: function, arguments...; named
  filter,       // parts: input, arguments...; named; name
  test,         // parts: input, arguments...; name
  unary,        // parts: operand; name is the sign
  binary,       // parts: left, right; name is the sign
  comparison,   // parts: operands; signs between them
  both,         // and
  either,       // or
  conditional,  // parts: value, condition, other (null where left out)
};

struct Expression {
  ExpressionKind kind;
  int line;
  std::string name;
  Value value;
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> signs;
};

struct Statement;
using Block = std::vector<Statement>;

enum class StatementKind { data, output, loop, branch, set, set_block, macro, generation, stop_loop, next_item };

struct Statement {
  StatementKind kind;
  int line;
  std::string text;                  // of data; the macro's name; the namespace of an attribute that is set
  std::vector<std::string> names;    // targets; a macro's parameters
  std::vector<ExpressionPtr> parts;  // output: values; loop: items, condition; branch: conditions; set: value;
                                     // macro: defaults (null: none)
  std::vector<Block> blocks;         // loop: body, else; branch: one a condition, then else; others: body
};

struct Syntax {
  Block statements;
  std::vector<std::string> names;  // all that expressions name, each once
};

// Throws TemplateError.
[[nodiscard]] Syntax parse(std::string_view source);

}  // namespace lamina::jinja
