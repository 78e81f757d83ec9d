// JSON of requests: bounded parsing, and fields whose type and range are checked. Every error is an Error{Argument}
// whose `where` is the field.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::server {

using Json = nlohmann::ordered_json;

inline constexpr size_t kMaxJsonDepth = 128;

Json parse_object(std::string_view body);  // a request body: one JSON object in UTF-8
std::string to_text(const Json& value);    // on one line; bytes that are no UTF-8 become U+FFFD

class Fields {
 public:
  Fields(const Json& object, std::string where);  // Error when it is no object

  const Json* find(const char* name) const;  // null: absent or null
  std::optional<bool> boolean(const char* name) const;
  std::optional<int64_t> integer(const char* name, int64_t min, int64_t max) const;
  std::optional<double> real(const char* name, double min, double max) const;
  std::optional<std::string> text(const char* name) const;
  std::optional<std::vector<std::string>> texts(const char* name, size_t most) const;  // a string or a list of them
  const Json* object(const char* name) const;
  const Json* array(const char* name) const;

  std::string place(const char* name) const;  // "tools[0].function"
  [[noreturn]] void refuse(const char* name, const std::string& message) const;

 private:
  const Json& object_;
  std::string where_;
};

}  // namespace strata::server
