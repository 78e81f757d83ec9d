#include "base/error.h"
#include "gguf/hf/map.h"
#include "gguf/hf/names.h"

namespace strata::gguf::hf {
namespace {

void map_rope_freqs(Mapper& m) {
  const RopeConfig& r = m.config().rope;
  if (r.scaling != RopeScaling::Llama3) return;
  Target target{"rope_freqs.weight", {m.config().head_dim / 2}, {}, {}};
  target.constants = llama3_rope_freqs(m.config().head_dim, {r.theta, r.factor, r.low_freq_factor, r.high_freq_factor,
                                                             static_cast<double>(r.original_context)});
  m.add(std::move(target));
}

void refuse_unused(const Mapper& m) {
  const std::vector<std::string> unused = m.unused();
  if (unused.empty()) return;
  const std::string more = unused.size() > 1 ? " (and " + std::to_string(unused.size() - 1) + " more)" : "";
  throw Error(ErrorKind::Model,
              "tensor " + unused.front() + more + " has no place in a " + std::string(architecture(m.config().family)) +
                  " file",
              m.checkpoint().directory());
}

}  // namespace

void map_block(Mapper& m, const Block& b, bool recurrent, bool dense) {
  const Config& c = m.config();
  const bool streams = c.family == Family::Qwen4Exp;
  if (streams) {
    map_hyper_connection(m, b.hf + "attn_hyper_connection.", b.out + "hc_attn_", true);
    map_hyper_connection(m, b.hf + "mlp_hyper_connection.", b.out + "hc_ffn_", true);
  } else {
    const std::string second = is_hybrid(c.family) ? "post_attention_norm.weight" : "ffn_norm.weight";
    m.norm(b.out + "attn_norm.weight", b.hf + "input_layernorm.weight", c.hidden);
    m.norm(b.out + second, b.hf + "post_attention_layernorm.weight", c.hidden);
  }
  if (recurrent)
    map_delta_net(m, b);
  else
    map_attention(m, b);
  if (!recurrent && c.indexer.heads > 0) map_indexer(m, b);
  map_mlp(m, b, dense);
}

Plan plan_conversion(const Checkpoint& checkpoint, const Config& config, const Warn& warn) {
  Mapper mapper(checkpoint, config);
  Plan plan;
  map_head(mapper);
  if (config.family == Family::Qwen4Exp)
    map_hyper_connection(mapper, "model.hyper_connection_mixer.", "output_hc_", false);
  else
    mapper.norm("output_norm.weight", "model.norm.weight", config.hidden);
  map_rope_freqs(mapper);
  for (uint64_t i = 0; i < config.layers; ++i) {
    const std::string number = std::to_string(i) + ".";
    map_block(mapper, {"model.layers." + number, "blk." + number}, config.recurrent[i], config.dense[i]);
  }
  map_ple(mapper, plan.ple);
  plan.mtp_blocks = map_mtp(mapper, warn);
  refuse_unused(mapper);
  for (const SourceTensor& tensor : checkpoint.tensors()) plan.dropped += is_dropped(tensor.name) ? 1 : 0;
  plan.targets = mapper.take_targets();
  return plan;
}

}  // namespace strata::gguf::hf
