// Runs a template over a request and notes which part of the output was written for which message.
#pragma once

#include "jinja_builtins.hpp"
#include "jinja_syntax.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lamina::jinja {

// Bytes [begin, end) of the output, written while a loop over messages was at `message` (-1: at none). What holds
// bytes of other messages belongs to the first of those.
struct Turn {
  std::int64_t message;
  std::size_t begin, end;
  std::size_t own_first = 1, own_last = 0;  // the smallest range that holds the message's own bytes; first > last: none

  [[nodiscard]] bool has_own() const { return own_first <= own_last; }
};

struct Output {
  std::string text;
  std::vector<Turn> turns;                                 // in order, all of the text
  std::vector<std::pair<std::size_t, std::size_t>> marks;  // {% generation %} blocks
};

// A variable of the template; `part` is the part of the request that it is.
struct Variable {
  std::string name;
  Value value;
  std::optional<std::uint32_t> part;
};

class Evaluator {
 public:
  // `usage` has room for every part of the request.
  explicit Evaluator(Usage& usage) : usage_(usage) {}

  // Throws TemplateError with the line.
  [[nodiscard]] Output run(const Block& block, std::vector<Variable> variables);

 private:
  struct Scope {
    std::shared_ptr<Scope> outer;
    std::vector<std::pair<std::string, Value>> values;
    const List* loop = nullptr;  // the items of the loop whose body this is
    std::size_t loop_at = 0;

    void set(const std::string& name, Value value);
  };
  using ScopePtr = std::shared_ptr<Scope>;
  enum class Flow { on, stop_loop, next_item };
  class Level;

  Flow run_block(const Block& block, const ScopePtr& scope);
  Flow run_statement(const Statement& statement, const ScopePtr& scope);
  Flow run_branch(const Statement& statement, const ScopePtr& scope);
  void run_loop(const Statement& statement, const ScopePtr& scope);
  void run_generation(const Statement& statement, const ScopePtr& scope);
  void set(const Statement& statement, const ScopePtr& scope, const Value& value);
  void define_macro(const Statement& statement, const ScopePtr& scope);
  [[nodiscard]] Value call_macro(const Statement& statement, const ScopePtr& home, const Arguments& arguments);
  [[nodiscard]] Text captured(const Block& block, const ScopePtr& scope);
  [[nodiscard]] List loop_items(const Statement& statement, const ScopePtr& scope);
  [[nodiscard]] static Value loop_state(const List& items, std::size_t at);
  // A member of the loop that is run, without the others; nothing if it is none of the plain ones.
  [[nodiscard]] static std::optional<Value> loop_member(const std::string& name, const ScopePtr& scope);
  static void bind(const std::vector<std::string>& names, const Value& value, Scope& scope);
  void write(const Text& text);
  [[nodiscard]] std::int64_t owner_of(const Text& text) const;

  [[nodiscard]] Value evaluate(const Expression& expression, const ScopePtr& scope);
  [[nodiscard]] Value evaluate_kind(const Expression& expression, const ScopePtr& scope);
  [[nodiscard]] Value lookup(const std::string& name, const ScopePtr& scope);
  [[nodiscard]] Value call(const Expression& expression, const ScopePtr& scope);
  [[nodiscard]] Value slice(const Expression& expression, const ScopePtr& scope);
  [[nodiscard]] Value unary(const Expression& expression, const ScopePtr& scope);
  [[nodiscard]] Value compare_chain(const Expression& expression, const ScopePtr& scope);
  [[nodiscard]] Value make_map(const Expression& expression, const ScopePtr& scope);
  [[nodiscard]] Arguments arguments(const Expression& expression, std::size_t first, const ScopePtr& scope);

  Usage& usage_;
  std::vector<Variable> variables_;
  Output output_;
  Text* capture_ = nullptr;    // where output goes instead
  std::int64_t message_ = -1;  // that a loop is at
  int depth_ = 0;
};

// Throws if a special token that is not there is about to be written: Python writes nothing in its place.
void check_token(const Value& written);

// A sign between two values.
[[nodiscard]] Value binary(const std::string& sign, const Value& left, const Value& right);

}  // namespace lamina::jinja
