// A small validator of JSON schemas, written for tests: the keywords that Strata supports but for pattern and format.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace strata::test {

inline size_t characters_of(const std::string& text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

// Empty when the value is valid, else what is wrong.
inline std::string invalid(const nlohmann::json& value, const nlohmann::json& schema, const nlohmann::json& root) {
  using Json = nlohmann::json;
  if (schema.is_boolean()) return schema.get<bool>() ? "" : "nothing is allowed: " + value.dump();
  const auto wrong = [&](const std::string& key) { return key + " " + schema[key].dump() + ": " + value.dump(); };
  if (schema.contains("$ref")) {
    const std::string ref = schema["$ref"];
    return invalid(value, root.at(Json::json_pointer(ref.substr(1))), root);
  }
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    bool matches = false;
    for (const Json& type : types) {
      matches = matches || type == value.type_name() || (type == "integer" && value.is_number_integer());
    }
    if (!matches) return wrong("type");
  }
  if (schema.contains("enum") && std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return wrong("enum");
  if (schema.contains("const") && value != schema["const"]) return wrong("const");
  for (const char* key : {"anyOf", "oneOf"}) {
    bool any = !schema.contains(key);
    if (!any)
      for (const Json& way : schema[key]) any = any || invalid(value, way, root).empty();
    if (!any) return wrong(key);
  }
  if (schema.contains("allOf"))
    for (const Json& part : schema["allOf"])
      if (const std::string why = invalid(value, part, root); !why.empty()) return why;
  if (value.is_object()) {
    for (const Json& name : schema.value("required", Json::array()))
      if (!value.contains(name.get<std::string>())) return wrong("required");
    const Json properties = schema.value("properties", Json::object()),
               other = schema.value("additionalProperties", Json(true));
    for (const auto& [name, member] : value.items())
      if (const std::string why = invalid(member, properties.contains(name) ? properties[name] : other, root);
          !why.empty())
        return name + ": " + why;
  }
  if (value.is_array()) {
    const Json prefix = schema.value("prefixItems", Json::array()), items = schema.value("items", Json(true));
    for (size_t i = 0; i < value.size(); ++i)
      if (const std::string why = invalid(value[i], i < prefix.size() ? prefix[i] : items, root); !why.empty())
        return why;
    if (value.size() < schema.value("minItems", size_t{0})) return wrong("minItems");
    if (value.size() > schema.value("maxItems", SIZE_MAX)) return wrong("maxItems");
  }
  if (value.is_string()) {
    const size_t length = characters_of(value.get<std::string>());
    if (length < schema.value("minLength", size_t{0})) return wrong("minLength");
    if (length > schema.value("maxLength", SIZE_MAX)) return wrong("maxLength");
  }
  if (value.is_number()) {
    const double number = value.get<double>();
    if (schema.contains("minimum") && number < schema["minimum"].get<double>()) return wrong("minimum");
    if (schema.contains("maximum") && number > schema["maximum"].get<double>()) return wrong("maximum");
    if (schema.contains("exclusiveMinimum") && number <= schema["exclusiveMinimum"].get<double>())
      return wrong("exclusiveMinimum");
    if (schema.contains("exclusiveMaximum") && number >= schema["exclusiveMaximum"].get<double>())
      return wrong("exclusiveMaximum");
  }
  return "";
}

}  // namespace strata::test
