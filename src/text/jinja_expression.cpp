#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "text/jinja_parser_detail.h"

namespace strata::text::jinja {

ExprPtr Parser::node(Expr::Kind kind) const {
  auto made = std::make_unique<Expr>();
  made->kind = kind;
  made->line = token_.line;
  return made;
}

void Parser::add_child(Expr& parent, ExprPtr child) const {
  if (child) {
    if (child->depth >= limits_.nesting) too_deep();
    parent.depth = std::max<uint16_t>(parent.depth, static_cast<uint16_t>(child->depth + 1));
  }
  parent.children.push_back(std::move(child));
}

bool Parser::at_tuple_end() const {
  return token_.kind == TokenKind::PrintEnd || token_.kind == TokenKind::BlockEnd || is_operator(")") ||
         is_name("recursive");
}

// Expressions with commas between them are a tuple.
ExprPtr Parser::tuple(bool with_condition, bool parentheses) {
  const auto item = [&] { return with_condition ? expression() : or_expression(); };
  if (at_tuple_end()) {
    if (parentheses) return node(Expr::Kind::Tuple);
    unexpected("an expression");
  }
  ExprPtr first = item();
  if (!is_operator(",")) return first;
  ExprPtr made = node(Expr::Kind::Tuple);
  add_child(*made, std::move(first));
  while (accept_operator(",")) {
    if (at_tuple_end()) break;
    add_child(*made, item());
  }
  return made;
}

ExprPtr Parser::expression() {
  const Depth depth(*this);
  ExprPtr value = or_expression();
  while (is_name("if")) {
    ExprPtr made = node(Expr::Kind::Condition);
    shift();
    add_child(*made, std::move(value));
    add_child(*made, or_expression());
    add_child(*made, accept_name("else") ? expression() : nullptr);
    value = std::move(made);
  }
  return value;
}

ExprPtr Parser::or_expression() {
  ExprPtr first = and_expression();
  if (!is_name("or")) return first;
  ExprPtr made = node(Expr::Kind::Or);
  add_child(*made, std::move(first));
  while (accept_name("or")) add_child(*made, and_expression());
  return made;
}

ExprPtr Parser::and_expression() {
  ExprPtr first = not_expression();
  if (!is_name("and")) return first;
  ExprPtr made = node(Expr::Kind::And);
  add_child(*made, std::move(first));
  while (accept_name("and")) add_child(*made, not_expression());
  return made;
}

ExprPtr Parser::not_expression() {
  if (!is_name("not")) return comparison();
  const Depth depth(*this);
  ExprPtr made = node(Expr::Kind::Not);
  shift();
  add_child(*made, not_expression());
  return made;
}

ExprPtr Parser::comparison() {
  static constexpr std::array<std::pair<std::string_view, Operator>, 6> kOperators = {{{"==", Operator::Equal},
                                                                                       {"!=", Operator::NotEqual},
                                                                                       {"<", Operator::Less},
                                                                                       {"<=", Operator::LessEqual},
                                                                                       {">", Operator::Greater},
                                                                                       {">=", Operator::GreaterEqual}}};
  const auto accept = [&](Operator& op) {
    for (const auto& [text, meaning] : kOperators) {
      op = meaning;
      if (accept_operator(text)) return true;
    }
    op = Operator::In;
    if (accept_name("in")) return true;
    op = Operator::NotIn;
    if (!is_name("not")) return false;
    const Token ahead = peek();
    if (ahead.kind != TokenKind::Name || ahead.raw != "in") return false;
    shift();
    shift();
    return true;
  };
  ExprPtr first = sum();
  Operator op;
  if (!accept(op)) return first;
  ExprPtr made = node(Expr::Kind::Compare);
  add_child(*made, std::move(first));
  do {
    made->operators.push_back(op);
    add_child(*made, sum());
  } while (accept(op));
  return made;
}

ExprPtr Parser::chain(Expr::Kind kind, ExprPtr (Parser::*next)(),
                      std::initializer_list<std::pair<std::string_view, Operator>> operators) {
  const auto accept = [&](Operator& op) {
    for (const auto& [text, meaning] : operators) {
      op = meaning;
      if (accept_operator(text)) return true;
    }
    return false;
  };
  ExprPtr first = (this->*next)();
  Operator op = Operator::Add;
  if (!accept(op)) return first;
  ExprPtr made = node(kind);
  add_child(*made, std::move(first));
  do {
    made->operators.push_back(op);
    add_child(*made, (this->*next)());
  } while (accept(op));
  return made;
}

ExprPtr Parser::sum() {
  return chain(Expr::Kind::Arithmetic, &Parser::concat, {{"+", Operator::Add}, {"-", Operator::Subtract}});
}

ExprPtr Parser::concat() { return chain(Expr::Kind::Concat, &Parser::product, {{"~", Operator::Add}}); }

ExprPtr Parser::product() {
  return chain(
      Expr::Kind::Arithmetic, &Parser::power,
      {{"*", Operator::Multiply}, {"/", Operator::Divide}, {"//", Operator::FloorDivide}, {"%", Operator::Modulo}});
}

ExprPtr Parser::power() {
  ExprPtr first = unary(true);
  if (!is_operator("**")) return first;
  ExprPtr made = node(Expr::Kind::Arithmetic);
  add_child(*made, std::move(first));
  while (accept_operator("**")) {
    made->operators.push_back(Operator::Power);
    add_child(*made, unary(true));
  }
  return made;
}

ExprPtr Parser::unary(bool with_filter) {
  ExprPtr made;
  if (is_operator("-") || is_operator("+")) {
    const Depth depth(*this);
    made = node(is_operator("-") ? Expr::Kind::Negate : Expr::Kind::Plus);
    shift();
    add_child(*made, unary(false));
  } else {
    made = primary();
  }
  made = postfix(std::move(made));
  return with_filter ? filters_and_tests(std::move(made)) : std::move(made);
}

ExprPtr Parser::primary() {
  switch (token_.kind) {
    case TokenKind::Name: return name();
    case TokenKind::String: return string_literal();
    case TokenKind::Integer:
    case TokenKind::Float: return number_literal();
    default: break;
  }
  if (is_operator("[")) return list();
  if (is_operator("{")) return map();
  if (!accept_operator("(")) unexpected("an expression");
  ExprPtr inner = tuple(true, true);
  expect_operator(")");
  return inner;
}

ExprPtr Parser::name() {
  const auto literal = [&](Value value) {
    ExprPtr made = node(Expr::Kind::Literal);
    made->constant = std::move(value);
    shift();
    return made;
  };
  if (is_name("true") || is_name("True")) return literal(Value::boolean(true));
  if (is_name("false") || is_name("False")) return literal(Value::boolean(false));
  if (is_name("none") || is_name("None")) return literal(Value::none());
  ExprPtr made = node(Expr::Kind::Name);
  made->name = token_.raw;
  made->symbol = symbol(token_.raw);
  tree_.read[made->symbol] = true;
  shift();
  return made;
}

ExprPtr Parser::string_literal() {
  ExprPtr made = node(Expr::Kind::Literal);
  std::string text;
  for (; token_.kind == TokenKind::String; shift()) text += token_.text;
  made->constant = Value::plain(text);
  return made;
}

ExprPtr Parser::number_literal() {
  ExprPtr made = node(Expr::Kind::Literal);
  std::string digits;
  for (const char c : token_.raw)
    if (c != '_') digits += c;
  if (token_.kind == TokenKind::Float) {
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range) fail_at(token_.line, "a number is out of range");
    made->constant = Value::real(value);
  } else {
    const char second = digits.size() > 1 ? static_cast<char>(digits[1] | 0x20) : '0';
    const int base = second == 'x' ? 16 : second == 'o' ? 8 : second == 'b' && digits[0] == '0' ? 2 : 10;
    int64_t value = 0;
    const char* begin = digits.data() + (base == 10 ? 0 : 2);
    const char* last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(begin, last, value, base);
    if (error == std::errc::result_out_of_range) {
      fail_at(token_.line, "a number exceeds the limit of 64 bits for integers");
    }
    const bool leading_zero = base == 10 && digits.size() > 1 && digits[0] == '0' && value != 0;
    if (error != std::errc() || end != last || leading_zero) fail_at(token_.line, "malformed number");
    made->constant = Value::integer(value);
  }
  shift();
  return made;
}

ExprPtr Parser::list() {
  ExprPtr made = node(Expr::Kind::List);
  shift();
  while (!accept_operator("]")) {
    if (!made->children.empty()) expect_operator(",");
    if (accept_operator("]")) break;
    add_child(*made, expression());
  }
  return made;
}

ExprPtr Parser::map() {
  ExprPtr made = node(Expr::Kind::Map);
  shift();
  while (!accept_operator("}")) {
    if (!made->children.empty()) expect_operator(",");
    if (accept_operator("}")) break;
    add_child(*made, expression());
    expect_operator(":");
    add_child(*made, expression());
  }
  return made;
}

ExprPtr Parser::postfix(ExprPtr made) {
  for (;;) {
    if (is_operator(".")) {
      made = attribute(std::move(made));
    } else if (is_operator("[")) {
      made = subscript(std::move(made));
    } else if (is_operator("(")) {
      ExprPtr call = node(Expr::Kind::Call);
      add_child(*call, std::move(made));
      arguments(*call);
      made = std::move(call);
    } else {
      return made;
    }
  }
}

ExprPtr Parser::filters_and_tests(ExprPtr made) {
  for (;;) {
    if (is_operator("|")) {
      made = filter(std::move(made));
    } else if (is_name("is")) {
      made = test(std::move(made));
    } else if (is_operator("(")) {
      made = postfix(std::move(made));
    } else {
      return made;
    }
  }
}

ExprPtr Parser::attribute(ExprPtr what) {
  shift();
  if (token_.kind == TokenKind::Integer) {  // x.0 is x[0]
    ExprPtr made = node(Expr::Kind::Subscript);
    add_child(*made, std::move(what));
    add_child(*made, number_literal());
    return made;
  }
  ExprPtr made = node(Expr::Kind::Attribute);
  add_child(*made, std::move(what));
  made->name = expect_name("the name of an attribute");
  if (made->name.starts_with('_')) {
    fail_at(made->line, fmt::format("attributes with an underscore are out of reach: '{}'", made->name.substr(0, 40)));
  }
  return made;
}

ExprPtr Parser::subscript(ExprPtr what) {
  const auto at_end = [&] { return is_operator("]") || is_operator(":"); };
  ExprPtr made = node(Expr::Kind::Subscript);
  shift();
  add_child(*made, std::move(what));
  if (is_operator("]")) unexpected("an expression");
  add_child(*made, at_end() ? nullptr : expression());
  if (is_operator(":")) {
    made->kind = Expr::Kind::Slice;
    shift();
    add_child(*made, at_end() ? nullptr : expression());
    add_child(*made, !accept_operator(":") || at_end() ? nullptr : expression());
  }
  if (is_operator(",")) fail_at(token_.line, "several subscripts in one pair of brackets are not supported");
  expect_operator("]");
  return made;
}

void Parser::arguments(Expr& call) {
  expect_operator("(");
  const size_t before = call.children.size();
  while (!accept_operator(")")) {
    if (call.children.size() != before) expect_operator(",");
    if (accept_operator(")")) break;
    if (is_operator("*") || is_operator("**")) fail_at(token_.line, "'*' arguments are not supported");
    if (token_.kind == TokenKind::Name) {
      const Token ahead = peek();
      if (ahead.kind == TokenKind::Operator && ahead.raw == "=") {
        for (const auto& known : call.named) {
          if (known == token_.raw) fail_at(token_.line, fmt::format("the argument '{}' is there twice", known));
        }
        call.named.emplace_back(token_.raw);
        shift();
        shift();
        add_child(call, expression());
        continue;
      }
    }
    if (!call.named.empty()) fail_at(token_.line, "an argument without a name follows one with a name");
    add_child(call, expression());
  }
}

ExprPtr Parser::filter(ExprPtr what) {
  shift();
  ExprPtr made = node(Expr::Kind::Filter);
  add_child(*made, std::move(what));
  made->name = expect_name("the name of a filter");
  if (!is_filter(made->name))
    fail_at(made->line, fmt::format("the filter '{}' is not supported", made->name.substr(0, 40)));
  if (is_operator("(")) arguments(*made);
  return made;
}

ExprPtr Parser::test(ExprPtr what) {
  shift();
  ExprPtr made = node(Expr::Kind::Test);
  made->negated = accept_name("not");
  add_child(*made, std::move(what));
  made->name = expect_name("the name of a test");
  if (!is_test(made->name))
    fail_at(made->line, fmt::format("the test '{}' is not supported", made->name.substr(0, 40)));
  const bool operand = token_.kind == TokenKind::Name || token_.kind == TokenKind::String ||
                       token_.kind == TokenKind::Integer || token_.kind == TokenKind::Float || is_operator("[") ||
                       is_operator("{");
  if (is_operator("(")) {
    arguments(*made);
  } else if (operand && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) fail_at(token_.line, "tests cannot be chained with 'is'");
    // What may follow a test and is no argument of it: `x is defined if y`, `x is string in z`.
    if (is_name("if") || is_name("in") || is_name("not") || is_name("recursive")) return made;
    add_child(*made, postfix(primary()));
  }
  return made;
}

}  // namespace strata::text::jinja
