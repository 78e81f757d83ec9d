// Walks the tree of a template.
#pragma once

#include <cstdint>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_limits.h"
#include "text/jinja_ops.h"

namespace strata::text::jinja {

class Evaluator {
 public:
  Evaluator(const Tree& tree, const TemplateLimits& limits, int64_t now);
  MarkedText render(const Value& context);

 private:
  // Variables are stacks of (level, value) by symbol. A name shows its value at the innermost level that is not older
  // than the macro being called, else that of level 0, the template itself.
  struct Binding {
    uint32_t level;
    Value value;
  };
  class Scope;  // one level

  void bind(Symbol symbol, Value value);
  void enter();
  void leave();
  const Value* find(Symbol symbol) const;

  void run(const Body& body);
  void run(const Statement& statement);
  void run_if(const Statement& s);
  void run_for(const Statement& s);
  void run_set(const Statement& s);
  void assign(const Target& target, const Value& value);
  Value filtered(const Statement& s, const Value& items);
  void print(const MarkedText& text);
  void print(const Value& value);

  class Frame;  // counts how deep the evaluator is in itself
  Value eval(const Expr& e);
  Value eval_node(const Expr& e);
  Value name(const Expr& e);
  Value map(const Expr& e);
  Value arithmetic_chain(const Expr& e);
  Value concat_chain(const Expr& e);
  bool comparison(const Expr& e);
  Value condition(const Expr& e);
  Value slice_of(const Expr& e);
  Value call(const Expr& e);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  std::vector<Value> eval_all(const std::vector<ExprPtr>& expressions);
  Arguments arguments(const Expr& e);
  Value optional(const ExprPtr& e) { return e ? eval(*e) : Value::none(); }

  Budget budget_;  // before all values: they give back to it
  const Tree& tree_;
  int64_t now_;
  uint32_t line_ = 1;
  std::vector<std::vector<Binding>> variables_;
  std::vector<std::vector<Symbol>> bound_;  // by level, from 1
  uint32_t base_ = 0;                       // first level of the macro being called
  size_t macros_ = 0;
  size_t frames_ = 0;
  MarkedText* out_ = nullptr;
  size_t out_limit_ = 0;
  std::string_view out_name_;
};

}  // namespace strata::text::jinja
