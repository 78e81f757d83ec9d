#include "text/jinja_eval.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "text/jinja_object.h"

namespace strata::text::jinja {

using Kind = Value::Kind;

namespace {
constexpr size_t kFramesPerMacro =
    20;  // nodes of the tree that a macro call has above it, on average: far more than any
}

class Evaluator::Scope {
 public:
  explicit Scope(Evaluator& evaluator) : evaluator_(evaluator) { evaluator_.enter(); }
  ~Scope() { evaluator_.leave(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Evaluator& evaluator_;
};

class Evaluator::Frame {
 public:
  explicit Frame(Evaluator& evaluator) : evaluator_(evaluator) {
    evaluator_.budget_.step();
    const size_t most = evaluator_.budget_.limits.recursion * kFramesPerMacro;
    if (evaluator_.frames_ >= most) exceed("recursion", evaluator_.budget_.limits.recursion);
    ++evaluator_.frames_;
  }
  ~Frame() { --evaluator_.frames_; }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  Evaluator& evaluator_;
};

Evaluator::Evaluator(const Tree& tree, const TemplateLimits& limits, int64_t now)
    : budget_(limits), tree_(tree), now_(now), variables_(tree.symbols.size()) {}

MarkedText Evaluator::render(const Value& context) {
  constexpr std::pair<std::string_view, Function> kFunctions[] = {{"namespace", Function::Namespace},
                                                                  {"range", Function::Range},
                                                                  {"raise_exception", Function::RaiseException},
                                                                  {"strftime_now", Function::StrftimeNow}};
  for (Symbol symbol = 0; symbol < tree_.symbols.size(); ++symbol) {
    const std::string& name = tree_.symbols[symbol];
    if (const Value* given = context.entries().find(name)) {
      bind(symbol, *given);
      continue;
    }
    for (const auto& [function_name, function] : kFunctions)
      if (name == function_name) bind(symbol, Value::function(function));
  }
  MarkedText text;
  out_ = &text;
  out_limit_ = budget_.limits.output_bytes;
  out_name_ = "output bytes";
  try {
    run(tree_.body);
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), fmt::format("template line {}", line_));
  }
  return text;
}

void Evaluator::enter() { bound_.emplace_back(); }

void Evaluator::leave() {
  for (const Symbol symbol : bound_.back()) variables_[symbol].pop_back();
  bound_.pop_back();
}

void Evaluator::bind(Symbol symbol, Value value) {
  const auto level = static_cast<uint32_t>(bound_.size());
  auto& stack = variables_[symbol];
  if (!stack.empty() && stack.back().level == level) {
    stack.back().value = std::move(value);
    return;
  }
  if (level != 0) bound_.back().push_back(symbol);
  stack.push_back({level, std::move(value)});
}

const Value* Evaluator::find(Symbol symbol) const {
  const auto& stack = variables_[symbol];
  if (stack.empty()) return nullptr;
  if (stack.back().level >= base_) return &stack.back().value;
  return stack.front().level == 0 ? &stack.front().value : nullptr;
}

void Evaluator::run(const Body& body) {
  for (const Statement& statement : body) run(statement);
}

void Evaluator::run(const Statement& s) {
  const Frame frame(*this);
  line_ = s.line;
  switch (s.kind) {
    case Statement::Kind::Text: return print(s.text);
    case Statement::Kind::Print: return print(eval(*s.expr));
    case Statement::Kind::If: return run_if(s);
    case Statement::Kind::For: return run_for(s);
    case Statement::Kind::Set: return run_set(s);
    case Statement::Kind::Macro: return bind(s.macro->symbol, Value::macro(s.macro.get()));
  }
}

void Evaluator::print(const MarkedText& text) {
  budget_.moved(text.bytes.size());
  if (text.bytes.size() > out_limit_ - out_->bytes.size()) exceed(out_name_, out_limit_);
  out_->append(text);
}

void Evaluator::print(const Value& value) {
  if (value.is(Kind::String)) return print(value.text());
  print(to_str(value, budget_));
}

void Evaluator::run_if(const Statement& s) {
  for (const Branch& branch : s.branches) {
    if (branch.condition && !truthy(eval(*branch.condition))) continue;
    return run(branch.body);
  }
}

void Evaluator::assign(const Target& target, const Value& value) {
  if (!target.unpack) return bind(target.symbols[0], value);
  const Value items = iterate(value, budget_);
  if (items.items().size() != target.symbols.size()) {
    fail(fmt::format("{} values for {} names", items.items().size(), target.symbols.size()));
  }
  for (size_t i = 0; i < target.symbols.size(); ++i) bind(target.symbols[i], items.items()[i]);
}

// The items of a loop that its `if` lets through.
Value Evaluator::filtered(const Statement& s, const Value& items) {
  std::vector<Value> kept;
  for (const Value& item : items.items()) {
    const Scope scope(*this);
    assign(s.target, item);
    if (truthy(eval(*s.condition))) kept.push_back(item);
  }
  return Value::list(std::move(kept), &budget_);
}

void Evaluator::run_for(const Statement& s) {
  Value items = iterate(eval(*s.expr), budget_);
  if (s.condition) items = filtered(s, items);
  if (items.items().empty()) {
    if (s.branches.size() > 1) run(s.branches[1].body);
    return;
  }
  const auto loop = std::make_shared<LoopObject>();
  loop->items = items;
  const Value loop_value = Value::loop(loop);
  for (; loop->index < items.items().size(); ++loop->index) {
    budget_.step();
    const Scope scope(*this);
    bind(tree_.loop, loop_value);
    assign(s.target, items.items()[loop->index]);
    run(s.branches[0].body);
  }
}

void Evaluator::run_set(const Statement& s) {
  const Value value = eval(*s.expr);
  line_ = s.line;
  if (s.target.attribute.empty()) return assign(s.target, value);
  const Value* owner = find(s.target.symbols[0]);
  if (owner == nullptr || !owner->is(Kind::Namespace)) {
    fail(fmt::format("'{}' is no namespace: its attribute cannot be set", tree_.symbols[s.target.symbols[0]]));
  }
  if (value.holds_reference()) fail("a namespace cannot hold a namespace or a loop");
  owner->as_namespace().values[s.target.attribute] = value;
}

Value Evaluator::eval(const Expr& e) {
  const Frame frame(*this);
  line_ = e.line;
  return eval_node(e);
}

Value Evaluator::eval_node(const Expr& e) {
  switch (e.kind) {
    case Expr::Kind::Literal: return e.constant;
    case Expr::Kind::Name: return name(e);
    case Expr::Kind::Tuple: return Value::tuple(eval_all(e.children), &budget_);
    case Expr::Kind::List: return Value::list(eval_all(e.children), &budget_);
    case Expr::Kind::Map: return map(e);
    case Expr::Kind::Attribute: return get_attribute(eval(*e.children[0]), e.name);
    case Expr::Kind::Subscript: {
      const Value what = eval(*e.children[0]);
      return get_item(what, eval(*e.children[1]), budget_);
    }
    case Expr::Kind::Slice: return slice_of(e);
    case Expr::Kind::Call: return call(e);
    case Expr::Kind::Filter: {
      const Value what = eval(*e.children[0]);
      return apply_filter(e.name, what, arguments(e), budget_);
    }
    case Expr::Kind::Test: {
      const Value what = eval(*e.children[0]);
      return Value::boolean(apply_test(e.name, what, arguments(e), budget_) != e.negated);
    }
    case Expr::Kind::Arithmetic: return arithmetic_chain(e);
    case Expr::Kind::Concat: return concat_chain(e);
    case Expr::Kind::Compare: return Value::boolean(comparison(e));
    case Expr::Kind::And:
    case Expr::Kind::Or: {
      Value value;
      for (const ExprPtr& child : e.children) {
        value = eval(*child);
        if (truthy(value) == (e.kind == Expr::Kind::Or)) break;
      }
      return value;
    }
    case Expr::Kind::Not: return Value::boolean(!truthy(eval(*e.children[0])));
    case Expr::Kind::Negate: return negate(eval(*e.children[0]));
    case Expr::Kind::Plus: return arithmetic(Operator::Add, Value::integer(0), eval(*e.children[0]), budget_);
    case Expr::Kind::Condition: return condition(e);
  }
  fail("unknown expression");
}

Value Evaluator::name(const Expr& e) {
  if (const Value* found = find(e.symbol)) return *found;
  return Value::undefined(fmt::format("'{}' is undefined", e.name.substr(0, 40)));
}

std::vector<Value> Evaluator::eval_all(const std::vector<ExprPtr>& expressions) {
  std::vector<Value> values;
  values.reserve(expressions.size());
  for (const ExprPtr& e : expressions) values.push_back(eval(*e));
  return values;
}

Value Evaluator::map(const Expr& e) {
  std::vector<std::pair<MarkedText, Value>> entries;
  for (size_t i = 0; i + 1 < e.children.size(); i += 2) {
    const Value key = eval(*e.children[i]);
    if (!key.is(Kind::String)) fail(fmt::format("keys of mappings must be strings, not {}", type_name(key)));
    budget_.moved(key.bytes().size());
    entries.emplace_back(key.text(), eval(*e.children[i + 1]));
  }
  return Value::map(std::move(entries), &budget_);
}

Value Evaluator::arithmetic_chain(const Expr& e) {
  Value value = eval(*e.children[0]);
  for (size_t i = 1; i < e.children.size(); ++i) {
    const Value next = eval(*e.children[i]);
    line_ = e.line;
    value = arithmetic(e.operators[i - 1], std::move(value), next, budget_);
  }
  return value;
}

Value Evaluator::concat_chain(const Expr& e) {
  const std::vector<Value> parts = eval_all(e.children);
  return Value::string(concat(parts, budget_), &budget_);
}

bool Evaluator::comparison(const Expr& e) {
  Value left = eval(*e.children[0]);
  for (size_t i = 1; i < e.children.size(); ++i) {
    Value right = eval(*e.children[i]);
    line_ = e.line;
    if (!compare(e.operators[i - 1], left, right, budget_)) return false;
    left = std::move(right);
  }
  return true;
}

Value Evaluator::condition(const Expr& e) {
  if (truthy(eval(*e.children[1]))) return eval(*e.children[0]);
  if (e.children[2]) return eval(*e.children[2]);
  return Value::undefined("an inline 'if' without 'else' has no value");
}

Value Evaluator::slice_of(const Expr& e) {
  const Value what = eval(*e.children[0]);
  const Value begin = optional(e.children[1]), end = optional(e.children[2]), step = optional(e.children[3]);
  return slice(what, begin, end, step, budget_);
}

Arguments Evaluator::arguments(const Expr& e) {
  Arguments given;
  const size_t positional = e.children.size() - e.named.size();
  for (size_t i = 1; i < e.children.size(); ++i) {
    Value value = eval(*e.children[i]);
    if (i < positional) {
      given.positional.push_back(std::move(value));
    } else {
      given.named.emplace_back(e.named[i - positional], std::move(value));
    }
  }
  line_ = e.line;
  return given;
}

Value Evaluator::call(const Expr& e) {
  const Value callee = eval(*e.children[0]);
  const Arguments given = arguments(e);
  switch (callee.kind()) {
    case Kind::Macro: return call_macro(*callee.as_macro(), given);
    case Kind::Method: return call_method(callee.as_method(), given, budget_);
    case Kind::Function: return call_function(callee.as_function(), given, now_, budget_);
    case Kind::Undefined: fail(callee.what() + ": it cannot be called");
    default: fail(fmt::format("a {} cannot be called", type_name(callee)));
  }
}

Value Evaluator::call_macro(const Macro& macro, const Arguments& given) {
  if (macros_ >= budget_.limits.recursion) exceed("recursion", budget_.limits.recursion);
  if (given.positional.size() > macro.parameters.size()) {
    fail(fmt::format("the macro '{}' takes {} arguments, not {}", macro.name, macro.parameters.size(),
                     given.positional.size()));
  }
  const Scope scope(*this);
  const uint32_t base = std::exchange(base_, static_cast<uint32_t>(bound_.size()));
  MarkedText text;
  MarkedText* const out = std::exchange(out_, &text);
  const size_t out_limit = std::exchange(out_limit_, budget_.limits.string_bytes);
  const std::string_view out_name = std::exchange(out_name_, "string bytes");
  ++macros_;
  size_t named_used = 0;
  const size_t without_default = macro.parameters.size() - macro.defaults.size();
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [symbol, name] = macro.parameters[i];
    const Value* by_name = nullptr;
    for (const auto& [given_name, value] : given.named)
      if (given_name == name) by_name = &value;
    named_used += by_name != nullptr ? 1 : 0;
    if (by_name != nullptr && i < given.positional.size()) {
      fail(fmt::format("the macro '{}' got its argument '{}' twice", macro.name, name));
    }
    if (i < given.positional.size()) {
      bind(symbol, given.positional[i]);
    } else if (by_name != nullptr) {
      bind(symbol, *by_name);
    } else if (i >= without_default) {
      bind(symbol, eval(*macro.defaults[i - without_default]));
    } else {
      bind(symbol, Value::undefined(fmt::format("the argument '{}' was not given", name)));
    }
  }
  if (named_used < given.named.size()) {
    fail(fmt::format("the macro '{}' has no argument '{}'", macro.name, given.named.back().first));
  }
  run(macro.body);
  --macros_;
  base_ = base;
  out_ = out;
  out_limit_ = out_limit;
  out_name_ = out_name;
  return Value::string(std::move(text), &budget_);
}

}  // namespace strata::text::jinja
