#include "text/jinja_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/jinja_limits.h"
#include "text/jinja_ops.h"
#include "text/unicode.h"

namespace strata::text::jinja {

using Kind = Value::Kind;

namespace {

// Builds values from the events of the JSON reader, which does not recurse.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(const std::string& where, bool data, size_t max_depth)
      : where_(where), data_(data), max_depth_(std::min(max_depth, kMaxDepth)) {}

  Value result() { return std::move(result_); }

  bool null() override { return put(Value::none()); }
  bool boolean(bool value) override { return put(Value::boolean(value)); }
  bool number_integer(int64_t value) override { return put(Value::integer(value)); }
  bool number_unsigned(uint64_t value) override {
    const bool fits = value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return put(fits ? Value::integer(static_cast<int64_t>(value)) : Value::big_integer(std::to_string(value)));
  }
  bool number_float(double value, const std::string& text) override {
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    return put(whole ? Value::big_integer(text) : Value::real(value));
  }
  bool string(std::string& text) override { return put(Value::string(marked(text))); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(size_t) override { return open(true); }
  bool start_array(size_t) override { return open(false); }
  bool key(std::string& text) override {
    open_.back().keys.push_back(marked(text));
    return true;
  }
  bool end_object() override {
    std::vector<std::pair<MarkedText, Value>> entries;
    Frame& frame = open_.back();
    entries.reserve(frame.values.size());
    for (size_t i = 0; i < frame.values.size(); ++i) {
      entries.emplace_back(std::move(frame.keys[i]), std::move(frame.values[i]));
    }
    open_.pop_back();
    return put(Value::map(std::move(entries)));
  }
  bool end_array() override {
    std::vector<Value> items = std::move(open_.back().values);
    open_.pop_back();
    return put(Value::list(std::move(items)));
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    if (error.id == 406)
      throw Error(ErrorKind::Argument, fmt::format("a number is out of range at byte {}", position), where_);
    throw Error(ErrorKind::Argument, fmt::format("malformed JSON at byte {}", position), where_);
  }

 private:
  struct Frame {
    std::vector<MarkedText> keys;
    std::vector<Value> values;
  };

  MarkedText marked(const std::string& text) const {
    return data_ ? MarkedText::all_data(text) : MarkedText::plain(text);
  }
  bool open(bool) {
    if (open_.size() >= max_depth_) {
      throw Error(ErrorKind::Argument, fmt::format("JSON nests deeper than {} levels", max_depth_), where_);
    }
    open_.emplace_back();
    return true;
  }
  bool put(Value value) {
    (open_.empty() ? result_ : open_.back().values.emplace_back()) = std::move(value);
    return true;
  }

  const std::string& where_;
  bool data_;
  size_t max_depth_;
  std::vector<Frame> open_;
  Value result_;
};

class Writer {
 public:
  Writer(const JsonStyle& style, Budget* budget) : style_(style), budget_(budget) {}

  MarkedText result() { return std::move(out_); }

  void write(const Value& value, size_t depth) {
    count(1);
    switch (value.kind()) {
      case Kind::None: return out_.append("null");
      case Kind::Bool: return out_.append(value.as_bool() ? "true" : "false");
      case Kind::Int: return out_.append(std::to_string(value.as_int()));
      case Kind::BigInt: return out_.append(value.what());
      case Kind::Float: return out_.append(real(value.as_real()));
      case Kind::String: return text(value.text());
      case Kind::List: return list(value.items(), depth);
      case Kind::Map: return map(value.entries().entries(), depth);
      case Kind::Undefined: fail(value.what());
      default: fail(fmt::format("tojson: a {} has no JSON form", type_name(value)));
    }
  }

 private:
  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return real_text(value);
  }

  void count(size_t bytes) {
    if (budget_ == nullptr) return;
    budget_->step(1 + bytes / 16);
    budget_->string(out_.bytes.size() + bytes);
  }

  void text(const MarkedText& text) {
    count(text.bytes.size());
    std::string escaped;
    escape(escaped, text.bytes);
    out_.append("\"");
    text.data.empty() ? out_.append(escaped) : out_.append_data(escaped);
    out_.append("\"");
    count(0);
  }

  void escape(std::string& out, std::string_view bytes) const {
    for (size_t pos = 0; pos < bytes.size();) {
      const char c = bytes[pos];
      constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
      constexpr std::string_view kLetters = "\"\\nrtfb";
      if (const size_t i = kShort.find(c); i != std::string_view::npos) {
        out += '\\';
        out += kLetters[i];
        ++pos;
      } else if (static_cast<uint8_t>(c) < 0x20 || (c == 0x7F && style_.ascii)) {
        out += fmt::format("\\u{:04x}", static_cast<uint8_t>(c));
        ++pos;
      } else if (static_cast<uint8_t>(c) < 0x80 || !style_.ascii) {
        out += c;
        ++pos;
      } else {
        const Utf8Result character = decode_utf8(bytes.substr(pos, 4));
        escape_wide(out, character.kind == Utf8Kind::Complete ? static_cast<uint32_t>(character.code) : 0xFFFD);
        pos += character.length;
      }
    }
  }

  static void escape_wide(std::string& out, uint32_t code) {
    if (code < 0x10000) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      code -= 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
    }
  }

  void line(size_t depth) {
    if (style_.indent < 0) return;
    const size_t width =
        depth * (style_.indent_text.empty() ? static_cast<size_t>(style_.indent) : style_.indent_text.size());
    count(width);
    out_.append("\n");
    if (style_.indent_text.empty()) {
      out_.append(std::string(width, ' '));
    } else {
      for (size_t i = 0; i < depth; ++i) out_.append(style_.indent_text);
    }
  }

  void list(const std::vector<Value>& items, size_t depth) {
    if (items.empty()) return out_.append("[]");
    out_.append("[");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out_.append(style_.item_separator);
      line(depth + 1);
      write(items[i], depth + 1);
    }
    line(depth);
    out_.append("]");
  }

  void map(const std::vector<MapObject::Entry>& entries, size_t depth) {
    if (entries.empty()) return out_.append("{}");
    std::vector<const MapObject::Entry*> order;
    for (const auto& entry : entries) order.push_back(&entry);
    if (style_.sort_keys) {
      std::sort(order.begin(), order.end(),
                [](const auto* a, const auto* b) { return a->first.bytes() < b->first.bytes(); });
    }
    out_.append("{");
    for (size_t i = 0; i < order.size(); ++i) {
      if (i != 0) out_.append(style_.item_separator);
      line(depth + 1);
      text(order[i]->first.text());
      out_.append(style_.key_separator);
      write(order[i]->second, depth + 1);
    }
    line(depth);
    out_.append("}");
  }

  const JsonStyle& style_;
  Budget* budget_;
  MarkedText out_;
};

}  // namespace

Value parse_json(std::string_view text, const std::string& where, bool data, size_t max_depth) {
  Builder builder(where, data, max_depth);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.result();
}

MarkedText to_json(const Value& value, const JsonStyle& style, Budget* budget) {
  Writer writer(style, budget);
  writer.write(value, 0);
  return writer.result();
}

}  // namespace strata::text::jinja
