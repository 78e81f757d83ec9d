#include "text/jinja_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_limits.h"
#include "text/jinja_parser_detail.h"

namespace strata::text::jinja {

Parser::Parser(std::string_view source, const TemplateLimits& limits) : lexer_(source), limits_(limits) {
  // Values nest no deeper than kMaxDepth, and the evaluator recurses as deep as the tree.
  limits_.nesting = std::min(limits_.nesting, kMaxDepth);
}

void Parser::too_deep() const {
  fail_at(token_.line, fmt::format("the template exceeds its limit 'nesting' of {}", limits_.nesting));
}

Token Parser::peek() const {
  Lexer ahead = lexer_;
  return ahead.next();
}

bool Parser::accept_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  shift();
  return true;
}

bool Parser::accept_name(std::string_view text) {
  if (!is_name(text)) return false;
  shift();
  return true;
}

void Parser::unexpected(std::string_view wanted) const {
  std::string found;
  switch (token_.kind) {
    case TokenKind::End: found = "the end of the template"; break;
    case TokenKind::Text: found = "text"; break;
    case TokenKind::PrintEnd:
    case TokenKind::BlockEnd: found = "the end of the tag"; break;
    case TokenKind::String: found = "a string"; break;
    default: found = fmt::format("'{}'", token_.raw.substr(0, 40)); break;
  }
  fail_at(token_.line, fmt::format("unexpected {}, expected {}", found, wanted));
}

void Parser::expect_operator(std::string_view text) {
  if (!accept_operator(text)) unexpected(fmt::format("'{}'", text));
}

void Parser::expect_block_end() {
  if (token_.kind != TokenKind::BlockEnd) unexpected("'%}'");
  shift();
}

std::string Parser::expect_name(std::string_view what) {
  if (token_.kind != TokenKind::Name) unexpected(what);
  std::string text(token_.raw);
  shift();
  return text;
}

Symbol Parser::symbol(std::string_view name) {
  const auto known = symbols_.find(name);
  if (known != symbols_.end()) return known->second;
  const auto fresh = static_cast<Symbol>(tree_.symbols.size());
  tree_.symbols.emplace_back(name);
  tree_.read.push_back(false);
  symbols_.emplace(name, fresh);
  return fresh;
}

Tree Parser::parse() {
  tree_.loop = symbol("loop");
  shift();
  tree_.body = body(1, {});
  if (token_.kind != TokenKind::End) unexpected("the end of the template");
  return std::move(tree_);
}

// Statements up to a block that begins with one of `ends`; that name is the current token then. `opened`: the line of
// the statement they belong to.
Body Parser::body(uint32_t opened, std::initializer_list<std::string_view> ends) {
  const Depth depth(*this);
  Body statements;
  for (;;) {
    Statement s;
    s.line = token_.line;
    if (token_.kind == TokenKind::Text) {
      s.kind = Statement::Kind::Text;
      s.text = MarkedText::plain(token_.raw);
      shift();
    } else if (token_.kind == TokenKind::PrintBegin) {
      shift();
      s.kind = Statement::Kind::Print;
      s.expr = tuple(true);
      if (token_.kind != TokenKind::PrintEnd) unexpected("'}}'");
      shift();
    } else if (token_.kind == TokenKind::BlockBegin) {
      shift();
      if (token_.kind != TokenKind::Name) unexpected("the name of a statement");
      if (std::find(ends.begin(), ends.end(), token_.raw) != ends.end()) return statements;
      s = statement();
    } else {
      if (ends.size() != 0) {
        fail_at(opened, fmt::format("'{}' is missing for the block that begins here", *(ends.end() - 1)));
      }
      return statements;
    }
    statements.push_back(std::move(s));
  }
}

Statement Parser::statement() {
  const uint32_t line = token_.line;
  const std::string_view name = token_.raw;
  if (accept_name("if")) return if_statement(line);
  if (accept_name("for")) return for_statement(line);
  if (accept_name("set")) return set_statement(line);
  if (accept_name("macro")) return macro_statement(line);
  if (name.starts_with("end") || name == "else" || name == "elif") {
    fail_at(line, fmt::format("'{}' without its beginning", name.substr(0, 40)));
  }
  fail_at(line, fmt::format("the statement '{}' is not supported", name.substr(0, 40)));
}

Statement Parser::if_statement(uint32_t line) {
  Statement s;
  s.kind = Statement::Kind::If;
  s.line = line;
  for (;;) {
    Branch branch;
    branch.condition = tuple(false);
    expect_block_end();
    branch.body = body(line, {"elif", "else", "endif"});
    s.branches.push_back(std::move(branch));
    if (!accept_name("elif")) break;
  }
  if (accept_name("else")) {
    expect_block_end();
    s.branches.push_back({nullptr, body(line, {"endif"})});
  }
  shift();  // endif
  expect_block_end();
  return s;
}

Target Parser::target() {
  Target t;
  const bool parentheses = accept_operator("(");
  for (;;) {
    const uint32_t line = token_.line;
    const std::string variable = expect_name("the name of a variable");
    for (const std::string_view reserved :
         {"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else"}) {
      if (variable == reserved) fail_at(line, fmt::format("cannot assign to '{}'", variable));
    }
    t.symbols.push_back(symbol(variable));
    if (!accept_operator(",")) break;
    t.unpack = true;
    if (token_.kind != TokenKind::Name) break;  // a comma at the end
  }
  if (parentheses) expect_operator(")");
  return t;
}

Statement Parser::for_statement(uint32_t line) {
  Statement s;
  s.kind = Statement::Kind::For;
  s.line = line;
  s.target = target();
  if (std::find(s.target.symbols.begin(), s.target.symbols.end(), tree_.loop) != s.target.symbols.end()) {
    fail_at(line, "cannot assign to 'loop' in a loop");
  }
  if (!accept_name("in")) unexpected("'in'");
  s.expr = tuple(false);
  if (accept_name("if")) s.condition = expression();
  if (is_name("recursive")) fail_at(token_.line, "'recursive' loops are not supported");
  expect_block_end();
  ++scopes_;
  s.branches.push_back({nullptr, body(line, {"else", "endfor"})});
  --scopes_;
  if (accept_name("else")) {
    expect_block_end();
    s.branches.push_back({nullptr, body(line, {"endfor"})});
  }
  shift();  // endfor
  expect_block_end();
  return s;
}

Statement Parser::set_statement(uint32_t line) {
  Statement s;
  s.kind = Statement::Kind::Set;
  s.line = line;
  s.target = target();
  if (is_operator(".")) {
    if (s.target.symbols.size() != 1) unexpected("'='");
    shift();
    s.target.attribute = expect_name("the name of an attribute");
    if (s.target.attribute.starts_with('_')) {
      fail_at(line, fmt::format("attributes with an underscore are out of reach: '{}'", s.target.attribute));
    }
    tree_.read[s.target.symbols[0]] = true;
  }
  if (token_.kind == TokenKind::BlockEnd || is_operator("|")) {
    fail_at(line, "'set' with a block is not supported: write {% set name = value %}");
  }
  expect_operator("=");
  s.expr = tuple(true);
  expect_block_end();
  return s;
}

Statement Parser::macro_statement(uint32_t line) {
  Statement s;
  s.kind = Statement::Kind::Macro;
  s.line = line;
  if (scopes_ != 0) fail_at(line, "a macro inside a loop or a macro is not supported");
  s.macro = std::make_unique<Macro>();
  s.macro->name = expect_name("the name of the macro");
  s.macro->symbol = symbol(s.macro->name);
  expect_operator("(");
  while (!accept_operator(")")) {
    if (!s.macro->parameters.empty()) expect_operator(",");
    if (accept_operator(")")) break;
    const std::string parameter = expect_name("the name of a parameter");
    for (const auto& known : s.macro->parameters) {
      if (known.second == parameter) fail_at(line, fmt::format("the parameter '{}' is there twice", parameter));
    }
    s.macro->parameters.emplace_back(symbol(parameter), parameter);
    if (accept_operator("=")) {
      s.macro->defaults.push_back(expression());
    } else if (!s.macro->defaults.empty()) {
      fail_at(line, fmt::format("the parameter '{}' without a default follows one with a default", parameter));
    }
  }
  expect_block_end();
  ++scopes_;
  s.macro->body = body(line, {"endmacro"});
  --scopes_;
  shift();  // endmacro
  expect_block_end();
  return s;
}

Tree parse_template(std::string_view source, const TemplateLimits& limits) {
  if (source.size() > limits.source_bytes) exceed("source bytes", limits.source_bytes);
  const std::string text = Lexer::normalised(source);
  return Parser(text, limits).parse();
}

}  // namespace strata::text::jinja
