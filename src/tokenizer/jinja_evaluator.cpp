// Statements.
#include "jinja_evaluator.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace lamina::jinja {

namespace {

constexpr std::size_t longest_output = std::size_t{1} << 30;

}  // namespace

void Evaluator::Scope::set(const std::string& name, Value value) {
  for (auto& [known, held] : values) {
    if (known == name) {
      held = std::move(value);
      return;
    }
  }
  values.emplace_back(name, std::move(value));
}

Output Evaluator::run(const Block& block, std::vector<Variable> variables) {
  variables_ = std::move(variables);
  (void)run_block(block, std::make_shared<Scope>());
  return std::move(output_);
}

std::int64_t Evaluator::owner_of(const Text& text) const {
  for (std::size_t i = 0; message_ >= 0 && text.has_own() && i < text.sources.size(); ++i) {
    const std::int64_t owner = usage_.owners.at(text.sources[i]);
    if (owner >= 0 && owner != message_) return owner;
  }
  return message_;
}

void Evaluator::write(const Text& text) {
  if (capture_ != nullptr) return append(*capture_, text);
  const std::size_t begin = output_.text.size();
  if (begin + text.bytes.size() > longest_output) throw TemplateError("the text grows without end");
  output_.text += text.bytes;
  usage_.mark_printed(text.sources);
  const std::int64_t owner = owner_of(text);
  if (output_.turns.empty() || output_.turns.back().message != owner) output_.turns.push_back({owner, begin, begin});
  Turn& turn = output_.turns.back();
  turn.end = output_.text.size();
  if (!text.has_own()) return;
  if (!turn.has_own()) turn.own_first = begin + text.first;
  turn.own_last = begin + text.last;
}

Evaluator::Flow Evaluator::run_block(const Block& block, const ScopePtr& scope) {
  for (const Statement& statement : block) {
    const Flow flow = run_statement(statement, scope);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Evaluator::Flow Evaluator::run_statement(const Statement& statement, const ScopePtr& scope) {
  switch (statement.kind) {
    case StatementKind::data:
      write({statement.text, 1, 0, {}});
      break;
    case StatementKind::output: {
      const Value value = evaluate(*statement.parts[0], scope);
      check_token(value);
      value.text() != nullptr ? write(*value.text()) : write(to_text(value));
      break;
    }
    case StatementKind::loop:
      run_loop(statement, scope);
      break;
    case StatementKind::branch:
      return run_branch(statement, scope);
    case StatementKind::set:
      set(statement, scope, evaluate(*statement.parts[0], scope));
      break;
    case StatementKind::set_block:
      set(statement, scope, Value(captured(statement.blocks[0], scope)));
      break;
    case StatementKind::macro:
      define_macro(statement, scope);
      break;
    case StatementKind::generation:
      run_generation(statement, scope);
      break;
    case StatementKind::stop_loop:
      return Flow::stop_loop;
    case StatementKind::next_item:
      return Flow::next_item;
  }
  return Flow::on;
}

Evaluator::Flow Evaluator::run_branch(const Statement& statement, const ScopePtr& scope) {
  for (std::size_t i = 0; i < statement.parts.size(); ++i) {
    if (evaluate(*statement.parts[i], scope).truth()) return run_block(statement.blocks[i], scope);
  }
  if (statement.blocks.size() > statement.parts.size()) return run_block(statement.blocks.back(), scope);
  return Flow::on;
}

void Evaluator::run_generation(const Statement& statement, const ScopePtr& scope) {
  if (capture_ != nullptr) {
    throw TemplateError(
        fmt::format("line {}: a generation block inside a macro or set is not supported", statement.line));
  }
  const std::size_t begin = output_.text.size();
  (void)run_block(statement.blocks[0], std::make_shared<Scope>(Scope{scope, {}, nullptr, 0}));
  output_.marks.emplace_back(begin, output_.text.size());
}

void Evaluator::bind(const std::vector<std::string>& names, const Value& value, Scope& scope) {
  if (names.size() == 1) return scope.set(names[0], value);
  const List items = items_of(value);
  if (items.size() != names.size()) {
    throw TemplateError(fmt::format("{} values for {} names", items.size(), names.size()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) scope.set(names[i], items[i]);
}

void Evaluator::set(const Statement& statement, const ScopePtr& scope, const Value& value) {
  if (statement.text.empty()) return bind(statement.names, value, *scope);
  Map* space = lookup(statement.text, scope).space();
  if (space == nullptr) {
    throw TemplateError(fmt::format("line {}: '{}' is no namespace", statement.line, statement.text));
  }
  for (auto& [name, held] : space->entries) {
    if (name == statement.names[0]) {
      held = value;
      return;
    }
  }
  space->entries.emplace_back(statement.names[0], value);
}

Text Evaluator::captured(const Block& block, const ScopePtr& scope) {
  Text text;
  Text* const before = std::exchange(capture_, &text);
  (void)run_block(block, std::make_shared<Scope>(Scope{scope, {}, nullptr, 0}));
  capture_ = before;
  return text;
}

void Evaluator::define_macro(const Statement& statement, const ScopePtr& scope) {
  const std::weak_ptr<Scope> home = scope;  // the scope holds the macro
  scope->set(statement.text, Value(Callable([this, &statement, home](const Arguments& given) {
               const ScopePtr alive = home.lock();
               if (!alive) throw TemplateError(fmt::format("the macro '{}' is out of scope", statement.text));
               return call_macro(statement, alive, given);
             })));
}

Value Evaluator::call_macro(const Statement& statement, const ScopePtr& home, const Arguments& given) {
  const auto scope = std::make_shared<Scope>(Scope{home, {}, nullptr, 0});
  if (given.positional.size() > statement.names.size()) {
    throw TemplateError(fmt::format("the macro '{}' takes {} arguments", statement.text, statement.names.size()));
  }
  for (const auto& [name, value] : given.named) {
    if (std::ranges::find(statement.names, name) == statement.names.end()) {
      throw TemplateError(fmt::format("the macro '{}' takes no argument '{}'", statement.text, name));
    }
  }
  for (std::size_t i = 0; i < statement.names.size(); ++i) {
    const Value* value = argument(given, i, statement.names[i]);
    const bool usual = value == nullptr && statement.parts[i] != nullptr;
    scope->set(statement.names[i], usual              ? evaluate(*statement.parts[i], scope)
                                   : value == nullptr ? Value::undefined(statement.names[i])
                                                      : *value);
  }
  return Value(captured(statement.blocks[0], scope));
}

List Evaluator::loop_items(const Statement& statement, const ScopePtr& scope) {
  const Value visited = evaluate(*statement.parts[0], scope);
  if (visited.map() != nullptr) usage_.mark_all_read(visited);
  List items = items_of(visited);
  if (!statement.parts[1]) return items;
  List wanted;
  for (Value& item : items) {
    const auto inner = std::make_shared<Scope>(Scope{scope, {}, nullptr, 0});
    bind(statement.names, item, *inner);
    if (evaluate(*statement.parts[1], inner).truth()) wanted.push_back(std::move(item));
  }
  return wanted;
}

Value Evaluator::loop_state(const List& items, std::size_t at) {
  const auto number = [](std::size_t value) { return Value(static_cast<std::int64_t>(value)); };
  Map loop;
  loop.entries = {{"index", number(at + 1)},
                  {"index0", number(at)},
                  {"revindex", number(items.size() - at)},
                  {"revindex0", number(items.size() - at - 1)},
                  {"first", Value(at == 0)},
                  {"last", Value(at + 1 == items.size())},
                  {"length", number(items.size())},
                  {"previtem", at == 0 ? Value::undefined("loop.previtem") : items[at - 1]},
                  {"nextitem", at + 1 == items.size() ? Value::undefined("loop.nextitem") : items[at + 1]},
                  {"cycle", Value(Callable([at](const Arguments& choices) {
                     if (choices.positional.empty()) throw TemplateError("cycle of nothing");
                     return choices.positional[at % choices.positional.size()];
                   }))}};
  return Value::make_namespace(std::move(loop));
}

std::optional<Value> Evaluator::loop_member(const std::string& name, const ScopePtr& scope) {
  for (const Scope* at = scope.get(); at != nullptr; at = at->outer.get()) {
    for (const auto& [known, value] : at->values) {
      if (known == "loop") return std::nullopt;
    }
    if (at->loop == nullptr) continue;
    if (name == "index0") return Value(static_cast<std::int64_t>(at->loop_at));
    if (name == "index") return Value(static_cast<std::int64_t>(at->loop_at + 1));
    if (name == "first") return Value(at->loop_at == 0);
    if (name == "last") return Value(at->loop_at + 1 == at->loop->size());
    return std::nullopt;
  }
  return std::nullopt;
}

void Evaluator::run_loop(const Statement& statement, const ScopePtr& scope) {
  const List items = loop_items(statement, scope);
  if (items.empty() && statement.blocks.size() > 1) {
    (void)run_block(statement.blocks[1], std::make_shared<Scope>(Scope{scope, {}, nullptr, 0}));
    return;
  }
  const std::int64_t message = message_;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto inner = std::make_shared<Scope>(Scope{scope, {}, nullptr, 0});
    bind(statement.names, items[i], *inner);
    inner->loop = &items;
    inner->loop_at = i;
    if (items[i].map() != nullptr && items[i].map()->message >= 0) message_ = items[i].map()->message;
    const Flow flow = run_block(statement.blocks[0], inner);
    message_ = message;
    if (flow == Flow::stop_loop) break;
  }
}

}  // namespace lamina::jinja
