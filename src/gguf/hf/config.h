// config.json of a Hugging Face checkpoint as a plain struct. Every number has been checked against a range.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::gguf::hf {

using Warn = std::function<void(const std::string&)>;

enum class Family { Llama, Qwen3, Qwen3Moe, Qwen3Next, Qwen35, Qwen35Moe, Qwen4Exp };
std::string_view architecture(Family family);  // general.architecture of the file
bool is_hybrid(Family family);                 // delta-net layers, gated attention, zero-centred norms

enum class RopeScaling { None, Linear, Yarn, Llama3 };

struct RopeConfig {
  RopeScaling scaling = RopeScaling::None;
  double theta = 10000;
  uint64_t dimensions = 0;  // rotated dimensions of a head
  double factor = 1;
  uint64_t original_context = 0;
  double low_freq_factor = 1, high_freq_factor = 4;                             // llama3
  std::optional<double> beta_fast, beta_slow, extrapolation, attention_factor;  // yarn
  std::array<int64_t, 4> sections{11, 11, 10, 0};                               // hybrids
};

struct ExpertConfig {
  uint64_t count = 0;  // 0: no experts
  uint64_t used = 0;
  uint64_t hidden = 0;
  uint64_t shared_hidden = 0;  // 0: no shared expert
  bool normalise = true;       // weights of the chosen experts sum to one
};

struct DeltaNetConfig {
  uint64_t conv_kernel = 0, key_dim = 0, value_dim = 0, key_heads = 0, value_heads = 0;
  uint64_t key_size() const { return key_heads * key_dim; }
  uint64_t value_size() const { return value_heads * value_dim; }
  uint64_t values_per_key() const { return value_heads / key_heads; }
  uint64_t channels() const { return 2 * key_size() + value_size(); }
};

struct IndexerConfig {
  uint64_t heads = 0;  // 0: dense attention
  uint64_t head_dim = 0, budget = 0, ratio = 0;
};

struct PleConfig {
  std::vector<uint64_t> layers;  // counted from 0, in the order of the config; empty: no n-gram tables
  uint64_t embed_dim = 0, conv_kernel = 0, ngram_size = 0, heads_per_ngram = 0, parts = 0;
  uint64_t heads() const { return (ngram_size - 1) * heads_per_ngram; }
};

struct Config {
  Family family = Family::Llama;
  uint64_t vocab = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, context = 0;
  uint64_t intermediate = 0;  // 0: not stated (no dense MLP)
  double norm_epsilon = 1e-6;
  std::optional<bool> tied;  // the embedding is the head
  RopeConfig rope;
  ExpertConfig experts;
  std::vector<bool> recurrent;  // one per layer: delta net
  std::vector<bool> dense;      // one per layer: dense MLP instead of experts
  DeltaNetConfig delta;         // hybrids
  std::optional<uint64_t> mtp_layers;
  uint64_t streams = 0, stream_rank = 0;  // hyper-connections of qwen4exp
  IndexerConfig indexer;
  PleConfig ple;
  bool sigmoid_output_gate = false;  // of the delta net
  std::vector<uint64_t> eos;
  std::optional<uint64_t> bos, pad, image_token;
};

// Error{Format} for malformed JSON, Error{Model} naming the key for a model that Strata does not have.
Config parse_config(const std::string& json, const std::string& path, const Warn& warn);
Config read_config(const std::string& directory, const Warn& warn);

}  // namespace strata::gguf::hf
