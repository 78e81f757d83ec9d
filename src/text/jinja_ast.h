// The syntax tree of a template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace strata::text::jinja {

using Symbol = uint32_t;  // a variable name, numbered by the parser

enum class Operator : uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  FloorDivide,
  Modulo,
  Power,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  In,
  NotIn,
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  enum class Kind : uint8_t {
    Literal,     // constant
    Name,        // symbol, name
    Tuple,       // children
    List,        // children
    Map,         // children: key, value, key, value
    Attribute,   // children[0], name
    Subscript,   // children[0], children[1]
    Slice,       // children: what, begin, end, step; the last three may be null
    Call,        // children: what, then arguments; the last named.size() of them have names
    Filter,      // the same, name
    Test,        // the same, name, negated
    Arithmetic,  // children joined from the left by operators
    Concat,      // children
    Compare,     // children chained by operators
    And,         // children
    Or,          // children
    Not,         // children[0]
    Negate,      // children[0]
    Plus,        // children[0]
    Condition,   // children: then, condition, else (may be null)
  };

  Kind kind;
  bool negated = false;
  uint16_t depth = 0;
  uint32_t line = 0;
  Symbol symbol = 0;
  std::string name;
  Value constant;
  std::vector<ExprPtr> children;
  std::vector<Operator> operators;
  std::vector<std::string> named;
};

struct Statement;
using Body = std::vector<Statement>;

struct Target {  // of an assignment
  std::vector<Symbol> symbols;
  bool unpack = false;
  std::string attribute;  // of the namespace symbols[0]; empty: none
};

struct Branch {
  ExprPtr condition;  // null: else
  Body body;
};

struct Macro {
  std::string name;
  Symbol symbol = 0;
  std::vector<std::pair<Symbol, std::string>> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
};

struct Statement {
  enum class Kind : uint8_t {
    Text,   // text
    Print,  // expr
    If,     // branches
    For,    // target, expr, condition (may be null), branches[0].body, branches[1] for no items (may be missing)
    Set,    // target, expr
    Macro,  // macro
  };

  Kind kind;
  uint32_t line = 0;
  MarkedText text;
  ExprPtr expr, condition;
  Target target;
  std::vector<Branch> branches;
  std::unique_ptr<Macro> macro;
};

struct Tree {
  Body body;
  std::vector<std::string> symbols;  // names by number
  std::vector<bool> read;            // the template reads it somewhere
  Symbol loop = 0;                   // of the name "loop"
};

}  // namespace strata::text::jinja
