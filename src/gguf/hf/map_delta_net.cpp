#include "gguf/hf/map.h"

namespace strata::gguf::hf {
namespace {

void add_rows(Mapper& m, std::string name, const SourceTensor& source, uint64_t width, IndexMap rows,
              Op op = Op::Copy) {
  Piece piece = m.whole(source, width);
  const uint64_t count = rows.size();
  piece.rows = std::move(rows);
  piece.op = op;
  m.add(std::move(name), width == 1 ? Shape{count} : Shape{width, count}, std::move(piece));
}

// qwen3next: q, k, v, z arrive grouped per key head; b and a stay so; value heads keep their order.
void map_grouped(Mapper& m, const Block& b, const std::string& hf) {
  const Config& c = m.config();
  const DeltaNetConfig& d = c.delta;
  const uint64_t value_rows = d.values_per_key() * d.value_dim;
  const SourceTensor& qkvz = m.take(hf + "in_proj_qkvz.weight", {d.channels() + d.value_size(), c.hidden});
  add_rows(m, b.out + "attn_qkv.weight", qkvz, c.hidden, ungrouped_qkv(d.key_heads, d.key_dim, value_rows));
  add_rows(m, b.out + "attn_gate.weight", qkvz, c.hidden, ungrouped_z(d.key_heads, d.key_dim, value_rows));
  m.matrix(b.out + "ssm_ba.weight", hf + "in_proj_ba.weight", 2 * d.value_heads, c.hidden);
  m.matrix(b.out + "ssm_conv1d.weight", hf + "conv1d.weight", d.channels(), d.conv_kernel);
  m.vector(b.out + "ssm_dt.bias", hf + "dt_bias", d.value_heads);
  m.vector(b.out + "ssm_a", hf + "A_log", d.value_heads, Op::NegExp);
  m.matrix(b.out + "ssm_out.weight", hf + "out_proj.weight", c.hidden, d.value_size());
}

// The others: separate projections, value heads from grouped to tiled order.
void map_tiled(Mapper& m, const Block& b, const std::string& hf) {
  const Config& c = m.config();
  const DeltaNetConfig& d = c.delta;
  const SourceTensor& qkv = m.take(hf + "in_proj_qkv.weight", {d.channels(), c.hidden});
  const SourceTensor& z = m.take(hf + "in_proj_z.weight", {d.value_size(), c.hidden});
  const SourceTensor& beta = m.take(hf + "in_proj_b.weight", {d.value_heads, c.hidden});
  const SourceTensor& alpha = m.take(hf + "in_proj_a.weight", {d.value_heads, c.hidden});
  const SourceTensor& conv = m.take(hf + "conv1d.weight", {d.channels(), d.conv_kernel});
  const SourceTensor& dt = m.take(hf + "dt_bias", {d.value_heads});
  const SourceTensor& a_log = m.take(hf + "A_log", {d.value_heads});
  const SourceTensor& out = m.take(hf + "out_proj.weight", {c.hidden, d.value_size()});

  const IndexMap heads = tiled_value_heads(d.key_heads, d.values_per_key(), 1);
  const IndexMap values = tiled_value_heads(d.key_heads, d.values_per_key(), d.value_dim);
  const IndexMap channels = after(2 * d.key_size(), values);
  add_rows(m, b.out + "attn_qkv.weight", qkv, c.hidden, channels);
  add_rows(m, b.out + "attn_gate.weight", z, c.hidden, values);
  add_rows(m, b.out + "ssm_beta.weight", beta, c.hidden, heads);
  add_rows(m, b.out + "ssm_alpha.weight", alpha, c.hidden, heads);
  add_rows(m, b.out + "ssm_conv1d.weight", conv, d.conv_kernel, channels);
  add_rows(m, b.out + "ssm_dt.bias", dt, 1, heads);
  add_rows(m, b.out + "ssm_a", a_log, 1, heads, Op::NegExp);
  Piece columns = m.whole(out, d.value_size());
  columns.columns = values;
  m.add(b.out + "ssm_out.weight", {d.value_size(), c.hidden}, std::move(columns));
}

}  // namespace

void map_delta_net(Mapper& m, const Block& b) {
  const std::string hf = b.hf + "linear_attn.";
  if (m.config().family == Family::Qwen3Next)
    map_grouped(m, b, hf);
  else
    map_tiled(m, b, hf);
  m.vector(b.out + "ssm_norm.weight", hf + "norm.weight", m.config().delta.value_dim);  // plain norm: no + 1
}

}  // namespace strata::gguf::hf
