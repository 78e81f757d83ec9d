#include "base/error.h"
#include "gguf/hf/map.h"

namespace strata::gguf::hf {
namespace {

// The bias beside a weight; optional in llama. In other families nothing takes it, and it is refused as unused.
void map_bias(Mapper& m, const std::string& out, const std::string& hf, uint64_t rows, const IndexMap& order = {}) {
  if (m.config().family != Family::Llama || !m.has(hf + ".bias")) return;
  Piece piece = m.whole(m.take(hf + ".bias", {rows}), 1);
  piece.rows = order;
  m.add(out + ".bias", {rows}, std::move(piece));
}

void map_projection(Mapper& m, const std::string& out, const std::string& hf, uint64_t rows, uint64_t columns) {
  m.matrix(out + ".weight", hf + ".weight", rows, columns);
  map_bias(m, out, hf, rows);
}

// llama: rows of q and k from half-split to adjacent rotation pairs.
void map_rotated(Mapper& m, const std::string& out, const std::string& hf, uint64_t heads) {
  const Config& c = m.config();
  const uint64_t rows = heads * c.head_dim;
  Piece piece = m.whole(m.take(hf + ".weight", {rows, c.hidden}), c.hidden);
  const IndexMap order = adjacent_pairs(heads, c.head_dim);
  piece.rows = order;
  m.add(out + ".weight", {c.hidden, rows}, std::move(piece));
  map_bias(m, out, hf, rows, order);
}

struct ExpertNames {
  std::string root, gate, up, down;
};

// One piece per expert, whether the checkpoint keeps experts apart or in one tensor.
void map_experts(Mapper& m, const Block& b, const ExpertNames& names) {
  const Config& c = m.config();
  const uint64_t n = c.experts.count, hidden = c.experts.hidden;
  Target gate{b.out + "ffn_gate_exps.weight", {c.hidden, hidden, n}, {}, {}};
  Target up{b.out + "ffn_up_exps.weight", {c.hidden, hidden, n}, {}, {}};
  Target down{b.out + "ffn_down_exps.weight", {hidden, c.hidden, n}, {}, {}};
  const std::string fused = names.root + "experts.";
  const std::string suffix = m.has(fused + "gate_up_proj") ? "" : ".weight";
  if (m.has(fused + "gate_up_proj" + suffix)) {
    const SourceTensor& both = m.take(fused + "gate_up_proj" + suffix, {n, 2 * hidden, c.hidden});
    const SourceTensor& last = m.take(fused + "down_proj" + suffix, {n, c.hidden, hidden});
    auto rows_of = [&](const SourceTensor& source, uint64_t width, uint64_t first, uint64_t count) {
      Piece piece = m.whole(source, width);
      piece.first_row = first;
      piece.row_count = count;
      return piece;
    };
    for (uint64_t e = 0; e < n; ++e) {
      gate.pieces.push_back(rows_of(both, c.hidden, 2 * hidden * e, hidden));
      up.pieces.push_back(rows_of(both, c.hidden, 2 * hidden * e + hidden, hidden));
    }
    down.pieces.push_back(m.whole(last, hidden));
  } else {
    for (uint64_t e = 0; e < n; ++e) {
      const std::string expert = fused + std::to_string(e) + ".";
      gate.pieces.push_back(m.whole(m.take(expert + names.gate + ".weight", {hidden, c.hidden}), c.hidden));
      up.pieces.push_back(m.whole(m.take(expert + names.up + ".weight", {hidden, c.hidden}), c.hidden));
      down.pieces.push_back(m.whole(m.take(expert + names.down + ".weight", {c.hidden, hidden}), hidden));
    }
  }
  m.add(std::move(gate));
  m.add(std::move(up));
  m.add(std::move(down));
}

}  // namespace

void map_head(Mapper& m) {
  const Config& c = m.config();
  m.matrix("token_embd.weight", "model.embed_tokens.weight", c.vocab, c.hidden);
  // A config that does not say whether the head is tied means so when the checkpoint has none.
  const bool tied = c.tied.value_or(!m.has("lm_head.weight"));
  if (!tied)
    m.matrix("output.weight", "lm_head.weight", c.vocab, c.hidden);
  else if (m.has("lm_head.weight"))
    m.drop("lm_head.weight");
}

void map_attention(Mapper& m, const Block& b) {
  const Config& c = m.config();
  const std::string hf = b.hf + "self_attn.";
  const uint64_t gate = is_hybrid(c.family) ? 2 : 1;  // per head: q, then the gate
  if (c.family == Family::Llama) {
    map_rotated(m, b.out + "attn_q", hf + "q_proj", c.heads);
    map_rotated(m, b.out + "attn_k", hf + "k_proj", c.kv_heads);
  } else {
    map_projection(m, b.out + "attn_q", hf + "q_proj", gate * c.heads * c.head_dim, c.hidden);
    map_projection(m, b.out + "attn_k", hf + "k_proj", c.kv_heads * c.head_dim, c.hidden);
    m.norm(b.out + "attn_q_norm.weight", hf + "q_norm.weight", c.head_dim);
    m.norm(b.out + "attn_k_norm.weight", hf + "k_norm.weight", c.head_dim);
  }
  map_projection(m, b.out + "attn_v", hf + "v_proj", c.kv_heads * c.head_dim, c.hidden);
  map_projection(m, b.out + "attn_output", hf + "o_proj", c.hidden, c.heads * c.head_dim);
}

void map_mlp(Mapper& m, const Block& b, bool dense) {
  const Config& c = m.config();
  if (dense) {
    map_projection(m, b.out + "ffn_gate", b.hf + "mlp.gate_proj", c.intermediate, c.hidden);
    map_projection(m, b.out + "ffn_up", b.hf + "mlp.up_proj", c.intermediate, c.hidden);
    map_projection(m, b.out + "ffn_down", b.hf + "mlp.down_proj", c.hidden, c.intermediate);
    return;
  }
  const bool sparse_block = m.has_prefix(b.hf + "block_sparse_moe.");
  const ExpertNames names = sparse_block ? ExpertNames{b.hf + "block_sparse_moe.", "w1", "w3", "w2"}
                                         : ExpertNames{b.hf + "mlp.", "gate_proj", "up_proj", "down_proj"};
  m.matrix(b.out + "ffn_gate_inp.weight", names.root + "gate.weight", c.experts.count, c.hidden);
  map_experts(m, b, names);
  if (c.experts.shared_hidden == 0) return;
  const std::string shared = b.hf + "mlp.shared_expert.";
  m.matrix(b.out + "ffn_gate_inp_shexp.weight", b.hf + "mlp.shared_expert_gate.weight", 1, c.hidden);
  m.matrix(b.out + "ffn_gate_shexp.weight", shared + "gate_proj.weight", c.experts.shared_hidden, c.hidden);
  m.matrix(b.out + "ffn_up_shexp.weight", shared + "up_proj.weight", c.experts.shared_hidden, c.hidden);
  m.matrix(b.out + "ffn_down_shexp.weight", shared + "down_proj.weight", c.hidden, c.experts.shared_hidden);
}

}  // namespace strata::gguf::hf
