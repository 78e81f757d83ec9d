// Opening a file, or the set of files that it belongs to. Shards are found by name beside the given one; no path is
// ever taken from the contents of a file.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "gguf/layout.h"
#include "gguf/shard.h"

namespace strata::gguf {
namespace {

constexpr std::string_view kSplitNumber = "split.no";
constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitTensors = "split.tensors.count";
constexpr std::string_view kNameTail = "-00001-of-00001.gguf";

[[noreturn]] void refuse(const Shard& shard, std::string_view key, const std::string& message) {
  const KeyValue* entry = shard.find(key);
  const uint64_t at = entry == nullptr ? 0 : shard.key_at[static_cast<size_t>(entry - shard.metadata.data())];
  format_error(shard.file.path(), at, "key", key, message);
}

// A non-negative integer of any type; `absent` when the key is not there.
uint64_t split_value(const Shard& shard, std::string_view key, uint64_t absent) {
  const KeyValue* entry = shard.find(key);
  if (entry == nullptr) return absent;
  const Value& value = entry->value;
  if (value.type != ValueType::Bool && kind_of(value.type) == ValueKind::Unsigned) return value.u;
  if (kind_of(value.type) == ValueKind::Signed && value.i >= 0) return static_cast<uint64_t>(value.i);
  refuse(shard, key, "expected an integer that is not negative");
}

struct SplitName {
  std::string prefix;
  uint64_t number = 0;  // from 1
  uint64_t count = 0;
};

std::optional<SplitName> parse_split_name(const std::string& path) {
  if (path.size() <= kNameTail.size()) return std::nullopt;
  const std::string tail = path.substr(path.size() - kNameTail.size());
  for (size_t i = 0; i < tail.size(); ++i) {
    const bool digit = kNameTail[i] >= '0' && kNameTail[i] <= '9';
    if (digit ? tail[i] < '0' || tail[i] > '9' : tail[i] != kNameTail[i]) return std::nullopt;
  }
  SplitName name;
  name.prefix = path.substr(0, path.size() - kNameTail.size());
  std::from_chars(tail.data() + 1, tail.data() + 6, name.number);
  std::from_chars(tail.data() + 10, tail.data() + 15, name.count);
  return name;
}

std::string split_path(const SplitName& name, uint64_t number) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", name.prefix, number, name.count);
}

// The name of a shard must agree with its keys: the names of the others are made from it.
SplitName checked_name(const Shard& shard, uint64_t number, uint64_t count, const Limits& limits) {
  if (count > limits.max_shards)
    refuse(shard, kSplitCount, fmt::format("{} shards are above the limit of {}", count, limits.max_shards));
  if (number >= count) refuse(shard, kSplitNumber, fmt::format("{}, expected less than {}", number, count));
  const std::optional<SplitName> name = parse_split_name(shard.file.path());
  const std::string expected = fmt::format("NAME-{:05}-of-{:05}.gguf", number + 1, count);
  if (!name || name->number != number + 1 || name->count != count)
    refuse(shard, kSplitNumber,
           fmt::format("shard {} of {} has another name than expected: rename it to {}", number + 1, count, expected));
  return *name;
}

Shard parse_member(const SplitName& name, uint64_t index, const Limits& limits, uint64_t& metadata_left) {
  const std::string path = split_path(name, index + 1);
  try {
    return parse_shard(path, limits, metadata_left);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::File) throw;
    throw Error(
        ErrorKind::File,
        fmt::format("shard {} of {}: {}; all shards must lie side by side", index + 1, name.count, error.message()),
        path);
  }
}

// A later shard may repeat keys of the first, but not contradict them.
void check_member(const Shard& first, const Shard& member, uint64_t index, uint64_t count) {
  const uint64_t number = split_value(member, kSplitNumber, 0);
  if (number != index) refuse(member, kSplitNumber, fmt::format("{}, expected {}", number, index));
  const uint64_t members = split_value(member, kSplitCount, 0);
  if (members != count) refuse(member, kSplitCount, fmt::format("{}, expected {}", members, count));
  for (const auto& [key, value] : member.metadata) {
    if (key == kSplitNumber || key == kAlignmentKey) continue;
    const KeyValue* other = first.find(key);
    if (other != nullptr && !(other->value == value))
      refuse(member, key, fmt::format("differs from the value in '{}'", first.file.path()));
  }
}

// The whole set, beginning with its first shard, which holds the metadata.
std::vector<Shard> parse_set(const SplitName& name, const Limits& limits) {
  uint64_t metadata_left = limits.max_metadata;
  uint64_t tensors = 0;
  std::vector<Shard> shards;
  for (uint64_t i = 0; i < name.count; ++i) {
    shards.push_back(parse_member(name, i, limits, metadata_left));
    check_member(shards.front(), shards.back(), i, name.count);
    tensors += shards.back().tensors.size();
    if (tensors > limits.max_tensors)
      format_error(
          shards.back().file.path(), 0, "", "",
          fmt::format("with this shard the set has {} tensors, above the limit of {}", tensors, limits.max_tensors));
    if (i > 0) shards.back().metadata = {};
  }
  const uint64_t expected = split_value(shards.front(), kSplitTensors, tensors);
  if (tensors != expected)
    refuse(shards.front(), kSplitTensors, fmt::format("{}, but the shards have {} tensors", expected, tensors));
  return shards;
}

}  // namespace

File File::open(const std::string& path, const Limits& limits) {
  uint64_t metadata_left = limits.max_metadata;
  std::vector<Shard> shards;
  shards.push_back(parse_shard(path, limits, metadata_left));
  const uint64_t count = split_value(shards[0], kSplitCount, 1);
  const uint64_t number = split_value(shards[0], kSplitNumber, 0);
  if (count > 1 || number > 0) {
    const SplitName name = checked_name(shards[0], number, count, limits);
    shards.clear();
    shards = parse_set(name, limits);
  }
  File file = from_shards(std::move(shards));
  file.check_sizes();
  return file;
}

File File::from_shards(std::vector<Shard> shards) {
  File file;
  std::vector<uint64_t> at;
  for (Shard& shard : shards) {
    const auto index = static_cast<uint32_t>(file.shards_.size());
    for (TensorInfo& tensor : shard.tensors) {
      tensor.shard = index;
      file.tensors_.push_back(std::move(tensor));
    }
    at.insert(at.end(), shard.tensor_at.begin(), shard.tensor_at.end());
    file.data_start_.push_back(shard.data_start);
    file.shards_.push_back(std::move(shard.file));
  }
  file.metadata_ = std::move(shards.front().metadata);
  file.key_order_ = std::move(shards.front().key_order);

  const auto& tensors = file.tensors_;
  auto& order = file.tensor_order_;
  order.resize(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const int c = tensors[a].name.compare(tensors[b].name);
    return c != 0 ? c < 0 : a < b;
  });
  const auto twice = std::adjacent_find(order.begin(), order.end(),
                                        [&](uint32_t a, uint32_t b) { return tensors[a].name == tensors[b].name; });
  if (twice != order.end()) {
    const TensorInfo& first = tensors[twice[0]];
    const TensorInfo& second = tensors[twice[1]];
    const std::string& path = file.shards_[second.shard].path();
    const std::string elsewhere =
        first.shard == second.shard ? "" : fmt::format(" of '{}'", file.shards_[first.shard].path());
    format_error(path, at[twice[1]], "tensor", second.name,
                 fmt::format("duplicate tensor name, first seen at byte {}{}", at[twice[0]], elsewhere));
  }
  return file;
}

}  // namespace strata::gguf
