#include "gguf/hf/safetensors_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace strata::gguf::hf {
namespace {

constexpr size_t kMaxTensors = 1u << 20;
constexpr size_t kMaxName = 1024;
constexpr size_t kMaxDims = 8;
constexpr size_t kMaxDepth = 16;  // of the index's free-form metadata

// Refuses everything; the two handlers below allow what their text may hold.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(const std::string& path) : path_(path) {}

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(number_integer_t) override { return value("a negative number"); }
  bool number_unsigned(number_unsigned_t) override { return value("a number"); }
  bool number_float(number_float_t, const string_t&) override { return value("a fraction"); }
  bool string(string_t&) override { return value("a string"); }
  bool binary(binary_t&) override { return value("binary data"); }
  bool start_object(size_t) override { return value("an object"); }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return value("a list"); }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    refuse("holds invalid JSON at byte " + std::to_string(position));
  }

 protected:
  virtual bool value(const char* what) = 0;  // a value that no other override took
  [[noreturn]] void refuse(const std::string& message) const { throw Error(ErrorKind::Format, message, path_); }
  void check_name(const std::string& name) const {
    const bool plain = std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 32 || c == 127; });
    if (name.empty() || name.size() > kMaxName || !plain)
      refuse("holds a tensor name that is empty, longer than " + std::to_string(kMaxName) +
             " bytes or has control characters");
  }

 private:
  const std::string& path_;
};

class HeaderHandler : public Handler {
 public:
  using Handler::Handler;
  std::vector<HeaderEntry> take() { return std::move(entries_); }

  bool key(string_t& name) override {
    if (depth_ == 1) {
      in_metadata_ = name == "__metadata__";
      if (in_metadata_) return true;
      check_name(name);
      if (entries_.size() == kMaxTensors) refuse("lists more than " + std::to_string(kMaxTensors) + " tensors");
      entries_.push_back({name, {}, {}, {}});
      seen_ = 0;
      offsets_ = 0;
      return true;
    }
    if (in_metadata_) return true;
    if (name != "dtype" && name != "shape" && name != "data_offsets")
      fail("has the unknown field \"" + name.substr(0, 64) + "\"");
    field_ = name == "dtype" ? kDtype : name == "shape" ? kShape : kOffsets;
    if ((seen_ & field_) != 0) fail("states " + name + " twice");
    seen_ |= field_;
    return true;
  }
  bool start_object(size_t) override {
    if (depth_ == 2 || in_array_) fail("holds an object where a value belongs");
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && !in_metadata_ && (seen_ != (kDtype | kShape | kOffsets) || offsets_ != 2))
      fail("needs dtype, shape and two data_offsets");
    --depth_;
    in_metadata_ = in_metadata_ && depth_ == 2;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || in_array_ || field_ == kDtype) fail("holds a list where a value belongs");
    in_array_ = true;
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    return true;
  }
  bool string(string_t& text) override {
    if (depth_ == 2 && in_metadata_) return true;
    if (depth_ != 2 || field_ != kDtype || in_array_) fail("holds a string where none belongs");
    if (text.size() > 16) fail("has an unknown dtype");
    entries_.back().dtype = text;
    return true;
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (!in_array_) fail("holds a number where none belongs");
    HeaderEntry& entry = entries_.back();
    if (field_ == kShape) {
      if (entry.shape.size() == kMaxDims) fail("has more than " + std::to_string(kMaxDims) + " dimensions");
      entry.shape.push_back(number);
    } else {
      if (offsets_ == 2) fail("has more than two data_offsets");
      (offsets_ == 0 ? entry.offsets.first : entry.offsets.second) = number;
      ++offsets_;
    }
    return true;
  }

 protected:
  bool value(const char* what) override { fail(std::string("holds ") + what + " where none belongs"); }

 private:
  enum Field : unsigned { kDtype = 1, kShape = 2, kOffsets = 4 };
  [[noreturn]] void fail(const std::string& message) const {
    refuse((depth_ == 0 || entries_.empty() || in_metadata_ ? "header " : "tensor " + entries_.back().name + " ") +
           message);
  }

  std::vector<HeaderEntry> entries_;
  int depth_ = 0;
  bool in_metadata_ = false;
  bool in_array_ = false;
  Field field_ = kDtype;
  unsigned seen_ = 0;
  int offsets_ = 0;
};

class IndexHandler : public Handler {
 public:
  using Handler::Handler;
  std::vector<IndexEntry> take() { return std::move(entries_); }

  bool key(string_t& name) override {
    if (depth_ == 1) in_map_ = name == "weight_map";
    if (depth_ == 2 && in_map_) {
      check_name(name);
      if (entries_.size() == kMaxTensors) refuse("lists more than " + std::to_string(kMaxTensors) + " tensors");
      entries_.push_back({name, {}});
    }
    return true;
  }
  bool start_object(size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(size_t) override {
    if (in_map_) refuse("weight_map holds a list instead of a file name");
    return enter();
  }
  bool end_array() override { return leave(); }
  bool string(string_t& text) override {
    if (!in_map_) return value("a string");
    if (depth_ != 2) refuse("weight_map is not a list of names");
    const bool plain = std::none_of(text.begin(), text.end(),
                                    [](unsigned char c) { return c < 32 || c == 127 || c == '/' || c == '\\'; });
    if (text.empty() || text.size() > 255 || text == "." || text == ".." || !plain)
      refuse("places tensor " + entries_.back().name + " outside the directory");
    entries_.back().file = text;
    return true;
  }

 protected:
  bool value(const char* what) override {
    if (depth_ == 0) refuse("is not a JSON object");
    if (in_map_) refuse(std::string("weight_map holds ") + what + " instead of a file name");
    return true;
  }

 private:
  bool enter() {
    if (in_map_ && depth_ >= 2) refuse("weight_map nests");
    if (++depth_ > kMaxDepth) refuse("nests deeper than " + std::to_string(kMaxDepth) + " levels");
    return true;
  }
  bool leave() {
    if (--depth_ == 1) in_map_ = false;
    return true;
  }

  std::vector<IndexEntry> entries_;
  size_t depth_ = 0;
  bool in_map_ = false;
};

}  // namespace

std::vector<HeaderEntry> parse_header_json(std::string_view text, const std::string& path) {
  HeaderHandler handler(path);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  return handler.take();
}

std::vector<IndexEntry> parse_index_json(std::string_view text, const std::string& path) {
  IndexHandler handler(path);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  std::vector<IndexEntry> entries = handler.take();
  if (entries.empty()) throw Error(ErrorKind::Format, "lists no tensors under weight_map", path);
  return entries;
}

}  // namespace strata::gguf::hf
