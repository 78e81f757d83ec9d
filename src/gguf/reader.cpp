// Parsing of one file. Every count is bounded by the bytes that remain before anything is reserved or looped over, so
// that time and memory stay proportional to the size of the file.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "gguf/cursor.h"
#include "gguf/layout.h"
#include "gguf/shard.h"

namespace strata::gguf {
namespace {

class ShardReader {
 public:
  ShardReader(Shard& shard, const Limits& limits, uint64_t& metadata_left)
      : shard_(shard), limits_(limits), metadata_left_(metadata_left), cursor_(shard.file.bytes()) {}

  void run() {
    read_header();
    read_metadata();
    sort_keys();
    read_tensor_infos();
    place_data();
    check_overlaps();
  }

 private:
  [[noreturn]] void fail(uint64_t at, const std::string& message) const {
    format_error(shard_.file.path(), at, subject_, name_, message);
  }

  void about(std::string_view subject, std::string_view name) {
    subject_ = subject;
    name_ = name;
  }

  template <typename T>
  T read(const char* field) {
    const uint64_t at = cursor_.position();
    const T value = cursor_.read<T>();
    if (!cursor_.ok())
      fail(at, fmt::format("the file ends inside the {}: {} bytes left, expected {}", field, cursor_.remaining(),
                           sizeof value));
    return value;
  }

  // A count, refused unless that many items of at least item_bytes can follow.
  uint64_t read_count(const char* field, uint64_t item_bytes) {
    const uint64_t at = cursor_.position();
    const uint64_t count = read<uint64_t>(field);
    check_count(at, field, count, item_bytes);
    return count;
  }

  void check_count(uint64_t at, const char* field, uint64_t count, uint64_t item_bytes) const {
    const uint64_t most = cursor_.remaining() / item_bytes;
    if (count > most)
      fail(at, fmt::format("{} {} does not fit the file: {} bytes left, expected at most {}", field, count,
                           cursor_.remaining(), most));
  }

  std::string_view read_string(const char* field, uint64_t limit) {
    const uint64_t at = cursor_.position();
    const uint64_t length = read_count(field, 1);
    if (length > limit) fail(at, fmt::format("{} {} is above the limit of {}", field, length, limit));
    return cursor_.text(length);
  }

  void charge(uint64_t at, uint64_t count, uint64_t item_bytes) {
    uint64_t bytes = 0;
    if (!checked_mul(count, item_bytes, bytes) || bytes > metadata_left_)
      fail(at, fmt::format("metadata is larger than the limit of {} bytes", limits_.max_metadata));
    metadata_left_ -= bytes;
  }

  void read_header();
  void read_version();
  void read_metadata();
  void sort_keys();
  Value read_value();
  void read_array(Value& value);
  ValueType read_value_type(const char* field);
  template <typename T>
  T read_number(ValueType type, const char* field);
  template <typename T, typename Wide>
  void read_numbers(ValueType type, uint64_t count, std::vector<Wide>& out);
  uint32_t alignment() const;
  void read_tensor_infos();
  TensorInfo read_tensor_info();
  void place_data();
  void check_overlaps();

  Shard& shard_;
  const Limits& limits_;
  uint64_t& metadata_left_;
  Cursor cursor_;
  uint64_t kv_count_ = 0;
  uint64_t tensor_count_ = 0;
  std::string_view subject_;
  std::string_view name_;
};

void ShardReader::read_header() {
  if (shard_.file.size() == 0) fail(0, "the file is empty, expected a GGUF header");
  const std::string_view magic = cursor_.text(kMagic.size());
  if (!cursor_.ok()) fail(0, fmt::format("the file has {} bytes, expected a GGUF header", shard_.file.size()));
  if (magic == "FUGG") fail(0, "big-endian file, expected a little-endian one");
  if (magic != kMagic) fail(0, fmt::format("not a GGUF file: magic '{}', expected 'GGUF'", printable(magic)));
  read_version();
  const uint64_t at = cursor_.position();
  tensor_count_ = read<uint64_t>("tensor count");
  kv_count_ = read<uint64_t>("key count");
  check_count(at, "tensor count", tensor_count_, kMinTensorInfoBytes);
  check_count(at + 8, "key count", kv_count_, kMinKeyValueBytes);
  if (tensor_count_ > limits_.max_tensors)
    fail(at, fmt::format("tensor count {} is above the limit of {}", tensor_count_, limits_.max_tensors));
  if (kv_count_ > limits_.max_keys)
    fail(at + 8, fmt::format("key count {} is above the limit of {}", kv_count_, limits_.max_keys));
}

void ShardReader::read_version() {
  const uint64_t at = cursor_.position();
  const auto version = read<uint32_t>("version");
  if (version == kVersion) return;
  const uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= kVersion) fail(at, "big-endian file, expected a little-endian one");
  if (version == 1 || version == 2)
    fail(at, fmt::format("GGUF version {} is no longer read, expected {}: convert the model again", version, kVersion));
  fail(at, fmt::format("unknown GGUF version {}, expected {}", version, kVersion));
}

void ShardReader::read_metadata() {
  charge(cursor_.position(), kv_count_, sizeof(KeyValue));
  shard_.metadata.reserve(kv_count_);
  shard_.key_at.reserve(kv_count_);
  for (uint64_t i = 0; i < kv_count_; ++i) {
    const uint64_t at = cursor_.position();
    about("", "");
    const std::string_view key = read_string("key length", kMaxKey);
    about("key", key);
    if (const std::string problem = name_problem(key, kMaxKey); !problem.empty()) fail(at, problem);
    shard_.key_at.push_back(at);
    shard_.metadata.push_back({std::string(key), read_value()});
  }
}

void ShardReader::sort_keys() {
  const auto& metadata = shard_.metadata;
  auto& order = shard_.key_order;
  order.resize(metadata.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const int c = metadata[a].key.compare(metadata[b].key);
    return c != 0 ? c < 0 : a < b;
  });
  const auto twice = std::adjacent_find(order.begin(), order.end(),
                                        [&](uint32_t a, uint32_t b) { return metadata[a].key == metadata[b].key; });
  if (twice == order.end()) return;
  about("key", metadata[twice[1]].key);
  fail(shard_.key_at[twice[1]], fmt::format("duplicate key, first seen at byte {}", shard_.key_at[twice[0]]));
}

ValueType ShardReader::read_value_type(const char* field) {
  const uint64_t at = cursor_.position();
  const auto id = read<uint32_t>(field);
  const std::optional<ValueType> type = value_type_from_id(id);
  if (!type) fail(at, fmt::format("unknown {} {}, expected 0 to 12", field, id));
  return *type;
}

template <typename T>
T ShardReader::read_number(ValueType type, const char* field) {
  const uint64_t at = cursor_.position();
  const T value = read<T>(field);
  if (type == ValueType::Bool && value > T{1})
    fail(at, fmt::format("bool has the value {}, expected 0 or 1", static_cast<uint64_t>(value)));
  return value;
}

Value ShardReader::read_value() {
  Value value;
  value.type = read_value_type("value type");
  if (value.type == ValueType::Array) {
    read_array(value);
  } else if (value.type == ValueType::String) {
    const uint64_t at = cursor_.position();
    const std::string_view text = read_string("string length", limits_.max_string);
    charge(at, text.size(), 1);
    value.s = text;
  } else {
    with_stored_type(value.type, [&]<typename T>() {
      const T number = read_number<T>(value.type, "value");
      switch (kind_of(value.type)) {
        case ValueKind::Unsigned: value.u = static_cast<uint64_t>(number); break;
        case ValueKind::Signed: value.i = static_cast<int64_t>(number); break;
        default: value.f = static_cast<double>(number);
      }
    });
  }
  return value;
}

template <typename T, typename Wide>
void ShardReader::read_numbers(ValueType type, uint64_t count, std::vector<Wide>& out) {
  charge(cursor_.position(), count, sizeof(Wide));
  out.reserve(count);
  for (uint64_t i = 0; i < count; ++i) out.push_back(static_cast<Wide>(read_number<T>(type, "array element")));
}

void ShardReader::read_array(Value& value) {
  const uint64_t at = cursor_.position();
  value.element = read_value_type("array element type");
  if (value.element == ValueType::Array) fail(at, "array of arrays, expected an array of numbers, bools or strings");
  if (value.element == ValueType::String) {
    const uint64_t count = read_count("array count", sizeof(uint64_t));
    charge(at, count, sizeof(std::string));
    value.ss.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t string_at = cursor_.position();
      const std::string_view text = read_string("string length", limits_.max_string);
      charge(string_at, text.size(), 1);
      value.ss.emplace_back(text);
    }
    return;
  }
  with_stored_type(value.element, [&]<typename T>() {
    const uint64_t count = read_count("array count", sizeof(T));
    switch (kind_of(value.element)) {
      case ValueKind::Unsigned: read_numbers<T>(value.element, count, value.us); break;
      case ValueKind::Signed: read_numbers<T>(value.element, count, value.is); break;
      default: read_numbers<T>(value.element, count, value.fs);
    }
  });
}

uint32_t ShardReader::alignment() const {
  const KeyValue* entry = shard_.find(kAlignmentKey);
  if (entry == nullptr) return kDefaultAlignment;
  const uint64_t at = shard_.key_at[static_cast<size_t>(entry - shard_.metadata.data())];
  const auto refuse = [&](const std::string& message) {
    format_error(shard_.file.path(), at, "key", kAlignmentKey, message);
  };
  if (entry->value.type != ValueType::U32)
    refuse(fmt::format("value of type {}, expected u32", to_string(entry->value.type)));
  if (const std::string problem = alignment_problem(entry->value.u); !problem.empty()) refuse(problem);
  return static_cast<uint32_t>(entry->value.u);
}

void ShardReader::read_tensor_infos() {
  about("", "");
  check_count(8, "tensor count", tensor_count_, kMinTensorInfoBytes);
  shard_.tensors.reserve(tensor_count_);
  shard_.tensor_at.reserve(tensor_count_);
  for (uint64_t i = 0; i < tensor_count_; ++i) {
    shard_.tensor_at.push_back(cursor_.position());
    shard_.tensors.push_back(read_tensor_info());
  }
}

TensorInfo ShardReader::read_tensor_info() {
  TensorInfo tensor;
  const uint64_t at = cursor_.position();
  about("", "");
  const std::string_view name = read_string("tensor name length", kMaxTensorName);
  about("tensor", name);
  if (const std::string problem = name_problem(name, kMaxTensorName); !problem.empty()) fail(at, problem);
  tensor.name = name;
  const uint64_t dims_at = cursor_.position();
  tensor.dims = read<uint32_t>("number of dims");
  if (tensor.dims == 0 || tensor.dims > kMaxDims)
    fail(dims_at, fmt::format("{} dims, expected 1 to {}", tensor.dims, kMaxDims));
  for (uint32_t i = 0; i < tensor.dims; ++i) tensor.ne[i] = read<uint64_t>("dims");
  const uint64_t type_at = cursor_.position();
  const auto id = read<uint32_t>("tensor type");
  tensor.offset = read<uint64_t>("tensor offset");
  const std::optional<DType> type = dtype_from_id(id);
  if (!type) fail(type_at, fmt::format("unknown or retired tensor type {}", id));
  tensor.type = *type;
  const std::string problem = shape_problem(tensor.type, std::span(tensor.ne, tensor.dims), tensor.bytes);
  if (!problem.empty()) fail(dims_at, problem);
  return tensor;
}

void ShardReader::place_data() {
  about("", "");
  const uint64_t align = alignment();
  const uint64_t size = shard_.file.size();
  if (!align_up(cursor_.position(), align, shard_.data_start) || (!shard_.tensors.empty() && shard_.data_start > size))
    fail(cursor_.position(),
         fmt::format("the file ends before its data section, expected at byte {}", shard_.data_start));
  for (size_t i = 0; i < shard_.tensors.size(); ++i) {
    const TensorInfo& tensor = shard_.tensors[i];
    const uint64_t space = size - shard_.data_start;
    about("tensor", tensor.name);
    if (tensor.offset % align != 0)
      fail(shard_.tensor_at[i], fmt::format("offset {} is not a multiple of the alignment {}", tensor.offset, align));
    if (tensor.offset > space || tensor.bytes > space - tensor.offset)
      fail(shard_.tensor_at[i],
           fmt::format("{} bytes at offset {} lie beyond the end of the file: the data section has {}", tensor.bytes,
                       tensor.offset, space));
  }
}

void ShardReader::check_overlaps() {
  const auto& tensors = shard_.tensors;
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto before = [&](uint32_t a, uint32_t b) { return tensors[a].offset < tensors[b].offset; };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& first = tensors[order[i - 1]];
    const TensorInfo& second = tensors[order[i]];
    if (first.offset + first.bytes <= second.offset) continue;
    about("tensor", second.name);
    fail(shard_.tensor_at[order[i]], fmt::format("overlaps the tensor '{}': offset {}, expected at least {}",
                                                 printable(first.name), second.offset, first.offset + first.bytes));
  }
}

}  // namespace

void format_error(const std::string& path, uint64_t at, std::string_view subject, std::string_view name,
                  const std::string& message) {
  const std::string what = subject.empty() ? "" : fmt::format(", {} '{}'", subject, printable(name));
  throw Error(ErrorKind::Format, message, fmt::format("{} (byte {}{})", path, at, what));
}

const KeyValue* Shard::find(std::string_view key) const {
  const auto at = std::lower_bound(key_order.begin(), key_order.end(), key,
                                   [&](uint32_t i, std::string_view k) { return metadata[i].key < k; });
  return at != key_order.end() && metadata[*at].key == key ? &metadata[*at] : nullptr;
}

Shard parse_shard(const std::string& path, const Limits& limits, uint64_t& metadata_left) {
  Shard shard;
  shard.file = MappedFile(path);
  ShardReader(shard, limits, metadata_left).run();
  return shard;
}

}  // namespace strata::gguf
