// The list of all groups, and the cases of the container.
#include "fuzz/malformed.h"

#include <map>
#include <memory>

namespace strata::test {
namespace {

constexpr uint64_t kHuge = UINT64_MAX;
constexpr uint32_t kI8Type = 24, kQ4KType = 12;

// Small enough to be cut at every byte, and with one of everything that has a count.
const GgufBuilder& base_file() {
  static const GgufBuilder file = tiny_model("qwen3", {.layers = 1, .tied = true}).builder();
  return file;
}

// Where the last tensor ends: what follows in the data section is padding.
size_t data_end(const GgufBuilder& file) {
  const RawTensor& last = file.tensors.back();
  uint64_t elements = 1;
  for (const uint64_t extent : last.ne) elements *= extent;
  return last.offset + bytes_of(static_cast<DType>(last.type), static_cast<int64_t>(elements));
}

// The file with one change.
using Change = std::function<void(GgufBuilder&)>;
MalformedCase changed(const std::string& name, Change change, std::vector<std::string> parts = {},
                      Expected expected = Expected::Refused) {
  return bytes_case(
      "container/" + name,
      [change = std::move(change)] {
        GgufBuilder file = base_file();
        change(file);
        return file.build();
      },
      expected, std::move(parts));
}

MalformedCase with_key(const std::string& name, const std::string& key, const GgufBytes& value,
                       std::vector<std::string> parts, Expected expected = Expected::Refused) {
  return changed(
      name, [key, value](GgufBuilder& f) { f.key(key, value); }, std::move(parts), expected);
}

MalformedCase with_tensor(const std::string& name, const RawTensor& tensor, std::vector<std::string> parts) {
  return changed(
      name,
      [tensor](GgufBuilder& f) {
        RawTensor placed = tensor;
        placed.offset += f.data.size();
        f.tensors.push_back(placed);
        f.data.append(4096, '\0');
      },
      std::move(parts));
}

MalformedCases header_cases() {
  MalformedCases cases;
  for (const uint32_t version : {0u, 1u, 2u, 4u, 0x03000000u, UINT32_MAX})
    cases.push_back(
        changed("version " + std::to_string(version), [version](GgufBuilder& f) { f.version = version; }, {"byte 4"}));
  for (const char* magic : {"GGML", "FUGG", "gguf",
                            "\x7f"
                            "ELF"})
    cases.push_back(changed(std::string("magic ") + magic, [magic](GgufBuilder& f) { f.magic = magic; }));
  for (const uint64_t count : {kHuge, uint64_t{1} << 63, uint64_t{1} << 32, uint64_t{1} << 20}) {
    cases.push_back(changed("tensor count " + std::to_string(count),
                            [count](GgufBuilder& f) { f.tensor_count = count; }, {"tensor count"}));
    cases.push_back(changed("key count " + std::to_string(count), [count](GgufBuilder& f) { f.key_count = count; }));
  }
  cases.push_back(
      changed("tensor count 0", [](GgufBuilder& f) { f.tensor_count = 0; }, {"token_embd.weight is missing"}));
  cases.push_back(changed("key count 0", [](GgufBuilder& f) { f.key_count = 0; }));
  cases.push_back(bytes_case("container/empty file", [] { return std::string(); }, Expected::Refused, {"empty"}));
  cases.push_back(bytes_case("container/no keys, no tensors", [] { return GgufBuilder().build(); }, Expected::Refused,
                             {"general.architecture is missing"}));
  cases.push_back(changed("data missing", [](GgufBuilder& f) { f.data.clear(); }));
  cases.push_back(changed("data one byte short", [](GgufBuilder& f) { f.data.resize(data_end(f) - 1); }));
  cases.push_back(changed(
      "bytes after the end", [](GgufBuilder& f) { f.data += "anything"; }, {}, Expected::Loads));
  return cases;
}

MalformedCases key_shape_cases() {
  MalformedCases cases;
  const GgufBytes one = raw_scalar<uint8_t>(kU8, 1);
  cases.push_back(with_key("empty key", "", one, {"empty name"}));
  cases.push_back(with_key("key of 70000", std::string(70000, 'k'), one, {"key length"}));
  cases.push_back(with_key("key with NUL", std::string("a\0b", 3), one, {"control"}));
  cases.push_back(with_key("key with escape", "\x1b[31mred", one, {"control"}));
  cases.push_back(with_key("key of invalid UTF-8", "\xff\xfe\x80", one, {}, Expected::Loads));
  cases.push_back(with_key("duplicate key", "general.architecture", raw_string("qwen3"), {"duplicate key"}));
  cases.push_back(with_key("string with NUL and invalid UTF-8", "note", raw_string(std::string("\0\xff\n", 3)), {},
                           Expected::Loads));
  cases.push_back(changed(
      "name with NUL and newline",
      [](GgufBuilder& f) {
        for (RawKey& key : f.keys)
          if (key.key == "general.name") key.value = raw_string(std::string("a\0\nb", 4));
      },
      {}, Expected::Loads));
  cases.push_back(with_key("string of 100 MB", "note", raw_string(std::string(100u << 20, 'x')), {"string length"}));
  cases.push_back(with_key("array of arrays", "k", raw_array<uint32_t>(kArray, {kU8, 0, 0}), {"array of arrays"}));
  GgufBytes deep;  // an array in an array in an array ...
  deep.put<uint32_t>("value type", kArray);
  for (int i = 0; i < 10000; ++i) deep.put<uint32_t>("element type", kArray).put<uint64_t>("count", 1);
  cases.push_back(with_key("array nested 10000 deep", "k", deep, {"array of arrays"}));
  cases.push_back(with_key("bool of 2", "k", raw_scalar<uint8_t>(kBool, 2), {"bool has the value 2"}));
  cases.push_back(with_key("bools of 2", "k", raw_array<uint8_t>(kBool, {1, 2}), {"bool has the value 2"}));
  for (const uint32_t type : {13u, 14u, 255u, UINT32_MAX}) {
    cases.push_back(
        with_key("value type " + std::to_string(type), "k", raw_scalar<uint32_t>(type, 1), {"unknown value type"}));
    cases.push_back(with_key("element type " + std::to_string(type), "k", raw_array<uint8_t>(type, {1}),
                             {"unknown array element type"}));
  }
  for (uint32_t type = kU8; type <= kF64; ++type) {
    if (type == kArray) continue;
    for (const uint64_t count : {kHuge, (uint64_t{1} << 61) + 1, uint64_t{1} << 32})
      cases.push_back(with_key("array of type " + std::to_string(type) + ", count " + std::to_string(count), "k",
                               raw_array<uint64_t>(type, {1}, count), {"array count"}));
  }
  for (const uint64_t length : {kHuge, kHuge - 8, uint64_t{1} << 40})
    cases.push_back(
        with_key("string length " + std::to_string(length), "k", raw_string("v", length), {"string length"}));
  cases.push_back(bytes_case("container/string one byte past the end",
                             [] {
                               GgufBuilder file;
                               file.key("general.architecture", raw_string("qwen3", 6));
                               file.alignment = 1;
                               return file.build();
                             },
                             Expected::Refused, {"string length 6"}));
  return cases;
}

MalformedCases alignment_cases() {
  MalformedCases cases;
  for (const uint32_t alignment : {0u, 1u, 3u, 4u, 13u, 33u, 1u << 31, UINT32_MAX})
    cases.push_back(with_key("alignment " + std::to_string(alignment), "general.alignment", raw_scalar(kU32, alignment),
                             {"general.alignment", "alignment " + std::to_string(alignment)}));
  cases.push_back(with_key("alignment as u64", "general.alignment", raw_scalar<uint64_t>(kU64, 32), {"expected u32"}));
  cases.push_back(with_key("alignment as i32", "general.alignment", raw_scalar<int32_t>(kI32, 32), {"expected u32"}));
  cases.push_back(with_key("alignment as string", "general.alignment", raw_string("32"), {"expected u32"}));
  cases.push_back(with_key("alignment 64, data at 32", "general.alignment", raw_scalar(kU32, 64u), {}));
  for (const uint32_t alignment : {8u, 64u, 4096u, 1u << 20})
    cases.push_back(image_case(
        "container/alignment " + std::to_string(alignment),
        [alignment] {
          ModelImage image = base_image("qwen3");
          image.set("general.alignment", gguf::Value::of_u32(alignment));
          return image;
        },
        Expected::Survives));  // the data is still aligned to 32: legal for 8, refused above
  return cases;
}

MalformedCases tensor_shape_cases() {
  constexpr uint64_t kHalf = (uint64_t{1} << 63) - 1;
  MalformedCases cases;
  cases.push_back(with_tensor("tensor name of 64", {std::string(64, 'n'), {4}}, {"tensor name length 64"}));
  cases.push_back(with_tensor("tensor name of 60000", {std::string(60000, 'n'), {4}}, {"tensor name length"}));
  cases.push_back(with_tensor("tensor name empty", {"", {4}}, {"empty name"}));
  cases.push_back(with_tensor("tensor name with newline", {"a\nb", {4}}, {"control"}));
  cases.push_back(with_tensor("tensor name length huge", {"w", {4}, 0, 0, kHuge}, {"tensor name length"}));
  cases.push_back(with_tensor("tensor twice", {"token_embd.weight", {4}}, {"duplicate tensor name"}));
  cases.push_back(with_tensor("dims 0", {"w", {}}, {"0 dims"}));
  cases.push_back(with_tensor("dims 5", {"w", {1, 1, 1, 1, 1}}, {"5 dims"}));
  cases.push_back(with_tensor("dims 9", {"w", {1, 1, 1, 1, 1, 1, 1, 1, 1}}, {"9 dims"}));
  cases.push_back(with_tensor("dims huge", {"w", {1}, 0, 0, {}, UINT32_MAX}, {"dims"}));
  cases.push_back(with_tensor("dim negative", {"w", {kHuge}, kI8Type}, {"too many elements"}));
  for (size_t axis = 0; axis < 4; ++axis) {
    std::vector<uint64_t> ne(4, 2);
    ne[axis] = 0;
    cases.push_back(with_tensor("dim " + std::to_string(axis) + " zero", {"w", ne}, {"is zero"}));
  }
  cases.push_back(with_tensor("elements overflow", {"w", {kHalf, 2, 1, 1}, kI8Type}, {"too many elements"}));
  cases.push_back(with_tensor("elements wrap", {"w", {uint64_t{1} << 32, uint64_t{1} << 32, 1, 4}, kI8Type},
                              {"too many elements"}));
  cases.push_back(with_tensor("bytes overflow", {"w", {uint64_t{1} << 62}}, {"too large"}));
  cases.push_back(with_tensor("bytes wrap", {"w", {(uint64_t{1} << 62) + 1}, 28}, {"too large"}));
  cases.push_back(with_tensor("partial block", {"w", {257}, kQ4KType}, {"dim 0 is 257"}));
  for (const uint32_t type : {4u, 5u, 9u, 15u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, UINT32_MAX})
    cases.push_back(with_tensor("tensor type " + std::to_string(type), {"w", {256}, type},
                                {"tensor type " + std::to_string(type)}));
  for (const uint64_t offset : {uint64_t{1}, uint64_t{16}, uint64_t{31}})
    cases.push_back(with_tensor("offset off by " + std::to_string(offset), {"w", {4}, 0, offset}, {"alignment 32"}));
  const auto last_at = [](const std::string& name, uint64_t offset, std::vector<std::string> parts) {
    return changed(
        name, [offset](GgufBuilder& f) { f.tensors.back().offset = offset; }, std::move(parts));
  };
  cases.push_back(last_at("offset of another tensor", 0, {"overlaps"}));
  cases.push_back(last_at("offset 2^40", uint64_t{1} << 40, {"beyond the end"}));
  cases.push_back(last_at("offset wraps", kHuge - 31, {"beyond the end"}));
  return cases;
}

void append(MalformedCases& all, MalformedCases more) {
  for (MalformedCase& one : more) all.push_back(std::move(one));
}

}  // namespace

const ModelImage& base_image(const std::string& arch) {
  static std::map<std::string, std::unique_ptr<const ModelImage>> images;
  std::unique_ptr<const ModelImage>& image = images[arch];
  if (image == nullptr) image = std::make_unique<const ModelImage>(tiny_model(arch));
  return *image;
}

MalformedCase bytes_case(std::string name, std::function<std::string()> bytes, Expected expected,
                         std::vector<std::string> parts) {
  auto files = [bytes = std::move(bytes)] { return std::vector<NamedBytes>{{"model.gguf", bytes()}}; };
  return {std::move(name), std::move(files), expected, std::move(parts)};
}

MalformedCase image_case(std::string name, std::function<ModelImage()> image, Expected expected,
                         std::vector<std::string> parts) {
  return bytes_case(
      std::move(name), [image = std::move(image)] { return image().bytes(); }, expected, std::move(parts));
}

MalformedCases truncation_cases() {
  const auto whole = std::make_shared<const std::string>(base_file().build());
  MalformedCases cases;
  const size_t padding = base_file().data.size() - data_end(base_file());
  for (size_t size = 0; size + padding < whole->size(); ++size)
    cases.push_back(
        bytes_case("cut at byte " + std::to_string(size), [whole, size] { return whole->substr(0, size); }));
  return cases;
}

MalformedCases count_cases() {
  const auto whole = std::make_shared<const std::string>(base_file().build());
  MalformedCases cases;
  for (const GgufField& field : base_file().fields()) {
    if (!field.counts) continue;
    for (const uint64_t count : {kHuge, kHuge - 7, uint64_t{1} << 63, uint64_t{1} << 61, uint64_t{1} << 32})
      cases.push_back(bytes_case(
          field.what + " at byte " + std::to_string(field.at) + " = " + std::to_string(count), [whole, field, count] {
            return field.size == 4 ? patched(*whole, field.at, static_cast<uint32_t>(count >> 24 | 8))
                                   : patched(*whole, field.at, count);
          }));
  }
  return cases;
}

MalformedCases container_cases() {
  MalformedCases cases = header_cases();
  append(cases, key_shape_cases());
  append(cases, alignment_cases());
  append(cases, tensor_shape_cases());
  return cases;
}

MalformedCases split_cases() {
  MalformedCases cases;
  using Files = std::vector<NamedBytes>;
  const auto add = [&](const std::string& name, std::function<void(std::vector<ModelImage>&)> change, Expected expected,
                       std::vector<std::string> parts, std::function<void(Files&)> rename = {}) {
    auto files = [change, rename] {
      std::vector<ModelImage> shards = split_images(base_image("qwen3"), 3);
      if (change) change(shards);
      Files result;
      for (size_t i = 0; i < shards.size(); ++i) result.push_back({split_name(i, 3), shards[i].bytes()});
      if (rename) rename(result);
      return result;
    };
    cases.push_back({"split/" + name, files, expected, std::move(parts)});
  };
  const auto count_of = [](uint64_t v) { return unsigned_value(gguf::ValueType::U16, v); };
  add("whole set", {}, Expected::Loads, {});
  for (const uint64_t count : {2u, 4u, 1025u, 65535u})
    add("count " + std::to_string(count), [=](auto& s) { s[0].set("split.count", count_of(count)); }, Expected::Refused,
        {"split."});
  add("count 0", [=](auto& s) { s[0].set("split.count", count_of(0)); }, Expected::Refused, {});
  add("count 1", [=](auto& s) { s[0].set("split.count", count_of(1)); }, Expected::Refused, {});
  add("number 3", [=](auto& s) { s[0].set("split.no", count_of(3)); }, Expected::Refused, {"split.no"});
  add("number -1", [](auto& s) { s[0].set("split.no", signed_value(gguf::ValueType::I16, -1)); }, Expected::Refused,
      {"split.no"});
  add("number of a string", [](auto& s) { s[1].set("split.no", gguf::Value::of_string("1")); }, Expected::Refused,
      {"split.no"});
  add("tensor count", [](auto& s) { s[0].set("split.tensors.count", gguf::Value::of_i32(3)); }, Expected::Refused,
      {"split.tensors.count"});
  add("other metadata", [](auto& s) { s[1].set("qwen3.block_count", gguf::Value::of_u32(9)); }, Expected::Refused,
      {"differs"});
  add("one shard twice", [](auto& s) { s[2] = s[1]; }, Expected::Refused, {"split.no"});
  add("tensor in two shards", [](auto& s) { s[2].tensors.push_back(s[1].tensors[0]); }, Expected::Refused, {});
  add("shard missing", {}, Expected::Refused, {"shard 2 of 3"}, [](Files& f) { f.erase(f.begin() + 1); });
  add("shard empty", {}, Expected::Refused, {split_name(1, 3)}, [](Files& f) { f[1].bytes.clear(); });
  add("shard cut", {}, Expected::Refused, {split_name(2, 3)},
      [](Files& f) { f[2].bytes.resize(f[2].bytes.size() / 2); });
  add("name without number", {}, Expected::Refused, {"rename it"}, [](Files& f) { f[0].name = "m.gguf"; });
  add("name with dots", {}, Expected::Refused, {}, [](Files& f) { f[0].name = "..-00001-of-00003.gguf"; });
  return cases;
}

std::vector<MalformedGroup> all_malformed() {
  std::vector<MalformedGroup> groups{{"truncations", truncation_cases()},
                                     {"counts", count_cases()},
                                     {"container", container_cases()},
                                     {"split", split_cases()},
                                     {"model", model_cases()},
                                     {"tokenizer", tokenizer_cases()},
                                     {"template", template_cases()},
                                     {"blocks", block_cases()}};
  for (const std::string arch : kArchitectures) {
    groups.push_back({"keys of " + arch, key_cases(arch)});
    groups.push_back({"tensors of " + arch, tensor_cases(arch)});
    groups.push_back({"scales of " + arch, scale_cases(arch)});
  }
  return groups;
}

}  // namespace strata::test
