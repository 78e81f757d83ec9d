#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "text/jinja_json.h"
#include "text/reply_parser.h"

namespace strata::text {

using jinja::Value;
using Kind = Value::Kind;

namespace {

uint8_t kind_named(std::string_view type) {
  if (type == "null") return kJsonNull;
  if (type == "boolean") return kJsonBool;
  if (type == "integer" || type == "number") return kJsonNumber;
  if (type == "string") return kJsonString;
  if (type == "array") return kJsonArray;
  return type == "object" ? kJsonObject : kJsonAny;
}

uint8_t kind_of_value(const Value& value) {
  switch (value.kind()) {
    case Kind::None: return kJsonNull;
    case Kind::Bool: return kJsonBool;
    case Kind::String: return kJsonString;
    case Kind::List: return kJsonArray;
    case Kind::Map: return kJsonObject;
    default: return kJsonNumber;
  }
}

uint8_t kinds_of_schema(const Value& schema);

// Union of the kinds of a list; any when there is none.
template <typename KindOf>
uint8_t union_of(const Value* list, KindOf kind_of) {
  if (list == nullptr || !list->is(Kind::List)) return kJsonAny;
  uint8_t kinds = 0;
  for (const Value& item : list->items()) kinds = static_cast<uint8_t>(kinds | kind_of(item));
  return kinds == 0 ? static_cast<uint8_t>(kJsonAny) : kinds;
}

// Keywords that say nothing here ($ref, not, if) leave all kinds possible. Recursion ends with the depth of the JSON.
uint8_t kinds_of_schema(const Value& schema) {
  if (!schema.is(Kind::Map)) return kJsonAny;
  const auto find = [&](std::string_view key) { return schema.entries().find(key); };
  const auto named = [](const Value& v) { return v.is(Kind::String) ? kind_named(v.bytes()) : uint8_t{kJsonAny}; };
  uint8_t kinds = kJsonAny;
  if (const Value* type = find("type")) kinds = type->is(Kind::List) ? union_of(type, named) : named(*type);
  if (const Value* constant = find("const")) kinds = static_cast<uint8_t>(kinds & kind_of_value(*constant));
  kinds = static_cast<uint8_t>(kinds & union_of(find("enum"), kind_of_value));
  kinds = static_cast<uint8_t>(kinds & union_of(find("anyOf"), kinds_of_schema));
  kinds = static_cast<uint8_t>(kinds & union_of(find("oneOf"), kinds_of_schema));
  if (const Value* all = find("allOf"); all != nullptr && all->is(Kind::List)) {
    for (const Value& part : all->items()) kinds = static_cast<uint8_t>(kinds & kinds_of_schema(part));
  }
  return kinds == 0 ? static_cast<uint8_t>(kJsonAny) : kinds;  // a schema that nothing satisfies
}

ToolSchema schema_of(const Value& tool, const std::string& where) {
  const auto refuse = [&](const char* message, const char* field) {
    throw Error(ErrorKind::Argument, message, where + field);
  };
  if (!tool.is(Kind::Map)) refuse("must be an object", "");
  const Value* function = tool.entries().find("function");
  if (function == nullptr || !function->is(Kind::Map)) refuse("must be an object", ".function");
  const Value* name = function->entries().find("name");
  if (name == nullptr || !name->is(Kind::String) || name->bytes().empty()) refuse("must be a name", ".function.name");
  ToolSchema schema;
  schema.name = name->bytes();
  const Value* parameters = function->entries().find("parameters");
  if (parameters == nullptr || !parameters->is(Kind::Map)) return schema;
  const Value* properties = parameters->entries().find("properties");
  if (properties == nullptr || !properties->is(Kind::Map)) return schema;
  for (const auto& [key, value] : properties->entries().entries()) {
    schema.parameters.emplace_back(key.bytes(), kinds_of_schema(value));
  }
  return schema;
}

}  // namespace

uint8_t ToolSchema::kinds_of(std::string_view parameter) const {
  for (const auto& [known, kinds] : parameters)
    if (known == parameter) return kinds;
  return kJsonAny;
}

std::vector<ToolSchema> parse_tool_schemas(std::string_view json) {
  std::vector<ToolSchema> schemas;
  if (json.empty()) return schemas;
  const Value tools = jinja::parse_json(json, "tools");
  if (tools.is(Kind::None)) return schemas;
  if (!tools.is(Kind::List)) throw Error(ErrorKind::Argument, "must be a JSON array", "tools");
  for (size_t i = 0; i < tools.items().size(); ++i) {
    schemas.push_back(schema_of(tools.items()[i], fmt::format("tools[{}]", i)));
  }
  return schemas;
}

}  // namespace strata::text
