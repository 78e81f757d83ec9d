#include "server/json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"

namespace strata::server {

Json parse_object(std::string_view body) {
  if (body.empty()) throw Error(ErrorKind::Argument, "the body is empty: send a JSON object");
  try {
    check_json_depth(body, kMaxJsonDepth, "the body");
  } catch (const Error& error) {
    throw Error(ErrorKind::Argument, error.message(), error.where());
  }
  Json parsed;
  try {
    parsed = Json::parse(body);
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::Argument, fmt::format("the body is no JSON in UTF-8: {}", error.what()));
  }
  if (!parsed.is_object()) throw Error(ErrorKind::Argument, "the body must be a JSON object");
  return parsed;
}

std::string to_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

Fields::Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) throw Error(ErrorKind::Argument, "must be an object", where_);
}

std::string Fields::place(const char* name) const { return where_.empty() ? name : where_ + "." + name; }

void Fields::refuse(const char* name, const std::string& message) const {
  throw Error(ErrorKind::Argument, message, place(name));
}

const Json* Fields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> Fields::boolean(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(name, "must be true or false");
  return value->get<bool>();
}

std::optional<int64_t> Fields::integer(const char* name, int64_t min, int64_t max) const {
  const auto value = real(name, static_cast<double>(min), static_cast<double>(max));
  if (!value) return std::nullopt;
  const Json& exact = *find(name);
  if (exact.is_number_integer()) {  // also unsigned; in range, so both fit
    const auto whole = exact.get<int64_t>();
    if (whole < min || whole > max) refuse(name, fmt::format("must be {} to {}", min, max));
    return whole;
  }
  if (*value != std::floor(*value)) refuse(name, "must be a whole number");
  return static_cast<int64_t>(*value);
}

std::optional<double> Fields::real(const char* name, double min, double max) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(name, "must be a number");
  const auto number = value->get<double>();
  if (!(number >= min && number <= max)) refuse(name, fmt::format("must be {} to {}", min, max));
  return number;
}

std::optional<std::string> Fields::text(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(name, "must be a string");
  return value->get<std::string>();
}

std::optional<std::vector<std::string>> Fields::texts(const char* name, size_t most) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::vector<std::string>{value->get<std::string>()};
  if (!value->is_array()) refuse(name, "must be a string or a list of strings");
  if (value->size() > most) refuse(name, fmt::format("has {} entries, at most {} are allowed", value->size(), most));
  std::vector<std::string> list;
  for (const Json& item : *value) {
    if (!item.is_string()) refuse(name, "must be a string or a list of strings");
    list.push_back(item.get<std::string>());
  }
  return list;
}

const Json* Fields::object(const char* name) const {
  const Json* value = find(name);
  if (value != nullptr && !value->is_object()) refuse(name, "must be an object");
  return value;
}

const Json* Fields::array(const char* name) const {
  const Json* value = find(name);
  if (value != nullptr && !value->is_array()) refuse(name, "must be a list");
  return value;
}

}  // namespace strata::server
