#include "text/grammar/json_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "text/grammar/json_rules.h"
#include "text/grammar/pattern.h"
#include "text/grammar/schema_text.h"

namespace strata::text::grammar {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 12> kAnnotations = {"$schema",     "$id",        "$comment",    "$defs",
                                                           "definitions", "title",      "description", "default",
                                                           "examples",    "deprecated", "readOnly",    "writeOnly"};
constexpr std::array<std::string_view, 3> kObjectKeys = {"properties", "required", "additionalProperties"};
constexpr std::array<std::string_view, 4> kArrayKeys = {"items", "prefixItems", "minItems", "maxItems"};
constexpr std::array<std::string_view, 4> kStringKeys = {"minLength", "maxLength", "pattern", "format"};
constexpr std::array<std::string_view, 4> kNumberKeys = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
constexpr std::array<std::string_view, 7> kCombiners = {"$ref", "allOf", "anyOf", "oneOf", "const", "enum", "type"};

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A place in the schema, for messages and to bound the depth.
struct Place {
  std::string pointer = "#";
  size_t depth = 0;

  std::string text() const {
    const bool is_long = pointer.size() > 200;
    return "schema " + (is_long ? pointer.substr(0, 100) + "..." + pointer.substr(pointer.size() - 97) : pointer);
  }
  Place at(std::string_view key) const {
    Place below{pointer + "/", depth + 1};
    for (const char c : key.substr(0, 60)) below.pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return below;
  }
  Place at(std::string_view key, size_t index) const {
    Place below = at(key);
    below.pointer += "/" + std::to_string(index);
    return below;
  }
  Place at(std::string_view key, std::string_view name) const {
    Place below = at(key).at(name);
    --below.depth;
    return below;
  }
};

// What object keywords say, perhaps several schemas together.
struct Shape {
  struct Property {
    std::string name;
    const Json* schema;  // nullptr: any value
    Place place;
  };
  std::vector<Property> properties;
  std::set<std::string> required;
  const Json* additional = nullptr;  // nullptr: any; its value may be a bool
  Place additional_place;

  const Property* find(const std::string& name) const {
    const auto found =
        std::find_if(properties.begin(), properties.end(), [&](const Property& p) { return p.name == name; });
    return found == properties.end() ? nullptr : &*found;
  }
  bool open() const { return additional == nullptr || (additional->is_boolean() && additional->get<bool>()); }
};

class SchemaCompiler {
 public:
  SchemaCompiler(const Json& document, const GrammarLimits& limits)
      : document_(document), rules_(limits), json_(rules_) {}

  Rules compile_document() {
    rules_.root = rule_of(document_, {});
    while (!pending_.empty()) {
      const auto [rule, schema, place] = pending_.back();
      pending_.pop_back();
      rules_.define(rule, compile(*schema, place));
    }
    rules_.rules[rules_.root].name = "root";
    return std::move(rules_);
  }

 private:
  [[noreturn]] static void fail(const std::string& message, const Place& place) { refuse(message, place.text()); }

  uint32_t rule_of(const Json& schema, const Place& place) {  // compiled later: schemas may refer to themselves
    const auto [known, is_new] = known_.try_emplace(&schema, 0);
    if (is_new) {
      known->second = rules_.add_rule(place.pointer);
      pending_.push_back({known->second, &schema, {place.pointer, 0}});
    }
    return known->second;
  }

  ExprId compile(const Json& schema, const Place& place);
  ExprId compile_type(const std::string& type, const Json& schema, const Place& place);
  ExprId compile_untyped(const Json& schema, const Place& place);
  ExprId compile_any_of(const Json& schema, const std::string& key, const Place& place);
  ExprId compile_values(const Json& schema, const Place& place);
  ExprId compile_object(const Shape& shape, const Place& place);
  ExprId enclosed_members(const std::vector<ExprId>& members, const std::vector<bool>& required,
                          std::optional<ExprId> other, const Place& place);
  ExprId compile_array(const Json& schema, const Place& place);
  ExprId shared_rule(ExprId expr, const Place& place);
  ExprId compile_string(const Json& schema, const Place& place);
  ExprId compile_integer(const Json& schema, const Place& place);
  ExprId literal_value(const Json& value);

  void refuse_unknown(const Json& schema, const Place& place) const;
  void refuse_besides(const Json& schema, std::span<const std::string_view> allowed, const std::string& beside,
                      const Place& place) const;
  const Json& follow(const Json& schema, Place& place) const;
  const Json& target(const std::string& ref, const Place& place) const;
  Shape shape_of(const Json& schema, const Place& place);
  void merge_member(Shape& all, const Shape& member, const Place& place) const;
  uint32_t count(const Json& schema, const char* key, uint32_t otherwise, const Place& place) const;

  const Json& document_;
  Rules rules_;
  JsonRules json_;
  std::unordered_map<const Json*, uint32_t> known_;  // rules of schemas that something refers to
  struct Pending {
    uint32_t rule;
    const Json* schema;
    Place place;
  };
  std::vector<Pending> pending_;
};

void SchemaCompiler::refuse_unknown(const Json& schema, const Place& place) const {
  for (const auto& [key, value] : schema.items()) {
    const bool known = among(kAnnotations, key) || among(kObjectKeys, key) || among(kArrayKeys, key) ||
                       among(kStringKeys, key) || among(kNumberKeys, key) || among(kCombiners, key);
    if (!known) fail("keyword '" + key + "' is not supported", place);
  }
}

void SchemaCompiler::refuse_besides(const Json& schema, std::span<const std::string_view> allowed,
                                    const std::string& beside, const Place& place) const {
  for (const auto& [key, value] : schema.items()) {
    if (!among(kAnnotations, key) && !among(allowed, key)) {
      fail("keyword '" + key + "' is not supported beside '" + beside + "'", place);
    }
  }
}

ExprId SchemaCompiler::compile(const Json& schema, const Place& place) {
  rules_.deadline.check_now();
  if (place.depth > rules_.limits.schema_depth) {
    fail("schemas nest deeper than the limit of " + std::to_string(rules_.limits.schema_depth), place);
  }
  if (schema.is_boolean()) return schema.get<bool>() ? json_.value() : rules_.alternation({});
  if (!schema.is_object()) fail("a schema is an object or a boolean", place);
  refuse_unknown(schema, place);
  if (schema.contains("$ref")) {
    refuse_besides(schema, std::array<std::string_view, 1>{"$ref"}, "$ref", place);
    Place there = place;
    const Json& referred = follow(schema, there);
    return rules_.rule_ref(rule_of(referred, there));
  }
  if (schema.contains("allOf")) {
    const Json& members = schema["allOf"];
    const bool single = members.is_array() && members.size() == 1 &&
                        schema.size() == 1 + static_cast<size_t>(std::count_if(
                                                 schema.items().begin(), schema.items().end(),
                                                 [](const auto& item) { return among(kAnnotations, item.key()); }));
    if (single) return compile(members[0], place.at("allOf", size_t{0}));
    return compile_object(shape_of(schema, place), place);
  }
  if (schema.contains("anyOf")) return compile_any_of(schema, "anyOf", place);
  if (schema.contains("oneOf")) return compile_any_of(schema, "oneOf", place);
  if (schema.contains("const") || schema.contains("enum")) return compile_values(schema, place);
  if (!schema.contains("type")) return compile_untyped(schema, place);
  const Json& type = schema["type"];
  if (type.is_string()) return compile_type(type.get<std::string>(), schema, place);
  if (!type.is_array() || type.empty()) fail("'type' is a name or a list of names", place);
  std::vector<ExprId> ways;
  for (const Json& one : type) {
    if (!one.is_string()) fail("'type' is a name or a list of names", place);
    ways.push_back(compile_type(one.get<std::string>(), schema, place));
  }
  return rules_.alternation(ways);
}

// Keywords of other types say nothing about this one.
ExprId SchemaCompiler::compile_type(const std::string& type, const Json& schema, const Place& place) {
  if (type == "object") return compile_object(shape_of(schema, place), place);
  if (type == "array") return compile_array(schema, place);
  if (type == "string") return compile_string(schema, place);
  if (type == "integer") return compile_integer(schema, place);
  if (type == "boolean") return json_.boolean();
  if (type == "null") return json_.null();
  if (type != "number") fail("type '" + type.substr(0, 40) + "' is unknown", place);
  for (const std::string_view key : kNumberKeys) {
    if (schema.contains(key)) fail("keyword '" + std::string(key) + "' is supported for integers only", place);
  }
  return json_.number();
}

// Without a type, keywords say which types are meant.
ExprId SchemaCompiler::compile_untyped(const Json& schema, const Place& place) {
  const auto has = [&](const auto& keys) {
    return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return schema.contains(key); });
  };
  std::vector<ExprId> ways;
  if (has(kObjectKeys)) ways.push_back(compile_type("object", schema, place));
  if (has(kArrayKeys)) ways.push_back(compile_type("array", schema, place));
  if (has(kStringKeys)) ways.push_back(compile_type("string", schema, place));
  if (has(kNumberKeys)) ways.push_back(compile_type("number", schema, place));
  return ways.empty() ? json_.value() : rules_.alternation(ways);
}

ExprId SchemaCompiler::compile_any_of(const Json& schema, const std::string& key, const Place& place) {
  refuse_besides(schema, std::array<std::string_view, 1>{key}, key, place);
  const Json& members = schema[key];
  if (!members.is_array() || members.empty()) fail("'" + key + "' is a list of schemas", place);
  std::vector<ExprId> ways;
  for (size_t i = 0; i < members.size(); ++i) ways.push_back(compile(members[i], place.at(key, i)));
  return rules_.alternation(ways);
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "integer")
    return value.is_number_integer() || (value.is_number() && std::floor(value.get<double>()) == value.get<double>());
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

ExprId SchemaCompiler::compile_values(const Json& schema, const Place& place) {
  const bool is_enum = schema.contains("enum");
  const std::string key = is_enum ? "enum" : "const";
  refuse_besides(schema, std::array<std::string_view, 3>{"const", "enum", "type"}, key, place);
  if (is_enum && !schema["enum"].is_array()) fail("'enum' is a list of values", place);
  std::vector<const Json*> values;
  if (!is_enum) values.push_back(&schema["const"]);
  if (is_enum) {
    for (const Json& value : schema["enum"]) values.push_back(&value);
  }
  if (is_enum && schema.contains("const")) std::erase_if(values, [&](const Json* v) { return *v != schema["const"]; });
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    std::erase_if(values, [&](const Json* value) {
      return std::none_of(types.begin(), types.end(), [&](const Json& type) {
        return type.is_string() && has_type(*value, type.get_ref<const std::string&>());
      });
    });
  }
  if (values.empty()) fail("'" + key + "' leaves no value", place);
  std::vector<ExprId> ways;
  for (const Json* value : values) ways.push_back(literal_value(*value));
  return rules_.alternation(ways);
}

ExprId SchemaCompiler::literal_value(const Json& value) {
  if (!value.is_structured()) return rules_.literal(value.dump());
  std::vector<ExprId> parts;
  for (const auto& [key, item] : value.items()) {
    if (!parts.empty()) parts.push_back(json_.comma());
    if (value.is_object()) parts.push_back(rules_.sequence({rules_.literal(Json(key).dump()), json_.colon()}));
    parts.push_back(literal_value(item));
  }
  const bool object = value.is_object();
  if (parts.empty())
    return rules_.sequence({rules_.literal(object ? "{" : "["), json_.space(), rules_.literal(object ? "}" : "]")});
  return json_.enclosed(object ? "{" : "[", rules_.sequence(parts), false, object ? "}" : "]");
}

const Json& SchemaCompiler::target(const std::string& ref, const Place& place) const {
  const Json* at = &document_;
  for (const std::string& key : keys_of_ref(ref, place.text())) {
    const bool index =
        at->is_array() && !key.empty() && key.size() < 8 && key.find_first_not_of("0123456789") == std::string::npos;
    if (at->is_object() && at->contains(key)) {
      at = &(*at)[key];
    } else if (index && std::stoul(key) < at->size()) {
      at = &(*at)[std::stoul(key)];
    } else {
      fail("$ref '" + ref.substr(0, 100) + "' leads nowhere", place);
    }
  }
  return *at;
}

// To the end of a chain of references.
const Json& SchemaCompiler::follow(const Json& schema, Place& place) const {
  const Json* at = &schema;
  for (size_t steps = 0; at->is_object() && at->contains("$ref"); ++steps) {
    if (steps >= rules_.limits.ref_chain) {
      fail(
          "this chain of $ref is longer than the limit of " + std::to_string(rules_.limits.ref_chain) + ", or a circle",
          place);
    }
    const Json& ref = (*at)["$ref"];
    if (!ref.is_string()) fail("'$ref' is a string", place);
    if (at != &schema) refuse_besides(*at, std::array<std::string_view, 1>{"$ref"}, "$ref", place);
    at = &target(ref.get_ref<const std::string&>(), place);
    place.pointer = ref.get<std::string>().substr(0, 200);
  }
  return *at;
}

Shape SchemaCompiler::shape_of(const Json& schema, const Place& place) {
  if (place.depth > rules_.limits.schema_depth) {
    fail("schemas nest deeper than the limit of " + std::to_string(rules_.limits.schema_depth), place);
  }
  Shape shape;
  if (schema.contains("properties")) {
    if (!schema["properties"].is_object()) fail("'properties' is an object", place);
    for (const auto& [name, property] : schema["properties"].items()) {
      rules_.deadline.check();
      shape.properties.push_back({name, &property, place.at("properties", std::string_view(name))});
    }
  }
  if (schema.contains("required")) {
    if (!schema["required"].is_array()) fail("'required' is a list of names", place);
    for (const Json& name : schema["required"]) {
      if (!name.is_string()) fail("'required' is a list of names", place);
      shape.required.insert(name.get<std::string>());
    }
  }
  if (schema.contains("additionalProperties")) {
    shape.additional = &schema["additionalProperties"];
    shape.additional_place = place.at("additionalProperties");
  }
  if (!schema.contains("allOf")) return shape;
  constexpr std::array<std::string_view, 5> kPlain = {"type", "properties", "required", "additionalProperties",
                                                      "allOf"};
  refuse_besides(schema, kPlain, "allOf", place);
  if (schema.contains("type") && schema["type"] != "object") fail("'allOf' is supported for objects only", place);
  if (!schema["allOf"].is_array() || schema["allOf"].empty()) fail("'allOf' is a list of schemas", place);
  for (size_t i = 0; i < schema["allOf"].size(); ++i) {
    Place member_place = place.at("allOf", i);
    const Json& written = schema["allOf"][i];
    if (written.is_object() && written.contains("$ref")) {
      refuse_besides(written, std::array<std::string_view, 1>{"$ref"}, "$ref", member_place);
    }
    const Json& member = follow(written, member_place);
    if (!member.is_object()) fail("'allOf' is supported for plain objects only", member_place);
    refuse_unknown(member, member_place);
    refuse_besides(member, kPlain, "allOf", member_place);
    if (member.contains("type") && member["type"] != "object")
      fail("'allOf' is supported for objects only", member_place);
    merge_member(shape, shape_of(member, member_place), member_place);
  }
  return shape;
}

void SchemaCompiler::merge_member(Shape& all, const Shape& member, const Place& place) const {
  const auto check_closed = [&](const Shape& closed, const Shape& other) {
    for (const Shape::Property& property : other.properties) {
      if (!closed.open() && closed.find(property.name) == nullptr) {
        fail("keyword 'additionalProperties' in allOf: property '" + property.name.substr(0, 60) +
                 "' of another part is not among the properties here",
             place);
      }
    }
  };
  check_closed(all, member);
  check_closed(member, all);
  if (!all.open() && !member.open() && *all.additional != *member.additional) {
    fail("keyword 'additionalProperties' differs between the parts of allOf", place);
  }
  for (const Shape::Property& property : member.properties) {
    rules_.deadline.check();
    const Shape::Property* known = all.find(property.name);
    if (known == nullptr) {
      all.properties.push_back(property);
    } else if (*known->schema != *property.schema) {
      fail("property '" + property.name.substr(0, 60) + "' has two different schemas in allOf", place);
    }
  }
  all.required.insert(member.required.begin(), member.required.end());
  if (all.open() && !member.open()) {
    all.additional = member.additional;
    all.additional_place = member.additional_place;
  }
}

// Properties come in the order of the schema; optional ones may be left out; then others, where they are allowed.
ExprId SchemaCompiler::compile_object(const Shape& shape, const Place& place) {
  std::vector<Shape::Property> properties = shape.properties;
  const bool closed = shape.additional != nullptr && shape.additional->is_boolean() && !shape.additional->get<bool>();
  for (const std::string& name : shape.required) {
    rules_.deadline.check();
    if (shape.find(name) != nullptr) continue;
    if (closed) fail("property '" + name.substr(0, 60) + "' is required but not allowed", place);
    properties.push_back({name, shape.additional, shape.additional_place});
  }
  std::vector<ExprId> members;
  std::vector<std::u32string> names;
  std::vector<bool> required;
  for (const Shape::Property& property : properties) {
    const ExprId value = property.schema == nullptr ? json_.value() : compile(*property.schema, property.place);
    members.push_back(rules_.sequence({rules_.literal(Json(property.name).dump()), json_.colon(), value}));
    names.push_back(decode_utf8_text(property.name));
    required.push_back(shape.required.contains(property.name));
  }
  std::optional<ExprId> other;
  if (!closed && properties.empty() && shape.additional == nullptr) return json_.object();
  if (!closed) {
    const ExprId value =
        shape.additional == nullptr ? json_.value() : compile(*shape.additional, shape.additional_place);
    const uint32_t rule = rules_.add_rule(place.pointer + " other");
    const ExprId key =
        properties.empty() ? json_.string() : rules_.sequence({rules_.literal("\""), rules_.other_key(names)});
    rules_.define(rule, rules_.sequence({key, json_.colon(), value}));
    rules_.rules[rule].keep = true;
    other = rules_.rule_ref(rule);
  }
  return enclosed_members(members, required, other, place);
}

// next: a member must come, property i or a later one. Each is made from the one behind it, and is a rule where two
// places lead to it, so that nothing is written out twice.
ExprId SchemaCompiler::enclosed_members(const std::vector<ExprId>& members, const std::vector<bool>& required,
                                        std::optional<ExprId> other, const Place& place) {
  constexpr size_t kInline = 16;  // members in one expression
  bool may_end = true;            // nothing from here on is required
  std::optional<ExprId> next;
  if (other) next = rules_.sequence({*other, rules_.star(rules_.sequence({json_.comma(), *other}))});
  for (size_t i = members.size(); i-- > 0;) {
    const bool shared = next && (!required[i] || i % kInline == 0);
    if (shared && rules_.exprs[*next].kind != Expr::Kind::Rule) {
      const uint32_t rule = rules_.add_rule(place.pointer + " members");
      rules_.define(rule, *next);
      next = rules_.rule_ref(rule);
    }
    ExprId way = members[i];
    if (next) {
      const ExprId more = rules_.sequence({json_.comma(), *next});
      way = rules_.sequence({members[i], may_end ? rules_.optional(more) : more});
    }
    next = next && !required[i] ? rules_.alternation({way, *next}) : way;
    may_end = may_end && !required[i];
  }
  if (!next) return rules_.sequence({rules_.literal("{"), json_.space(), rules_.literal("}")});
  return json_.enclosed("{", *next, may_end, "}");
}

// What is written twice becomes a rule: schemas in schemas would double at each level.
ExprId SchemaCompiler::shared_rule(ExprId expr, const Place& place) {
  const Expr::Kind kind = rules_.exprs[expr].kind;
  if (kind == Expr::Kind::Rule || kind == Expr::Kind::Literal) return expr;
  const uint32_t rule = rules_.add_rule(place.pointer + " item");
  rules_.define(rule, expr);
  return rules_.rule_ref(rule);
}

uint32_t SchemaCompiler::count(const Json& schema, const char* key, uint32_t otherwise, const Place& place) const {
  if (!schema.contains(key)) return otherwise;
  const Json& value = schema[key];
  const double number = value.is_number() ? value.get<double>() : -1;
  if (number < 0 || number != std::floor(number)) fail("'" + std::string(key) + "' is a number of 0 or more", place);
  if (number > static_cast<double>(rules_.limits.repetition)) {
    fail("keyword '" + std::string(key) + "': " + value.dump() + " is above the limit of " +
             std::to_string(rules_.limits.repetition) + " repetitions",
         place);
  }
  return static_cast<uint32_t>(number);
}

ExprId SchemaCompiler::compile_array(const Json& schema, const Place& place) {
  const uint32_t min = count(schema, "minItems", 0, place);
  uint32_t max = count(schema, "maxItems", kUnbounded, place);
  std::vector<ExprId> prefix;
  if (schema.contains("prefixItems")) {
    const Json& items = schema["prefixItems"];
    if (!items.is_array()) fail("'prefixItems' is a list of schemas", place);
    for (size_t i = 0; i < items.size() && i < max; ++i)
      prefix.push_back(compile(items[i], place.at("prefixItems", i)));
  }
  const bool more = !schema.contains("items") || schema["items"] != false;
  const auto fixed = static_cast<uint32_t>(prefix.size());
  if (!more) max = std::min(max, fixed);
  if (min > max) fail("'minItems' is above what the array may hold", place);
  const bool needs_item = max > fixed;
  const ExprId item = !needs_item                ? rules_.literal("")
                      : schema.contains("items") ? compile(schema["items"], place.at("items"))
                                                 : json_.value();
  if (fixed == 0) return json_.list_of(shared_rule(item, place), min, max);

  const auto then = [&](ExprId element) { return rules_.sequence({json_.comma(), element}); };
  ExprId rest = rules_.literal("");
  if (needs_item)
    rest = rules_.repeat(then(item), min > fixed ? min - fixed : 0, max == kUnbounded ? max : max - fixed);
  for (uint32_t i = fixed; i-- > 1;) {
    rest = rules_.sequence({then(prefix[i]), rest});
    if (i >= min) rest = rules_.optional(rest);
  }
  return json_.enclosed("[", rules_.sequence({prefix[0], rest}), min == 0, "]");
}

ExprId SchemaCompiler::compile_string(const Json& schema, const Place& place) {
  const uint32_t min = count(schema, "minLength", 0, place), max = count(schema, "maxLength", kUnbounded, place);
  if (min > max) fail("'minLength' is above 'maxLength'", place);
  const bool has_pattern = schema.contains("pattern"), has_format = schema.contains("format");
  if (!has_pattern && !has_format) return json_.string(min, max);
  if (has_pattern && has_format) fail("keyword 'format' is not supported beside 'pattern'", place);
  const char* const key = has_pattern ? "pattern" : "format";
  if (!schema[key].is_string()) fail("'" + std::string(key) + "' is a string", place);
  const std::string text = schema[key].get<std::string>();
  const char* const format = has_format ? format_pattern(text) : nullptr;
  if (has_format && format == nullptr) {
    fail("keyword 'format': '" + text.substr(0, 40) + "' is not supported; known are date, time, date-time and uuid",
         place);
  }
  const Pattern pattern = parse_pattern(rules_, has_format ? format : text.c_str(), json_.character(), place.text());
  if (min > pattern.min || pattern.max > (max == kUnbounded ? kEndless : uint64_t{max})) {
    fail(std::string("keyword '") + (min > pattern.min ? "minLength" : "maxLength") + "' is supported beside '" + key +
             "' only where every match has such a length anyway",
         place);
  }
  const ExprId quote = rules_.literal("\"");
  return rules_.sequence({quote, pattern.expr, quote});
}

ExprId SchemaCompiler::compile_integer(const Json& schema, const Place& place) {
  std::optional<int64_t> low, high;
  const auto read = [&](const char* key, bool lower, bool exclusive) {
    if (!schema.contains(key)) return;
    const Json& value = schema[key];
    constexpr int64_t kMost = 999'999'999'999'999'999;
    const double number = value.is_number() ? value.get<double>() : NAN;
    if (!(std::abs(number) <= static_cast<double>(kMost))) {
      fail("keyword '" + std::string(key) + "' is supported for numbers of up to 18 digits", place);
    }
    const bool whole = value.is_number_integer() || number == std::floor(number);
    int64_t bound = value.is_number_integer() ? value.get<int64_t>()
                                              : static_cast<int64_t>(lower ? std::ceil(number) : std::floor(number));
    if (exclusive && whole) bound += lower ? 1 : -1;
    if (lower) low = std::max(low.value_or(bound), bound);
    if (!lower) high = std::min(high.value_or(bound), bound);
  };
  read("minimum", true, false), read("exclusiveMinimum", true, true);
  read("maximum", false, false), read("exclusiveMaximum", false, true);
  if (!low && !high) return json_.integer();
  if (low && high && *low > *high) fail("no integer lies between 'minimum' and 'maximum'", place);
  return integer_range(rules_, low, high);
}

Json parse_json(std::string_view text, const GrammarLimits& limits) {
  check_schema_text(text, limits);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    const std::string what = error.what();  // "[json.exception...] what"
    refuse(what.substr(std::min(what.find("] ") + 2, what.size())).substr(0, 300), "schema");
  }
}

}  // namespace

Rules compile_json_schema(std::string_view text, const GrammarLimits& limits) {
  const Json document = parse_json(text, limits);
  return SchemaCompiler(document, limits).compile_document();
}

}  // namespace strata::text::grammar
