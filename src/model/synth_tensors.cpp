// Spreads keep activations near 1: a matrix of n inputs has 1/√n unless a comment says otherwise.
#include "model/synth_tensors.h"

#include <cmath>

#include "model/ngram_constants.h"

namespace strata {
namespace {

constexpr double kLogitSpread = 3;   // standard deviation of logits: some tokens likely, none certain
constexpr double kRouterSpread = 2;  // experts differ, none takes everything
constexpr double kHyperGain = 2;     // of norms in front of read gates, which halve what they pass

class Builder {
 public:
  Builder(const SynthShape& shape, const NgramParams& ngram) : s_(shape), f_(synth_family(shape)), ngram_(ngram) {}

  std::vector<SynthTensor> build() {
    const double head_spread = kLogitSpread / std::sqrt(s_.hidden);
    add("token_embd.weight", {s_.hidden, s_.vocabulary}, SynthFill::Matrix, s_.tied ? head_spread : 1);
    if (!s_.tied) add("output.weight", {s_.hidden, s_.vocabulary}, SynthFill::Matrix, head_spread);
    if (f_.hyper)
      hyper("output_hc_", false);
    else
      norm("output_norm.weight", {s_.hidden});
    if (!ngram_.head_sizes.empty())
      add("per_layer_token_embd.weight", {ngram_width(), static_cast<int64_t>(ngram_table_rows(ngram_))},
          SynthFill::Matrix, 1);
    const std::vector<bool> recurrent = synth_recurrent(s_);
    for (size_t i = 0; i < recurrent.size(); ++i) {
      prefix_ = "blk." + std::to_string(i) + ".";
      if (i == 1 && !ngram_.head_sizes.empty()) ngram_module();
      block(recurrent[i], s_.index_heads > 0);
    }
    for (int k = 0; k < s_.mtp; ++k) {
      prefix_ = "blk." + std::to_string(s_.layers + k) + ".";
      block(false, false);
      mtp();
    }
    return std::move(tensors_);
  }

 private:
  using Shape = std::vector<int64_t>;

  void add(const std::string& name, const Shape& ne, SynthFill fill, double spread) {
    tensors_.push_back({prefix_ + name, {ne.begin(), ne.end()}, fill, spread});
  }
  void norm(const std::string& name, const Shape& ne, double gain = 1) { add(name, ne, SynthFill::Norm, gain); }
  void matrix(const std::string& name, Shape ne, double gain = 1) {
    const double spread = gain / std::sqrt(static_cast<double>(ne[0]));
    add(name + ".weight", ne, SynthFill::Matrix, spread);
  }
  int64_t ngram_width() const { return s_.hidden / (2 * s_.ngram_heads); }

  void block(bool recurrent, bool indexer) {
    if (f_.hyper) {
      hyper("hc_attn_", true);
      hyper("hc_ffn_", true);
    } else {
      norm("attn_norm.weight", {s_.hidden});
      norm(f_.hybrid ? "post_attention_norm.weight" : "ffn_norm.weight", {s_.hidden});
    }
    if (recurrent)
      delta_net();
    else
      attention(indexer);
    if (f_.experts)
      experts();
    else
      dense("", s_.inner);
  }

  void attention(bool indexer) {
    const int64_t q = int64_t{s_.heads} * s_.head_dim, kv = int64_t{s_.kv_heads} * s_.head_dim;
    matrix("attn_q", {s_.hidden, f_.hybrid ? 2 * q : q});
    matrix("attn_k", {s_.hidden, kv});
    matrix("attn_v", {s_.hidden, kv});
    matrix("attn_output", {q, s_.hidden});
    if (f_.qk_norm) {
      norm("attn_q_norm.weight", {s_.head_dim});
      norm("attn_k_norm.weight", {s_.head_dim});
    }
    if (!indexer) return;
    matrix("indexer.q_proj", {s_.hidden, int64_t{s_.index_heads} * s_.index_dim});
    matrix("indexer.k_proj", {s_.hidden, s_.index_dim});
    norm("indexer.q_norm.weight", {s_.index_dim});
    norm("indexer.k_norm.weight", {s_.index_dim});
  }

  void delta_net() {
    const int64_t values = int64_t{s_.value_heads} * s_.state_size;
    const int64_t channels = 2 * int64_t{s_.key_heads} * s_.state_size + values;
    matrix("attn_qkv", {s_.hidden, channels});
    matrix("attn_gate", {s_.hidden, values});
    if (s_.arch == "qwen3next") {
      matrix("ssm_ba", {s_.hidden, 2 * s_.value_heads});
    } else {
      matrix("ssm_beta", {s_.hidden, s_.value_heads});
      matrix("ssm_alpha", {s_.hidden, s_.value_heads});
    }
    matrix("ssm_conv1d", {4, channels});
    add("ssm_dt.bias", {s_.value_heads}, SynthFill::TimeStep, 1);
    add("ssm_a", {s_.value_heads}, SynthFill::Decay, 1);
    norm("ssm_norm.weight", {s_.state_size});
    matrix("ssm_out", {values, s_.hidden});
  }

  void dense(const std::string& suffix, int64_t inner) {
    matrix("ffn_gate" + suffix, {s_.hidden, inner});
    matrix("ffn_up" + suffix, {s_.hidden, inner});
    matrix("ffn_down" + suffix, {inner, s_.hidden});
  }

  void experts() {
    matrix("ffn_gate_inp", {s_.hidden, s_.experts}, kRouterSpread);
    matrix("ffn_gate_exps", {s_.hidden, s_.expert_inner, s_.experts});
    matrix("ffn_up_exps", {s_.hidden, s_.expert_inner, s_.experts});
    matrix("ffn_down_exps", {s_.expert_inner, s_.hidden, s_.experts});
    if (s_.shared_inner == 0) return;
    matrix("ffn_gate_inp_shexp", {s_.hidden});
    dense("_shexp", s_.shared_inner);
  }

  // The formulas divide the inputs of down and inject by the number of streams.
  void hyper(const std::string& name, bool writes) {
    const int64_t width = int64_t{s_.streams} * s_.hidden;
    norm(name + "norm.weight", {width}, kHyperGain);
    matrix(name + "down", {width, s_.low_rank}, s_.streams / kHyperGain);
    matrix(name + "up", {s_.low_rank, width});
    if (writes) matrix(name + "inject", {width, s_.streams}, s_.streams / kHyperGain);
  }

  void ngram_module() {
    const int64_t width = int64_t{s_.streams} * s_.hidden, in = 2 * s_.ngram_heads * ngram_width();
    matrix("ple_key", {in, width});
    matrix("ple_value", {in, s_.hidden});
    for (const char* part : {"key", "query", "conv"}) norm("ple_norm_" + std::string(part) + ".weight", {width});
    matrix("ple_conv1d", {4, width});
  }

  void mtp() {
    matrix("nextn.eh_proj", {2 * s_.hidden, s_.hidden});
    norm("nextn.enorm.weight", {s_.hidden});
    norm("nextn.hnorm.weight", {f_.hyper ? int64_t{s_.streams} * s_.hidden : s_.hidden});
    if (f_.hyper)
      hyper("nextn.hc_head_", false);
    else
      norm("nextn.shared_head_norm.weight", {s_.hidden});
  }

  const SynthShape& s_;
  const SynthFamily f_;
  const NgramParams& ngram_;
  std::string prefix_;
  std::vector<SynthTensor> tensors_;
};

}  // namespace

SynthFamily synth_family(const SynthShape& shape) {
  const std::string& arch = shape.arch;
  const bool hyper = arch == "qwen4exp", hybrid = hyper || arch == "qwen3next" || arch.starts_with("qwen35");
  const bool experts = hyper || arch == "qwen3moe" || arch == "qwen3next" || arch == "qwen35moe" ||
                       (arch == "llama" && shape.experts > 0);
  return {experts, hybrid, hyper, arch != "llama"};
}

std::vector<bool> synth_recurrent(const SynthShape& shape) {
  const bool hybrid = synth_family(shape).hybrid;
  std::vector<bool> recurrent;
  for (int i = 0; i < shape.layers; ++i) recurrent.push_back(hybrid && (i + 1) % shape.interval != 0);
  return recurrent;
}

std::vector<SynthTensor> synth_tensors(const SynthShape& shape, const NgramParams& ngram) {
  return Builder(shape, ngram).build();
}

}  // namespace strata
