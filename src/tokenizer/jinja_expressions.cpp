// Expressions.
#include "jinja_evaluator.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace lamina::jinja {

namespace {

constexpr int deepest = 1000;

[[noreturn]] void fail_sign(const std::string& sign, const Value& left, const Value& right) {
  for (const Value* side : {&left, &right}) {
    if (!side->is_undefined()) continue;
    check_token(*side);
    throw TemplateError(fmt::format("'{}' is not defined", side->undefined_name()));
  }
  throw TemplateError(fmt::format("{} {} {} is not possible", left.kind(), sign, right.kind()));
}

std::int64_t whole(const Value& value) {
  if (const bool* boolean = value.boolean()) return *boolean ? 1 : 0;
  return *value.integer();
}

// Python rounds quotients down.
std::int64_t floor_quotient(std::int64_t left, std::int64_t right) {
  const std::int64_t quotient = left / right;
  return left % right != 0 && (left < 0) != (right < 0) ? quotient - 1 : quotient;
}

Value whole_numbers(const std::string& sign, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  bool overflow = false;
  if (sign == "+") {
    overflow = __builtin_add_overflow(left, right, &result);
  } else if (sign == "-") {
    overflow = __builtin_sub_overflow(left, right, &result);
  } else if (sign == "*") {
    overflow = __builtin_mul_overflow(left, right, &result);
  } else {
    if (right == 0) throw TemplateError("division by zero");
    overflow = left == std::numeric_limits<std::int64_t>::min() && right == -1;
    if (!overflow && sign == "/") return Value(static_cast<double>(left) / static_cast<double>(right));
    if (!overflow) result = sign == "//" ? floor_quotient(left, right) : left - floor_quotient(left, right) * right;
  }
  if (overflow) throw TemplateError("a number beyond 64 bits");
  return Value(result);
}

Value numbers(const std::string& sign, const Value& left, const Value& right) {
  if (left.real() == nullptr && right.real() == nullptr) return whole_numbers(sign, whole(left), whole(right));
  const double a = left.number(), b = right.number();
  if (sign == "+") return Value(a + b);
  if (sign == "-") return Value(a - b);
  if (sign == "*") return Value(a * b);
  if (b == 0) throw TemplateError("division by zero");
  if (sign == "/") return Value(a / b);
  return sign == "//" ? Value(std::floor(a / b)) : Value(a - std::floor(a / b) * b);
}

Value range(const Arguments& arguments) {
  check_arguments(arguments, 3, {});
  std::vector<std::int64_t> given;
  for (const Value& value : arguments.positional) {
    if (value.integer() == nullptr) throw TemplateError(fmt::format("a range by {}", value.kind()));
    given.push_back(*value.integer());
  }
  if (given.empty()) throw TemplateError("a range without an end");
  const std::int64_t start = given.size() > 1 ? given[0] : 0, stop = given.size() > 1 ? given[1] : given[0];
  const std::int64_t step = given.size() > 2 ? given[2] : 1;
  constexpr std::int64_t limit = 100000;  // the sandbox's, too
  if (step == 0) throw TemplateError("a range with step 0");
  List out;
  for (std::int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (static_cast<std::int64_t>(out.size()) >= limit) throw TemplateError("a range of more than 100000 numbers");
    out.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return Value(std::move(out));
}

Map map_of(const Arguments& arguments) {
  Map map;
  for (const Value& given : arguments.positional) {
    if (given.map() == nullptr) throw TemplateError(fmt::format("a dict is expected, not {}", given.kind()));
    map.entries.insert(map.entries.end(), given.map()->entries.begin(), given.map()->entries.end());
  }
  map.entries.insert(map.entries.end(), arguments.named.begin(), arguments.named.end());
  return map;
}

Value refuse_conversation(const Arguments& arguments) {
  const Value* why = argument(arguments, 0, "message");
  throw TemplateError(
      fmt::format("the template refuses it: {}", why == nullptr ? "no reason given" : to_text(*why).bytes));
}

}  // namespace

void check_token(const Value& written) {
  if (!written.is_undefined() || !written.undefined_name().ends_with("_token")) return;
  throw TemplateError(fmt::format("it uses {}, and the tokenizer names none", written.undefined_name()), true);
}

Value binary(const std::string& sign, const Value& left, const Value& right) {
  if (sign == "~") {
    check_token(left);
    check_token(right);
    Text out = to_text(left);
    append(out, to_text(right));
    return Value(std::move(out));
  }
  if (left.is_number() && right.is_number()) return numbers(sign, left, right);
  if (sign == "+" && left.text() != nullptr && right.text() != nullptr) {
    Text out = *left.text();
    append(out, *right.text());
    return Value(std::move(out));
  }
  if (sign == "+" && left.list() != nullptr && right.list() != nullptr) {
    List out = *left.list();
    out.insert(out.end(), right.list()->begin(), right.list()->end());
    return Value(std::move(out));
  }
  if (sign == "*" && left.text() != nullptr && right.integer() != nullptr) {
    Text out;
    for (std::int64_t i = 0; i < *right.integer(); ++i) {
      if (i > 100000) throw TemplateError("a text is repeated too often");
      append(out, *left.text());
    }
    return Value(std::move(out));
  }
  fail_sign(sign, left, right);
}

class Evaluator::Level {
 public:
  explicit Level(int& depth) : depth_(depth) {
    if (++depth_ > deepest) {
      --depth_;
      throw TemplateError("the template calls itself too deeply");
    }
  }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int& depth_;
};

Value Evaluator::evaluate(const Expression& expression, const ScopePtr& scope) {
  const Level level(depth_);
  try {
    return evaluate_kind(expression, scope);
  } catch (const TemplateError& error) {
    if (std::string_view(error.what()).starts_with("line ")) throw;
    throw TemplateError(fmt::format("line {}: {}", expression.line, error.what()), error.lacks_token());
  }
}

Value Evaluator::lookup(const std::string& name, const ScopePtr& scope) {
  for (const Scope* at = scope.get(); at != nullptr; at = at->outer.get()) {
    for (const auto& [known, value] : at->values) {
      if (known == name) return value;
    }
    if (at->loop != nullptr && name == "loop") return loop_state(*at->loop, at->loop_at);
  }
  for (const Variable& variable : variables_) {
    if (variable.name != name) continue;
    if (variable.part) usage_.read.at(*variable.part) = 1;
    return variable.value;
  }
  if (name == "range") return Value(Callable(range));
  if (name == "raise_exception") return Value(Callable(refuse_conversation));
  if (name == "dict") return Value(Callable([](const Arguments& given) { return Value(map_of(given)); }));
  if (name == "namespace") {
    return Value(Callable([](const Arguments& given) { return Value::make_namespace(map_of(given)); }));
  }
  return Value::undefined(name);
}

Arguments Evaluator::arguments(const Expression& expression, std::size_t first, const ScopePtr& scope) {
  Arguments out;
  for (std::size_t i = first; i < expression.parts.size(); ++i)
    out.positional.push_back(evaluate(*expression.parts[i], scope));
  for (const auto& [name, value] : expression.named) out.named.emplace_back(name, evaluate(*value, scope));
  return out;
}

Value Evaluator::call(const Expression& expression, const ScopePtr& scope) {
  const Expression& function = *expression.parts[0];
  if (function.kind == ExpressionKind::attribute) {
    const Value object = evaluate(*function.parts[0], scope);
    if (has_method(object, function.name)) {
      return call_method(object, function.name, arguments(expression, 1, scope), usage_);
    }
  }
  const Value callee = evaluate(function, scope);
  if (callee.callable() == nullptr) {
    const std::string& name = function.name;
    throw TemplateError(name.empty() ? fmt::format("a {} cannot be called", callee.kind())
                                     : fmt::format("the function '{}' is not supported", name));
  }
  return (*callee.callable())(arguments(expression, 1, scope));
}

Value Evaluator::slice(const Expression& expression, const ScopePtr& scope) {
  const auto bound = [&](std::size_t part) {
    return expression.parts[part] ? evaluate(*expression.parts[part], scope) : Value::none();
  };
  return slice_of(evaluate(*expression.parts[0], scope), bound(1), bound(2), bound(3));
}

Value Evaluator::unary(const Expression& expression, const ScopePtr& scope) {
  const Value operand = evaluate(*expression.parts[0], scope);
  if (expression.name == "not") return Value(!operand.truth());
  if (!operand.is_number()) throw TemplateError(fmt::format("a {} has no sign", operand.kind()));
  return binary(expression.name, Value(std::int64_t{0}), operand);
}

Value Evaluator::compare_chain(const Expression& expression, const ScopePtr& scope) {
  Value left = evaluate(*expression.parts[0], scope);
  for (std::size_t i = 0; i < expression.signs.size(); ++i) {
    const std::string& sign = expression.signs[i];
    Value right = evaluate(*expression.parts[i + 1], scope);
    bool holds = false;
    if (sign == "==" || sign == "!=") {
      holds = equal(left, right) == (sign == "==");
    } else if (sign == "in" || sign == "not in") {
      holds = contains(right, left, usage_) == (sign == "in");
    } else {
      const int order = compare(left, right);
      holds = sign == "<" ? order < 0 : sign == "<=" ? order <= 0 : sign == ">" ? order > 0 : order >= 0;
    }
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Evaluator::make_map(const Expression& expression, const ScopePtr& scope) {
  Map map;
  for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
    const Value key = evaluate(*expression.parts[i], scope);
    if (key.text() == nullptr) throw TemplateError(fmt::format("a {} as key is not supported", key.kind()));
    std::erase_if(map.entries, [&](const auto& entry) { return entry.first == key.text()->bytes; });
    map.entries.emplace_back(key.text()->bytes, evaluate(*expression.parts[i + 1], scope));
  }
  return Value(std::move(map));
}

Value Evaluator::evaluate_kind(const Expression& expression, const ScopePtr& scope) {
  const auto part = [&](std::size_t i) { return evaluate(*expression.parts[i], scope); };
  switch (expression.kind) {
    case ExpressionKind::literal:
      return expression.value;
    case ExpressionKind::name:
      return lookup(expression.name, scope);
    case ExpressionKind::list: {
      List items;
      for (const auto& item : expression.parts) items.push_back(evaluate(*item, scope));
      return Value(std::move(items));
    }
    case ExpressionKind::map:
      return make_map(expression, scope);
    case ExpressionKind::attribute:
      if (expression.parts[0]->kind == ExpressionKind::name && expression.parts[0]->name == "loop") {
        if (auto member = loop_member(expression.name, scope)) return *member;
      }
      return member_of(part(0), expression.name, usage_);
    case ExpressionKind::index:
      return item_of(part(0), part(1), usage_);
    case ExpressionKind::slice:
      return slice(expression, scope);
    case ExpressionKind::call:
      return call(expression, scope);
    case ExpressionKind::filter:
      return apply_filter(expression.name, part(0), arguments(expression, 1, scope), usage_);
    case ExpressionKind::test:
      return Value(apply_test(expression.name, part(0), arguments(expression, 1, scope)));
    case ExpressionKind::unary:
      return unary(expression, scope);
    case ExpressionKind::binary:
      return binary(expression.name, part(0), part(1));
    case ExpressionKind::comparison:
      return compare_chain(expression, scope);
    case ExpressionKind::both: {
      Value left = part(0);
      return left.truth() ? part(1) : left;
    }
    case ExpressionKind::either: {
      Value left = part(0);
      return left.truth() ? left : part(1);
    }
    case ExpressionKind::conditional: {
      if (part(1).truth()) return part(0);
      return expression.parts[2] ? part(2) : Value::undefined("the value of an if without else");
    }
  }
  return {};
}

}  // namespace lamina::jinja
