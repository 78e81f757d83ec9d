// Every metadata key of every family, one change at a time.
#include <cmath>
#include <set>

#include "fuzz/malformed.h"

namespace strata::test {
namespace {

using gguf::Value;
using gguf::ValueType;

// By suffix, without the name of the architecture.
const std::set<std::string, std::less<>> kIgnored = {"general.file_type", "vocab_size", "rope.dimension_sections"};
// Without one of these a file may still describe a model, perhaps another one.
const std::set<std::string, std::less<>> kOptional = {"general.name",
                                                      "feed_forward_length",
                                                      "attention.key_length",
                                                      "attention.value_length",
                                                      "attention.scale",
                                                      "attention.head_count_kv",
                                                      "attention.recurrent_layers",
                                                      "attention.compress_ratios",
                                                      "rope.freq_base",
                                                      "rope.dimension_count",
                                                      "rope.scaling.type",
                                                      "rope.scaling.factor",
                                                      "rope.scaling.original_context_length",
                                                      "rope.scaling.yarn_beta_fast",
                                                      "rope.scaling.yarn_beta_slow",
                                                      "rope.scaling.yarn_ext_factor",
                                                      "rope.scaling.yarn_attn_factor",
                                                      "rope.scaling.attn_factor",
                                                      "expert_weights_scale",
                                                      "expert_weights_norm",
                                                      "expert_feed_forward_length",
                                                      "expert_shared_feed_forward_length",
                                                      "full_attention_interval",
                                                      "nextn_predict_layers",
                                                      "ple.layers"};

struct Change {
  std::string name;
  Value value;
  Expected expected;
};

Value numbers(ValueType element, size_t count) {
  Value value = empty_array(element);
  if (element == ValueType::F32)
    value.fs.assign(count, 1.0);
  else if (element == ValueType::I32)
    value.is.assign(count, 1);
  else if (element == ValueType::String)
    value.ss.assign(count, "x");
  else
    value.us.assign(count, 1);
  return value;
}

// Values that are wrong for every number, whatever its range.
std::vector<Change> wrong_numbers() {
  return {
      {"u32 2^32-1", unsigned_value(ValueType::U32, UINT32_MAX), Expected::Refused},
      {"u64 2^63", unsigned_value(ValueType::U64, uint64_t{1} << 63), Expected::Refused},
      {"u64 2^64-1", unsigned_value(ValueType::U64, UINT64_MAX), Expected::Refused},
      {"i32 -1", signed_value(ValueType::I32, -1), Expected::Refused},
      {"i64 -2^63", signed_value(ValueType::I64, INT64_MIN), Expected::Refused},
      {"i8 -1", signed_value(ValueType::I8, -1), Expected::Refused},
      {"NaN", real_value(NAN), Expected::Refused},
      {"inf", real_value(INFINITY), Expected::Refused},
      {"-inf", real_value(-INFINITY), Expected::Refused},
      {"string", Value::of_string("1"), Expected::Refused},
      {"empty string", Value::of_string(""), Expected::Refused},
      {"empty array", empty_array(ValueType::U32), Expected::Refused},
      {"empty array of strings", empty_array(ValueType::String), Expected::Refused},
      {"array of 100000", numbers(ValueType::U32, 100000), Expected::Refused},
      {"array of reals", numbers(ValueType::F32, 3), Expected::Refused},
      {"array of strings", numbers(ValueType::String, 3), Expected::Refused},
  };
}

std::vector<Change> changes_of(const Value& value) {
  std::vector<Change> changes = wrong_numbers();
  const auto survives = [&](const char* name, Value v) { changes.push_back({name, std::move(v), Expected::Survives}); };
  survives("u32 0", unsigned_value(ValueType::U32, 0)), survives("u32 1", unsigned_value(ValueType::U32, 1));
  survives("u8 1", unsigned_value(ValueType::U8, 1)), survives("u64 2", unsigned_value(ValueType::U64, 2));
  survives("u32 2^31", unsigned_value(ValueType::U32, uint64_t{1} << 31)), survives("u32 65537", Value::of_u32(65537));
  survives("u32 4096", Value::of_u32(4096)), survives("true", Value::of_bool(true)), survives("0.0", real_value(0));
  survives("1e-30", real_value(1e-30)), survives("1.0", real_value(1)), survives("1e30", real_value(1e30));
  survives("f64 -1", [] {
    Value v = real_value(-1);
    v.type = ValueType::F64;
    return v;
  }());
  survives("one more than the blocks", numbers(ValueType::U32, 4)),
      survives("array of one", numbers(ValueType::I32, 1));
  if (value.type == ValueType::F32)
    for (Change& one : changes)  // every real has a range; integers and bools are no reals
      if (one.name != "1.0" && one.name != "0.0" && one.name != "1e-30") one.expected = Expected::Refused;
  if (value.type == ValueType::Bool)
    for (Change& one : changes)
      if (one.name != "true") one.expected = Expected::Refused;
  if (value.type == ValueType::String) {
    for (Change& one : changes)
      one.expected = one.value.type == ValueType::String ? Expected::Survives : Expected::Refused;
    survives("string of 100000", Value::of_string(std::string(100000, 'x')));
    survives("string with control characters", Value::of_string(std::string("\0\x1b[31m\n\xff", 8)));
  }
  return changes;
}

// Elements of an array, each replaced by the edges of its type.
void add_elements(MalformedCases& cases, const std::string& arch, const std::string& key, const Value& value,
                  Expected huge) {
  for (size_t i = 0; i < value.us.size(); ++i)
    for (const uint64_t edge : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 62, UINT64_MAX}) {
      Value changed = value;
      changed.element = ValueType::U64;
      changed.us[i] = edge;
      cases.push_back(image_case(
          arch + "/" + key + "[" + std::to_string(i) + "] = " + std::to_string(edge),
          [=] {
            ModelImage image = base_image(arch);
            image.set(key, changed);
            return image;
          },
          edge < (uint64_t{1} << 62) || huge == Expected::Loads ? Expected::Survives : huge));
    }
}

}  // namespace

MalformedCases key_cases(const std::string& arch) {
  MalformedCases cases;
  for (const gguf::KeyValue& one : base_image(arch).metadata) {
    if (one.key.starts_with("tokenizer.")) continue;
    const std::string key = one.key, suffix = key.starts_with(arch + ".") ? key.substr(arch.size() + 1) : key;
    const bool ignored = kIgnored.contains(suffix);
    const auto add = [&](const std::string& what, std::function<void(ModelImage&)> change, Expected expected) {
      cases.push_back(image_case(
          arch + "/" + key + " = " + what,
          [arch, change = std::move(change)] {
            ModelImage image = base_image(arch);
            change(image);
            return image;
          },
          ignored ? Expected::Loads : expected));
    };
    for (const Change& change : changes_of(one.value)) {
      Expected expected = change.expected;
      if (suffix == "general.architecture") expected = Expected::Refused;
      add(
          change.name, [key, value = change.value](ModelImage& image) { image.set(key, value); }, expected);
    }
    add(
        "removed", [key](ModelImage& image) { image.erase(key); },
        kOptional.contains(suffix) ? Expected::Survives : Expected::Refused);
    if (one.value.type == ValueType::Array && !ignored)
      add_elements(cases, arch, key, one.value,
                   suffix == "ple.layer_multipliers" ? Expected::Loads : Expected::Refused);
  }
  return cases;
}

}  // namespace strata::test
