// Access to an opened file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "gguf/layout.h"

namespace strata::gguf {
namespace {

struct Integer {
  bool negative = false;
  uint64_t u = 0;  // the value modulo 2^64
};

Integer from_signed(int64_t v) { return {v < 0, static_cast<uint64_t>(v)}; }

std::string text_of(Integer v) { return v.negative ? std::to_string(static_cast<int64_t>(v.u)) : std::to_string(v.u); }

std::string type_text(const Value& value) {
  if (value.type != ValueType::Array) return std::string(to_string(value.type));
  return fmt::format("array of {}", to_string(value.element));
}

ValueType item_type(const Value& value) { return value.type == ValueType::Array ? value.element : value.type; }

// The integers of a scalar or an array; false for other types.
bool each_integer(const Value& value, const std::function<void(Integer)>& f) {
  const bool array = value.type == ValueType::Array;
  switch (kind_of(item_type(value))) {
    case ValueKind::Unsigned:
      if (!array) f({false, value.u});
      for (const uint64_t v : value.us) f({false, v});
      return true;
    case ValueKind::Signed:
      if (!array) f(from_signed(value.i));
      for (const int64_t v : value.is) f(from_signed(v));
      return true;
    default: return false;
  }
}

}  // namespace

uint64_t File::data_bytes() const {
  uint64_t sum = 0;  // cannot overflow: the extents do not overlap and lie inside their files
  for (const TensorInfo& tensor : tensors_) sum += tensor.bytes;
  return sum;
}

uint64_t File::file_bytes() const {
  uint64_t sum = 0;
  for (const MappedFile& shard : shards_) sum += shard.size();
  return sum;
}

const Value* File::find(std::string_view key) const {
  const auto at = std::lower_bound(key_order_.begin(), key_order_.end(), key,
                                   [&](uint32_t i, std::string_view k) { return metadata_[i].key < k; });
  return at != key_order_.end() && metadata_[*at].key == key ? &metadata_[*at].value : nullptr;
}

const TensorInfo* File::find_tensor(std::string_view name) const {
  const auto at = std::lower_bound(tensor_order_.begin(), tensor_order_.end(), name,
                                   [&](uint32_t i, std::string_view n) { return tensors_[i].name < n; });
  return at != tensor_order_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

const std::byte* File::data(const TensorInfo& tensor) const {
  return shards_[tensor.shard].bytes().data() + data_start_[tensor.shard] + tensor.offset;
}

void File::check_sizes() const {
  for (const MappedFile& shard : shards_) {
    const size_t now = shard.size_on_disk();
    if (now < shard.size())
      throw Error(ErrorKind::File, fmt::format("shrank from {} to {} bytes while it was open", shard.size(), now),
                  shard.path());
  }
}

void File::read_ahead(ThreadPool& pool) const {
  check_sizes();
  for (const MappedFile& shard : shards_) {
    constexpr int64_t kPiece = int64_t{1} << 20;
    const auto pieces = static_cast<int64_t>((shard.size() + kPiece - 1) / kPiece);
    pool.run(pieces, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t piece = begin; piece < end; ++piece)
        shard.read_ahead(static_cast<size_t>(piece * kPiece), static_cast<size_t>(kPiece));
    });
  }
  check_sizes();
}

void File::refuse(std::string_view key, const std::string& message) const {
  throw Error(ErrorKind::Format, message, fmt::format("{} (key '{}')", path(), printable(key)));
}

std::optional<uint64_t> File::get_uint(std::string_view key, uint64_t min, uint64_t max) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  const ValueKind kind = kind_of(value->type);
  if ((kind != ValueKind::Unsigned && kind != ValueKind::Signed) || value->type == ValueType::Bool)
    refuse(key, fmt::format("value of type {}, expected an integer", type_text(*value)));
  return get_uints(key, min, max)->front();
}

std::optional<std::vector<uint64_t>> File::get_uints(std::string_view key, uint64_t min, uint64_t max) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<uint64_t> result;
  result.reserve(std::max<size_t>(1, value->array_size()));
  const bool integers = each_integer(*value, [&](Integer v) {
    if (v.negative || v.u < min || v.u > max)
      refuse(key, fmt::format("value {} is out of range, expected {} to {}", text_of(v), min, max));
    result.push_back(v.u);
  });
  if (!integers) refuse(key, fmt::format("value of type {}, expected integers", type_text(*value)));
  return result;
}

std::optional<std::vector<int64_t>> File::get_ints(std::string_view key, int64_t min, int64_t max) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> result;
  result.reserve(std::max<size_t>(1, value->array_size()));
  const bool integers = each_integer(*value, [&](Integer v) {
    const auto number = static_cast<int64_t>(v.u);
    const bool too_large = !v.negative && number < 0;
    if (too_large || number < min || number > max)
      refuse(key, fmt::format("value {} is out of range, expected {} to {}", text_of(v), min, max));
    result.push_back(number);
  });
  if (!integers) refuse(key, fmt::format("value of type {}, expected integers", type_text(*value)));
  return result;
}

std::optional<double> File::get_real(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type == ValueType::Array) refuse(key, fmt::format("value of type {}, expected a real", type_text(*value)));
  return get_reals(key)->front();
}

std::optional<std::vector<double>> File::get_reals(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (kind_of(item_type(*value)) != ValueKind::Real)
    refuse(key, fmt::format("value of type {}, expected reals", type_text(*value)));
  std::vector<double> result = value->type == ValueType::Array ? value->fs : std::vector<double>{value->f};
  for (const double v : result)
    if (!std::isfinite(v)) refuse(key, fmt::format("value {} is not finite", v));
  return result;
}

std::optional<bool> File::get_bool(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != ValueType::Bool) refuse(key, fmt::format("value of type {}, expected bool", type_text(*value)));
  return value->u != 0;
}

std::optional<std::string> File::get_string(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != ValueType::String)
    refuse(key, fmt::format("value of type {}, expected string", type_text(*value)));
  return value->s;
}

const std::vector<std::string>* File::get_strings(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return nullptr;
  if (value->type != ValueType::Array || value->element != ValueType::String)
    refuse(key, fmt::format("value of type {}, expected array of strings", type_text(*value)));
  return &value->ss;
}

}  // namespace strata::gguf
