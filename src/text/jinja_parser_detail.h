// The parser: expressions in jinja_expression.cpp, statements in jinja_parser.cpp.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"
#include "text/template.h"

namespace strata::text::jinja {

class Parser {
 public:
  Parser(std::string_view source, const TemplateLimits& limits);
  Tree parse();

 private:
  // Counts how deep the parser is in itself.
  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser.depth_ > parser.limits_.nesting) parser.too_deep();
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Parser& parser_;
  };
  [[noreturn]] void too_deep() const;

  // Tokens.
  void shift() { token_ = lexer_.next(); }
  Token peek() const;  // the token after the current one
  bool is_operator(std::string_view text) const { return token_.kind == TokenKind::Operator && token_.raw == text; }
  bool is_name(std::string_view text) const { return token_.kind == TokenKind::Name && token_.raw == text; }
  bool accept_operator(std::string_view text);
  bool accept_name(std::string_view text);
  void expect_operator(std::string_view text);
  void expect_block_end();
  std::string expect_name(std::string_view what);
  [[noreturn]] void unexpected(std::string_view wanted) const;
  Symbol symbol(std::string_view name);

  // Statements.
  Body body(uint32_t opened, std::initializer_list<std::string_view> ends);
  Statement statement();
  Statement if_statement(uint32_t line);
  Statement for_statement(uint32_t line);
  Statement set_statement(uint32_t line);
  Statement macro_statement(uint32_t line);
  Target target();

  // Expressions, by falling looseness.
  ExprPtr tuple(bool with_condition, bool parentheses = false);
  ExprPtr expression();
  ExprPtr or_expression();
  ExprPtr and_expression();
  ExprPtr not_expression();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concat();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filter);
  ExprPtr primary();
  ExprPtr postfix(ExprPtr node);
  ExprPtr filters_and_tests(ExprPtr node);
  ExprPtr attribute(ExprPtr node);
  ExprPtr subscript(ExprPtr node);
  ExprPtr filter(ExprPtr node);
  ExprPtr test(ExprPtr node);
  ExprPtr list();
  ExprPtr map();
  ExprPtr name();
  ExprPtr string_literal();
  ExprPtr number_literal();
  bool at_tuple_end() const;
  void arguments(Expr& call);
  ExprPtr chain(Expr::Kind kind, ExprPtr (Parser::*next)(),
                std::initializer_list<std::pair<std::string_view, Operator>>);
  ExprPtr node(Expr::Kind kind) const;
  void add_child(Expr& parent, ExprPtr child) const;  // may be null

  Lexer lexer_;
  TemplateLimits limits_;
  Token token_;
  size_t depth_ = 0;
  size_t scopes_ = 0;  // loops and macros around this place
  std::map<std::string, Symbol, std::less<>> symbols_;
  Tree tree_;
};

bool is_filter(std::string_view name);
bool is_test(std::string_view name);

}  // namespace strata::text::jinja
