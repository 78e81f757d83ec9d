// Hyper-parameters that contradict each other, the weights or sanity; hostile vocabularies and templates.
#include <cmath>

#include "fuzz/malformed.h"

namespace strata::test {
namespace {

using gguf::Value;
using gguf::ValueType;

using Change = std::function<void(ModelImage&)>;

class Cases {
 public:
  explicit Cases(std::string group) : group_(std::move(group)) {}

  Cases& add(const std::string& arch, const std::string& what, Change change, std::vector<std::string> parts,
             Expected expected = Expected::Refused) {
    list.push_back(image_case(
        group_ + "/" + arch + ", " + what,
        [arch, change = std::move(change)] {
          ModelImage image = base_image(arch);
          change(image);
          return image;
        },
        expected, std::move(parts)));
    return *this;
  }
  // Keys without the name of the architecture, and their new u32 values.
  Cases& numbers(const std::string& arch, std::vector<std::pair<std::string, uint64_t>> values,
                 std::vector<std::string> parts, Expected expected = Expected::Refused) {
    std::string what;
    for (const auto& [key, value] : values) what += (what.empty() ? "" : ", ") + key + " " + std::to_string(value);
    return add(
        arch, what,
        [arch, values](ModelImage& image) {
          for (const auto& [key, value] : values)
            image.set(arch + "." + key, Value::of_u32(static_cast<uint32_t>(value)));
        },
        std::move(parts), expected);
  }
  Cases& real(const std::string& arch, const std::string& key, double value, std::vector<std::string> parts) {
    return add(
        arch, key + " " + std::to_string(value),
        [=](ModelImage& image) { image.set(arch + "." + key, real_value(value)); }, std::move(parts));
  }
  MalformedCases list;

 private:
  std::string group_;
};

void attention_cases(Cases& cases) {
  for (const std::string arch : kArchitectures) {
    cases.numbers(arch, {{"block_count", 0}}, {"block_count"})
        .numbers(arch, {{"block_count", 1u << 31}}, {"block_count"});
    cases.numbers(arch, {{"block_count", 4096}}, {}).numbers(arch, {{"block_count", 100}}, {});
    cases.numbers(arch, {{"embedding_length", 0}}, {"embedding_length"})
        .numbers(arch, {{"embedding_length", 1u << 20}}, {"shape"});
    cases.numbers(arch, {{"context_length", 0}}, {"context_length"})
        .numbers(arch, {{"context_length", 1u << 31}}, {"context_length"});
    cases.numbers(arch, {{"context_length", INT32_MAX}}, {}, Expected::Loads);
    cases.numbers(arch, {{"attention.head_count_kv", 0}}, {"head_count_kv"});
    cases.numbers(arch, {{"attention.head_count", 3}, {"attention.head_count_kv", 2}}, {"head_count_kv", "divide"});
    cases.numbers(arch, {{"attention.head_count", 0}}, {"head_count"})
        .numbers(arch, {{"attention.head_count", 4097}}, {"head_count"});
    cases.numbers(arch, {{"attention.key_length", 0}}, {"key_length"})
        .numbers(arch, {{"attention.key_length", 65537}}, {"key_length"});
    cases.numbers(arch, {{"attention.key_length", 15}, {"attention.value_length", 15}}, {});
    cases.numbers(arch, {{"attention.value_length", 8}}, {"value_length"});
    cases.numbers(arch, {{"rope.dimension_count", 18}}, {"rope.dimension_count"});
    cases.numbers(arch, {{"rope.dimension_count", 7}}, {"rope.dimension_count"});
    cases.numbers(arch, {{"rope.dimension_count", 0}}, {"rope.dimension_count"});
    for (const double bad : {double{NAN}, double{INFINITY}, 0.0, -1.0, 1.0, 1e30})
      cases.real(arch, "rope.freq_base", bad, {"rope.freq_base"});
    for (const double bad : {double{NAN}, double{INFINITY}, 0.0, -1e-6, 2.0})
      cases.real(arch, "attention.layer_norm_rms_epsilon", bad, {"layer_norm_rms_epsilon"});
    cases.add(arch, "heads above the width and no head dim",
              [arch](ModelImage& image) {
                image.set(arch + ".attention.head_count", Value::of_u32(64));
                image.erase(arch + ".attention.key_length"), image.erase(arch + ".attention.value_length");
              },
              {"attention.head_count", "embedding_length"});
    cases.add(arch, "heads that do not divide the width and no head dim",
              [arch](ModelImage& image) {
                image.set(arch + ".attention.head_count", Value::of_u32(3)),
                    image.set(arch + ".attention.head_count_kv", Value::of_u32(3));
                image.erase(arch + ".attention.key_length"), image.erase(arch + ".attention.value_length");
              },
              {"attention.head_count", "embedding_length"});
    cases.add(arch, "unknown rope scaling",
              [arch](ModelImage& image) { image.set(arch + ".rope.scaling.type", Value::of_string("longrope")); },
              {"rope.scaling.type", "longrope"});
  }
  cases.add("llama", "rope factors of infinity",
            [](ModelImage& image) {
              const float infinite = INFINITY;
              image.tensor("rope_freqs.weight").data.replace(0, 4, reinterpret_cast<const char*>(&infinite), 4);
            },
            {"rope_freqs.weight"});
  cases.add("qwen3", "untied head of another vocabulary",
            [](ModelImage& image) { image.tensor("output.weight").ne[1] = 263; }, {"output.weight", "shape"});
  cases.add(
      "qwen3", "no head", [](ModelImage& image) { image.erase_tensor("output.weight"); }, {}, Expected::Loads);
  cases.add("qwen3", "neither head nor embedding",
            [](ModelImage& image) { image.erase_tensor("output.weight"), image.erase_tensor("token_embd.weight"); },
            {"token_embd.weight is missing"});
  cases.add("qwen3", "unknown architecture",
            [](ModelImage& image) { image.set("general.architecture", Value::of_string("qwen99\n\x1b[2J")); },
            {"unknown architecture", "qwen3moe"});
}

void expert_cases(Cases& cases) {
  for (const char* arch : {"qwen3moe", "qwen3next", "qwen35moe", "qwen4exp"}) {
    cases.numbers(arch, {{"expert_count", 1}}, {"expert_used_count"})
        .numbers(arch, {{"expert_count", 0}}, {"expert_count"});
    cases.numbers(arch, {{"expert_count", 65536}}, {"shape"})
        .numbers(arch, {{"expert_count", 1u << 31}}, {"expert_count"});
    cases.numbers(arch, {{"expert_used_count", 0}}, {"expert_used_count"});
    cases.numbers(arch, {{"expert_used_count", 5}}, {"expert_used_count"});
    cases.numbers(arch, {{"expert_used_count", 4}}, {}, Expected::Loads);
    cases.numbers(arch, {{"expert_feed_forward_length", 1u << 20}}, {"shape"});
    cases.add(arch, "used experts that differ by block",
              [arch](ModelImage& image) {
                Value used = Value::of_u32s({1, 2});
                if (std::string(arch) != "qwen3moe") used.us.push_back(2);
                image.set(std::string(arch) + ".expert_used_count", used);
              },
              {"expert_used_count"});
    cases.add(arch, "no router", [](ModelImage& image) { image.erase_tensor("blk.1.ffn_gate_inp.weight"); },
              {"blk.1.ffn_"});
  }
  cases.numbers("llama", {{"expert_count", 4}, {"expert_used_count", 5}}, {"expert_used_count"});
}

// Every shape agrees with the metadata; only the product of two of them is out of proportion.
void grow_state(ModelImage& image) {
  constexpr uint64_t kDim = 4096, kHeads = 16, kInner = kHeads * kDim, kChannels = 2 * kDim + kInner;
  const auto resize = [&](const std::string& name, std::vector<uint64_t> ne) {
    ImageTensor& t = image.tensor("blk.0." + name);
    t.ne = std::move(ne);
    t.fit_data();
  };
  resize("attn_qkv.weight", {32, kChannels}), resize("attn_gate.weight", {32, kInner});
  resize("ssm_beta.weight", {32, kHeads}), resize("ssm_alpha.weight", {32, kHeads});
  resize("ssm_conv1d.weight", {4, kChannels}), resize("ssm_dt.bias", {kHeads}), resize("ssm_a", {kHeads});
  resize("ssm_norm.weight", {kDim}), resize("ssm_out.weight", {kInner, 32});
  const auto set = [&](const std::string& key, uint64_t v) {
    image.set("qwen35.ssm." + key, Value::of_u32(static_cast<uint32_t>(v)));
  };
  set("group_count", 1), set("state_size", kDim), set("time_step_rank", kHeads), set("inner_size", kInner);
}

void delta_cases(Cases& cases) {
  for (const char* arch : {"qwen3next", "qwen35", "qwen35moe", "qwen4exp"}) {
    cases.numbers(arch, {{"ssm.conv_kernel", 0}}, {"ssm.conv_kernel"})
        .numbers(arch, {{"ssm.conv_kernel", 1}}, {"ssm.conv_kernel"});
    cases.numbers(arch, {{"ssm.conv_kernel", 64}}, {"ssm_conv1d"})
        .numbers(arch, {{"ssm.conv_kernel", 65}}, {"ssm.conv_kernel"});
    cases.numbers(arch, {{"ssm.group_count", 3}}, {"ssm.time_step_rank", "multiple"})
        .numbers(arch, {{"ssm.group_count", 0}}, {"ssm.group_count"});
    cases.numbers(arch, {{"ssm.time_step_rank", 0}}, {"ssm.time_step_rank"});
    cases.numbers(arch, {{"ssm.time_step_rank", 6}}, {"ssm.inner_size", "multiple"});
    cases.numbers(arch, {{"ssm.inner_size", 0}}, {"ssm.inner_size"})
        .numbers(arch, {{"ssm.state_size", 0}}, {"ssm.state_size"});
    cases.numbers(arch, {{"ssm.state_size", 4096}, {"ssm.inner_size", 1u << 20}}, {"ssm.inner_size", "4096"});
    // A state of 2^32 values from numbers that each are in range.
    cases.numbers(arch, {{"ssm.state_size", 4096}, {"ssm.time_step_rank", 256}, {"ssm.inner_size", 1u << 20}},
                  {"ssm.state_size", "bytes"});
    cases.numbers(arch, {{"nextn_predict_layers", 3}}, {"nextn_predict_layers"});
    cases.numbers(arch, {{"nextn_predict_layers", 2}}, {});
  }
  cases.numbers("qwen3next", {{"full_attention_interval", 0}}, {"full_attention_interval"});
  cases.numbers("qwen3next", {{"full_attention_interval", 4097}}, {"full_attention_interval"});
  cases.numbers("qwen3next", {{"full_attention_interval", 3}}, {});
  cases.add("qwen3next", "another output gate",
            [](ModelImage& image) { image.set("qwen3next.ssm.output_gate", Value::of_string("tanh")); },
            {"ssm.output_gate", "tanh"});
  cases.add("qwen35", "layer kinds swapped",
            [](ModelImage& image) {
              image.set("qwen35.attention.recurrent_layers", Value::of_bools({0, 1, 0}));
            },
            {"blk.0.attn_"});
  cases.add("qwen35", "a state of 1 GiB from weights of 8 MB", grow_state, {"ssm.state_size", "1073741824 bytes"});
}

void qsa_cases(Cases& cases) {
  const std::string arch = "qwen4exp";
  cases.numbers(arch, {{"hyper_connection.count", 0}}, {"hyper_connection.count"});
  cases.numbers(arch, {{"hyper_connection.count", 1}}, {"hyper_connection.count"});
  cases.numbers(arch, {{"hyper_connection.count", 65}}, {"hyper_connection.count"});
  cases.numbers(arch, {{"hyper_connection.count", 64}}, {"shape"});
  cases.numbers(arch, {{"hyper_connection.low_rank", 0}}, {"hyper_connection.low_rank"});
  cases.numbers(arch, {{"attention.indexer.head_count", 0}}, {"indexer.head_count"});
  cases.numbers(arch, {{"attention.indexer.key_length", 0}}, {"indexer.key_length"});
  cases.numbers(arch, {{"attention.indexer.key_length", 6}}, {"indexer.key_length"});
  cases.numbers(arch, {{"attention.indexer.top_k", 0}}, {"indexer.top_k"});
  cases.numbers(arch, {{"attention.indexer.top_k", 9}}, {"indexer.top_k", "multiple"});
  cases.numbers(arch, {{"attention.indexer.top_k", 3}}, {"indexer.top_k"});
  cases.numbers(arch, {{"attention.indexer.top_k", INT32_MAX - 4099}}, {}, Expected::Loads);
  const auto ratios = [&](const std::string& what, std::vector<uint64_t> values, std::vector<std::string> parts,
                          Expected expected) {
    cases.add(
        arch, "compress ratios " + what,
        [arch, values](ModelImage& image) { image.set(arch + ".attention.compress_ratios", Value::of_u32s(values)); },
        std::move(parts), expected);
  };
  ratios("all 0", {0, 0, 0}, {}, Expected::Loads);
  ratios("huge", {0, 1u << 31, 0}, {"compress_ratios"}, Expected::Refused);
  ratios("too few", {0, 4}, {"compress_ratios"}, Expected::Refused);
  ratios("above the budget", {0, 16, 0}, {"indexer.top_k"}, Expected::Refused);
  ratios("on the draft block", {0, 4, 4}, {"indexer"}, Expected::Refused);
  const auto ple = [&](const std::string& key, Value value, std::vector<std::string> parts) {
    cases.add(
        arch, "ple." + key, [=](ModelImage& image) { image.set(arch + ".ple." + key, value); }, std::move(parts));
  };
  ple("layers", Value::of_u32s({1}), {"ple.layers"});
  ple("layers", Value::of_u32s({2}), {"ple.layers"});
  ple("layers", Value::of_u32s({3}), {"ple.layers"});
  ple("layers", Value::of_u32s({0, 0}), {"ple."});
  ple("head_offsets", Value::of_u64s({0, 11, 24, 1000}), {"per_layer_token_embd.weight", "rows"});
  ple("head_offsets", Value::of_u64s({0, 11, 24, INT64_MAX}), {"per_layer_token_embd.weight", "rows"});
  ple("head_vocab_sizes", Value::of_u64s({11, 13, 17, 20}), {"per_layer_token_embd.weight", "rows"});
  ple("head_vocab_sizes", Value::of_u64s({11, 13, 17, 0}), {"ple.head_vocab_sizes"});
  ple("head_vocab_sizes", Value::of_u64s({INT64_MAX, 13, 17, 19}), {"per_layer_token_embd.weight", "rows"});
  ple("eos_token_id", Value::of_u32(264), {"ple.eos_token_id"});
  ple("ngram_size", Value::of_u32(1), {"ple.ngram_size"});
  ple("ngram_size", Value::of_u32(16), {"ple."});
  ple("heads_per_ngram", Value::of_u32(1024), {"ple."});
  ple("conv_kernel", Value::of_u32(1), {"ple.conv_kernel"});
  cases.numbers(arch, {{"embedding_length_per_layer_input", 16}}, {"shape"});
  cases.add(arch, "table one row short",
            [](ModelImage& image) {
              ImageTensor& table = image.tensor("per_layer_token_embd.weight");
              --table.ne[1];
              table.fit_data();
            },
            {"per_layer_token_embd.weight", "rows"});
}

// Changes of tokenizer.ggml.KEY.
void vocabulary_cases(Cases& cases) {
  const auto set = [&](const std::string& what, const std::string& key, Value value, std::vector<std::string> parts,
                       Expected expected = Expected::Refused) {
    for (const char* arch : {"qwen3", "llama"})
      cases.add(
          arch, what, [=](ModelImage& image) { image.set("tokenizer.ggml." + key, value); }, parts, expected);
  };
  const auto tokens = [&](const std::string& what, const std::function<void(std::vector<std::string>&)>& change,
                          std::vector<std::string> parts, Expected expected = Expected::Refused) {
    Value value = Value::of_strings(tiny_tokens());
    change(value.ss);
    set(what, "tokens", value, std::move(parts), expected);
  };
  tokens("no tokens", [](auto& t) { t.clear(); }, {"tokens"});
  tokens("one token less", [](auto& t) { t.pop_back(); }, {"263"});
  tokens("one token more", [](auto& t) { t.emplace_back("more"); }, {"265"});
  tokens("a million tokens", [](auto& t) { t.resize(1000000, "x"); }, {});
  tokens(
      "duplicate tokens", [](auto& t) { t[258] = t[257] = t[256]; }, {}, Expected::Loads);
  tokens("all tokens equal", [](auto& t) { std::fill(t.begin(), t.end(), "a"); }, {"no token for the byte"});
  tokens("all tokens empty", [](auto& t) { std::fill(t.begin(), t.end(), ""); }, {"no token for the byte"});
  tokens(
      "an empty token", [](auto& t) { t[257].clear(); }, {}, Expected::Loads);
  tokens(
      "empty control token", [](auto& t) { t[261].clear(); }, {}, Expected::Loads);
  tokens(
      "token of invalid UTF-8", [](auto& t) { t[257] = "\xff\xfe\x80"; }, {}, Expected::Loads);
  tokens(
      "token with NUL", [](auto& t) { t[257] = std::string("a\0b", 3); }, {}, Expected::Loads);
  tokens("byte missing", [](auto& t) { t['a'] = "aa"; }, {"byte 0x61"});
  tokens(
      "token of 10 MB", [](auto& t) { t[257] = std::string(10u << 20, 'x'); }, {}, Expected::Loads);
  tokens("control token of 20 MB", [](auto& t) { t[261] = std::string(20u << 20, 'x'); }, {"special tokens"});
  tokens("token of 100 MB", [](auto& t) { t[257] = std::string(100u << 20, 'x'); }, {"string length"});
  set("tokens of numbers", "tokens", Value::of_u32s({1, 2}), {"tokens"});
  set("tokens of one string", "tokens", Value::of_string("a"), {"tokens"});

  const auto types = [&](const std::string& what, std::vector<int64_t> values, std::vector<std::string> parts,
                         Expected expected = Expected::Refused) {
    set(what, "token_type", Value::of_i32s(std::move(values)), std::move(parts), expected);
  };
  types("types one short", std::vector<int64_t>(263, 1), {"token_type", "263"});
  types("types one more", std::vector<int64_t>(265, 1), {"token_type", "265"});
  types("type 0", std::vector<int64_t>(264, 0), {"token_type"});
  types("type 7", std::vector<int64_t>(264, 7), {"token_type"});
  types("type -1", std::vector<int64_t>(264, -1), {"token_type"});
  types("type 2^31-1", std::vector<int64_t>(264, INT32_MAX), {"token_type"});
  types("no types", {}, {}, Expected::Loads);
  types("all control", std::vector<int64_t>(264, 3), {"byte"});
  types("all unused", std::vector<int64_t>(264, 5), {"byte"});
  types("all bytes", std::vector<int64_t>(264, 6), {}, Expected::Loads);
  set("types of reals", "token_type", Value::of_f32s(std::vector<double>(264, 1)), {"token_type"});

  const auto merges = [&](const std::string& what, std::vector<std::string> values, std::vector<std::string> parts,
                          Expected expected = Expected::Refused) {
    set(what, "merges", Value::of_strings(std::move(values)), std::move(parts), expected);
  };
  merges("merge without a space", {"he"}, {"merges", "left right"});
  merges("empty merge", {""}, {"merges"});
  merges("merge of a space", {" "}, {"merges"});
  merges("merge without right", {"h "}, {"merges"});
  merges("merge without left", {" h"}, {"merges"});
  merges("merge of two spaces", {"h e l"}, {}, Expected::Survives);
  merges("merge outside the alphabet", {"\xe4\xb8\xad x", "h e"}, {}, Expected::Loads);
  merges("merges to unknown tokens", {"q z", "qz q", "qzq z"}, {}, Expected::Loads);
  merges("equal merges", std::vector<std::string>(1000, "h e"), {}, Expected::Loads);
  merges("merge of 5 MB", {std::string(5u << 20, 'a') + " " + std::string(5u << 20, 'b')}, {}, Expected::Loads);
  merges("no merges", {}, {}, Expected::Loads);
  std::vector<std::string> doubling;  // each merge is twice as long as the one before
  for (size_t n = 1; n < (1u << 20); n *= 2) doubling.push_back(std::string(n, 'a') + " " + std::string(n, 'a'));
  merges("doubling merges", doubling, {}, Expected::Loads);

  for (const char* id : {"bos_token_id", "eos_token_id", "padding_token_id", "eot_token_id", "eom_token_id"}) {
    for (const uint64_t bad : {uint64_t{264}, uint64_t{1} << 31, uint64_t{UINT32_MAX}})
      set(std::string(id) + " " + std::to_string(bad), id, unsigned_value(ValueType::U32, bad), {id});
    set(std::string(id) + " 2^63", id, unsigned_value(ValueType::U64, uint64_t{1} << 63), {id});
    set(std::string(id) + " -1", id, signed_value(ValueType::I32, -1), {id});
    set(std::string(id) + " of a string", id, Value::of_string("1"), {id});
  }
  set("NaN scores", "scores", Value::of_f32s(std::vector<double>(264, NAN)), {"scores"});
  set("infinite scores", "scores", Value::of_f32s(std::vector<double>(264, INFINITY)), {"scores"});
  set("scores too few", "scores", Value::of_f32s({0, 1}), {"scores"});
  set("scores of strings", "scores", Value::of_strings({"a"}), {"scores"});
  set("scores", "scores", Value::of_f32s(std::vector<double>(264, 0)), {}, Expected::Loads);
  for (const char* model : {"llama", "bert", "", "gpt2\n"})
    set("model '" + std::string(model) + "'", "model", Value::of_string(model), {"model"});
  for (const char* pre : {"", "unknown", "\xff\n"})
    set("pre '" + std::string(pre) + "'", "pre", Value::of_string(pre), {"pre"});
  set("model of a number", "model", Value::of_u32(1), {"model"});
  set("pre of a number", "pre", Value::of_u32(1), {"pre"});
  set("add_bos of a number", "add_bos_token", Value::of_u32(1), {"add_bos_token"});
  cases.add("llama", "add_bos without bos", [](ModelImage& image) { image.erase("tokenizer.ggml.bos_token_id"); },
            {"add_bos_token"});
  for (const char* key : {"tokens", "model", "pre", "token_type", "merges", "bos_token_id", "eos_token_id",
                          "padding_token_id", "add_bos_token"})
    cases.add(
        "qwen3", std::string(key) + " removed",
        [key](ModelImage& image) { image.erase("tokenizer.ggml." + std::string(key)); }, {}, Expected::Survives);
}

}  // namespace

MalformedCases model_cases() {
  Cases cases("model");
  attention_cases(cases);
  expert_cases(cases);
  delta_cases(cases);
  qsa_cases(cases);
  return std::move(cases.list);
}

MalformedCases tokenizer_cases() {
  Cases cases("tokenizer");
  vocabulary_cases(cases);
  return std::move(cases.list);
}

}  // namespace strata::test
