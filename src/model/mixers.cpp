// The mixers and MLPs of a layer.
#include <algorithm>
#include <vector>

#include "model/append.h"
#include "model/forward.h"
#include "ops/attention/attention.h"
#include "ops/attention/rotation.h"
#include "ops/causal_conv/causal_conv.h"
#include "ops/experts/experts.h"
#include "ops/gate_act/gate_act.h"
#include "ops/gated_delta/gated_delta.h"
#include "ops/gated_delta/sequences.h"
#include "ops/matmul/matmul.h"
#include "ops/ngram_embedding/ngram_embedding.h"
#include "ops/norm/norm.h"
#include "ops/qsa_pool/qsa_pool.h"
#include "ops/qsa_score/qsa_score.h"
#include "ops/route/route.h"
#include "ops/sparse_attention/sparse_attention.h"

namespace strata {
namespace {

// Heads of `dim` values, `step` values apart, inside rows of `x` from value `first` on.
Tensor heads_of(const Tensor& x, int64_t first, int64_t heads, int64_t dim, int64_t step) {
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  Tensor view = x;
  view.data = x.f32() + first;
  view.rank = 3;
  view.extents = {x.extent(0), heads, dim, 0};
  view.strides = {x.stride(0), step * kFloat, kFloat, 0};
  return view;
}

// Parts of the rows [q | k | v] behind a delta net's convolution.
Tensor queries_of(const DeltaSpec& spec, const Tensor& conv) {
  return heads_of(conv, 0, spec.key_heads, spec.dk, spec.dk);
}
Tensor keys_of(const DeltaSpec& spec, const Tensor& conv) {
  return heads_of(conv, int64_t{spec.key_heads} * spec.dk, spec.key_heads, spec.dk, spec.dk);
}
Tensor values_of(const DeltaSpec& spec, const Tensor& conv) {
  return heads_of(conv, 2 * int64_t{spec.key_heads} * spec.dk, spec.value_heads, spec.dv, spec.dv);
}

// Where keys and values lie in the second tier, only pages with cells that a row selected come into memory.
void use_selected(const Tensor& ids, const Tensor& counts, const LayerCaches& caches) {
  if (!caches.k.tiered()) return;
  std::vector<bool> chosen(static_cast<size_t>((caches.k.length() + kPageRows - 1) / kPageRows));
  for (int64_t t = 0; t < ids.extent(0); ++t)
    for (int64_t i = 0; i < counts.as<int32_t>()[t]; ++i)
      chosen[static_cast<size_t>(ids.row<int32_t>(t)[i] / kPageRows)] = true;
  std::vector<int64_t> pages;
  for (size_t page = 0; page < chosen.size(); ++page)
    if (chosen[page]) pages.push_back(static_cast<int64_t>(page));
  caches.k.use(pages);
  caches.v.use(pages);
}

Tensor flat(const Tensor& x) { return make_f32(x.f32(), {x.extent(0), x.extent(1) * x.extent(2)}); }

}  // namespace

void Forward::attend(size_t index, const AttentionWeights& w, const Batch& batch, const Tensor& u, const Tensor& out) {
  const LayerSpec& layer = spec_.layers[index];
  const AttentionSpec& spec = layer.attention;
  const int64_t rows = batch.rows, dim = spec.head_dim, step = spec.gated ? 2 * dim : dim;
  const Tensor projected = arena_.f32({rows, spec.heads * step});
  apply(w.q, u, projected);
  const Tensor raw_q = heads_of(projected, 0, spec.heads, dim, step);
  const Tensor k = arena_.f32({rows, spec.kv_heads, dim}), v = arena_.f32({rows, spec.kv_heads, dim});
  apply(w.k, u, flat(k));
  apply(w.v, u, flat(v));
  Tensor q = raw_q;
  if (spec.qk_norm) {
    q = arena_.f32({rows, spec.heads, dim});
    apply_norm(raw_q, w.q_norm, q);
    apply_norm(k, w.k_norm, k);
  }
  rope(queue_, {q, batch.in.cos, batch.in.sin, rope_.pairs});
  rope(queue_, {k, batch.in.cos, batch.in.sin, rope_.pairs});
  const bool selects = layer.indexer.ratio > 0;
  Tensor index_q, raw_keys;
  if (selects) {
    index_q = arena_.f32({rows, layer.indexer.heads, layer.indexer.dim});
    raw_keys = arena_.f32({rows, layer.indexer.dim});
    apply(w.index_q, u, flat(index_q));
    apply(w.index_k, u, raw_keys);
    apply_norm(index_q, w.index_q_norm, index_q);
    rope(queue_, {index_q, batch.in.cos, batch.in.sin, rope_.pairs});
  }
  const Tensor attended = arena_.f32({rows, spec.heads, dim});
  for (const Part& part : batch.parts) {
    LayerCaches& caches = part.sequence->layers[index];
    const bool rotates_k = caches.k.dtype() == DType::Q4_0, rotates_v = caches.v.dtype() == DType::Q4_0;
    if (rotates_k) {
      rotate_heads(queue_, part.of(q));
      rotate_heads(queue_, part.of(k));
    }
    if (rotates_v) rotate_heads(queue_, part.of(v));
    append_rows(queue_, caches.k, part.of(k));
    append_rows(queue_, caches.v, part.of(v));
    if (selects) {
      index_keys(layer, w, part, caches, part.of(raw_keys));
      attend_selected(layer, batch, part, caches, part.of(index_q), part.of(q), part.of(attended));
    } else {
      caches.k.use_all();
      caches.v.use_all();
      attention(queue_, {part.of(q),
                         caches.k.shape(),
                         caches.v.shape(),
                         part.of(batch.in.n_kv),
                         spec.scale,
                         part.of(attended),
                         {},
                         caches.k.pages(),
                         caches.v.pages()});
      caches.k.release();
      caches.v.release();
    }
    if (rotates_v) rotate_heads(queue_, part.of(attended));
  }
  if (spec.gated) {
    const Tensor gate = heads_of(projected, dim, spec.heads, dim, step);
    gate_act(queue_, {gate, attended, Activation::Sigmoid, false, attended});
  }
  apply(w.output, flat(attended), out);
}

// Pools the blocks that a part completes and remembers the raw keys of the open one.
void Forward::index_keys(const LayerSpec& layer, const AttentionWeights& w, const Part& part, LayerCaches& caches,
                         const Tensor& raw) {
  const int64_t ratio = layer.indexer.ratio, d = layer.indexer.dim;
  const ArenaScope scope(arena_);
  const Tensor tail = arena_.f32({ratio, d}), before = caches.index_tail.last();
  // Slot p mod ratio takes position p: two stretches at most.
  for (int64_t i = std::max<int64_t>(0, ratio - 1 - part.first); i < ratio - 1;) {
    const int64_t slot = (part.first - (ratio - 1) + i) % ratio, count = std::min(ratio - 1 - i, ratio - slot);
    copy_rows(queue_, before.slice(i, count), tail.slice(slot, count));
    i += count;
  }
  const int64_t block = part.first / ratio, blocks = (part.first + part.rows) / ratio - block;
  const Tensor pooled = arena_.f32({std::max<int64_t>(blocks, 1), d});
  qsa_pool(queue_, {raw, part.first, tail, w.index_k_norm, spec_.eps, &rope_, pooled, block});
  append_rows(queue_, caches.index_keys, pooled.slice(0, blocks));
  append_rows(queue_, caches.index_tail, raw);
}

void Forward::attend_selected(const LayerSpec& layer, const Batch& batch, const Part& part, LayerCaches& caches,
                              const Tensor& index_q, const Tensor& q, const Tensor& out) {
  // Rows scored at a time: bounds the memory of scores. An accelerator needs many to be busy.
  const int64_t slice = queue_.accelerator() == nullptr ? 32 : 256;
  const IndexerSpec& indexer = layer.indexer;
  const int64_t rows = part.rows, cells = part.first + rows, blocks = cells / indexer.ratio;
  const int64_t width = std::min<int64_t>(cells, int64_t{indexer.budget} + indexer.ratio - 1);
  const Tensor visible = part.of(batch.in.n_kv);
  const Tensor all_scored = part.of(batch.in.scored[static_cast<int64_t>(indexer_of(layer))]);
  for (int64_t first = 0; first < rows; first += slice) {
    const ArenaScope scope(arena_);
    const int64_t count = std::min(slice, rows - first);
    const Tensor n_kv = visible.slice(first, count), scored = all_scored.slice(first, count);
    const Tensor scores = arena_.f32({count, blocks}), ids = arena_.i32({count, width}), counts = arena_.i32({count});
    qsa_score(queue_, {index_q.slice(first, count),
                       caches.index_keys.shape(),
                       {},
                       scored,
                       indexer.ratio,
                       scores,
                       caches.index_keys.pages()});
    qsa_select(queue_, {scores, n_kv, indexer.ratio, indexer.budget, options_.qsa, ids, counts, {}});
    if (options_.observe) {
      observe("qsa_ids", -1, ids);
      observe("qsa_counts", -1, counts);
    }
    use_selected(ids, counts, caches);
    sparse_attention(queue_, {q.slice(first, count),
                              caches.k.shape(),
                              caches.v.shape(),
                              ids,
                              counts,
                              layer.attention.scale,
                              out.slice(first, count),
                              {},
                              caches.k.pages(),
                              caches.v.pages()});
    caches.k.release();
    caches.v.release();
  }
}

void Forward::delta_net(size_t index, const DeltaWeights& w, const Batch& batch, const Tensor& u, const Tensor& out) {
  const DeltaSpec& spec = spec_.delta;
  const int64_t rows = batch.rows;
  const Tensor mixed = arena_.f32({rows, spec.channels()});
  const Tensor z = arena_.f32({rows, spec.value_heads, spec.dv});
  const Tensor b = arena_.f32({rows, spec.value_heads}), a = arena_.f32({rows, spec.value_heads});
  apply(w.qkv, u, mixed);
  apply(w.z, u, flat(z));
  apply(w.beta, u, b);
  apply(w.alpha, u, a);
  // Pending rows of a part take the places before its own rows, which belong to the part before: the last part comes
  // first, so that nothing in use is written over and no row moves.
  int64_t lead = 0;
  for (const Part& part : batch.parts) lead = std::max(lead, part.sequence->layers[index].delta.pending());
  const Tensor conv = arena_.f32({lead + rows, spec.channels()}),
               read = arena_.f32({lead + rows, spec.value_heads, spec.dv});
  const Tensor g = arena_.f32({lead + rows, spec.value_heads}), beta = arena_.f32({lead + rows, spec.value_heads});
  std::vector<SerialDelta> serial;
  for (auto part = batch.parts.rbegin(); part != batch.parts.rend(); ++part) {
    LayerCaches& caches = part->sequence->layers[index];
    const DeltaState::Rows own = DeltaState::Rows{conv, g, beta}.slice(lead + part->row, part->rows);
    causal_conv(queue_, {part->of(mixed), caches.conv.last(), w.conv, 1, own.conv});
    append_rows(queue_, caches.conv, part->of(mixed));
    gated_delta_gates(queue_, {part->of(a), part->of(b), w.dt_bias, w.a, own.g, own.beta});
    const int64_t pending = caches.delta.pending(), start = lead + part->row - pending, count = pending + part->rows;
    if (caches.delta.is_anchored())
      delta_anchored(caches.delta, own, part->first, read.slice(start, count));
    else
      serial.push_back({&caches.delta, DeltaState::Rows{conv, g, beta}.slice(start, count), part->certain,
                        read.slice(start, count)});
    if (lead == 0) continue;  // no part is in another's way
    delta_serial(serial);
    serial.clear();
  }
  delta_serial(serial);
  const Tensor result = read.slice(lead, rows);
  apply_norm(result, w.norm, result);
  gate_act(queue_, {z, result, spec.output_gate, false, result});
  apply(w.output, flat(result), out);
}

void Forward::delta_serial(std::span<const SerialDelta> parts) {
  const DeltaSpec& spec = spec_.delta;
  std::vector<GatedDeltaArgs> calls;
  for (const auto& [state, wide, certain, read] : parts) {
    const int64_t pending = state->pending(), stored = pending + certain;
    if (pending > 0) {
      const DeltaState::Rows before = state->pending_rows();
      copy_rows(queue_, before.conv, wide.conv.slice(0, pending));
      copy_rows(queue_, before.g, wide.g.slice(0, pending));
      copy_rows(queue_, before.beta, wide.beta.slice(0, pending));
    }
    calls.push_back({queries_of(spec, wide.conv), keys_of(spec, wide.conv), values_of(spec, wide.conv), wide.g,
                     wide.beta, spec.mapping, state->matrix(stored), read, stored});
  }
  gated_delta_each(*beside_, calls);
  for (const auto& [state, wide, certain, read] : parts) {
    const int64_t rows = wide.g.extent(0), pending = state->pending(), stored = pending + certain;
    advance_pending(queue_, *state, rows - pending, wide.slice(stored, rows - stored));
  }
}

void Forward::delta_anchored(DeltaState& state, const DeltaState::Rows& rows, int64_t first, const Tensor& read) {
  const DeltaSpec& spec = spec_.delta;
  const int64_t count = rows.g.extent(0);
  const DeltaState::View view = state.writable(count);
  gated_delta_anchored(
      queue_, {queries_of(spec, rows.conv), keys_of(spec, rows.conv), values_of(spec, rows.conv), rows.g, rows.beta,
               spec.mapping, first, view.state, view.ring_k, view.ring_u, view.ring_g, read});
  state.advance(count);
}

void Forward::dense_mlp(const DenseWeights& w, const Tensor& u, const Tensor& out) {
  const ArenaScope scope(arena_);
  const Tensor gate = arena_.f32({u.extent(0), 1, w.gate.out}), up = arena_.f32({u.extent(0), 1, w.up.out});
  apply(w.gate, u, flat(gate));
  apply(w.up, u, flat(up));
  gate_act(queue_, {gate, up, Activation::Silu, false, up});
  apply(w.down, flat(up), out);
}

void Forward::expert_mlp(const ExpertWeights& w, const Tensor& u, const Tensor& out, int index) {
  const ExpertsSpec& spec = spec_.experts;
  const ArenaScope scope(arena_);
  const int64_t rows = u.extent(0);
  const Tensor logits = arena_.f32({rows, spec.count});
  const Tensor ids = arena_.i32({rows, spec.used}), weights = arena_.f32({rows, spec.used});
  apply(w.router, u, logits);
  route(queue_, {logits, spec.normalise, spec.scale, ids, weights});
  observe("expert_ids", index, ids);
  experts(queue_, {u, ids, weights, w.gate, w.up, w.down, w.gate_scale, w.up_scale, w.down_scale, out, activations()});
  if (spec.shared_inner == 0) return;
  const Tensor shared = arena_.f32({rows, 1, spec_.hidden}), gate = arena_.f32({rows, 1, 1});
  dense_mlp(w.shared, u, flat(shared));
  apply(w.shared_gate, u, flat(gate));
  Tensor sum = out;
  sum.rank = 3;
  sum.extents = shared.extents;
  sum.strides = shared.strides;
  gate_act(queue_, {gate, shared, Activation::Sigmoid, true, sum});
}

void Forward::ngram(const LayerSpec& layer, const NgramWeights& w, const Batch& batch, const Tensor& x, int index) {
  const NgramSpec& spec = spec_.ngrams[static_cast<size_t>(layer.ngram)];
  const ArenaScope scope(arena_);
  const int64_t rows = batch.rows, streams = spec_.streams, width = spec_.residual_width();
  const Tensor rows_read = arena_.f32({rows, int64_t{spec.params.orders} * spec.params.heads, spec.width});
  for (const Part& part : batch.parts) {
    const Tensor context = part.sequence->ngram_context.last();
    ngram_embedding(queue_,
                    {&spec.params, part.of(batch.in.ids), make_tensor(context.data, DType::I32, {context.extent(0)}),
                     weights_.ngram_table, part.of(rows_read)});
  }
  const Tensor key = arena_.f32({rows, width}), value = arena_.f32({rows, spec_.hidden});
  const Tensor query = arena_.f32({rows, streams, spec_.hidden}), gated = arena_.f32({rows, width});
  apply(w.key, flat(rows_read), key);
  apply(w.value, flat(rows_read), value);
  const Tensor key_streams = heads_of(key, 0, streams, spec_.hidden, spec_.hidden);
  const Tensor gated_streams = heads_of(gated, 0, streams, spec_.hidden, spec_.hidden);
  apply_norm(key_streams, w.norm_key, key_streams);
  apply_norm(x, w.norm_query, query);
  ngram_gate(queue_, {key_streams, query, value, gated_streams});
  const Tensor normed = arena_.f32({rows, width}), conv = arena_.f32({rows, width});
  apply_norm(gated, w.norm_conv, normed);
  for (const Part& part : batch.parts) {
    HistoryRows& history = part.sequence->layers[static_cast<size_t>(index)].ngram;
    causal_conv(queue_, {part.of(normed), history.last(), w.conv, spec.order(), part.of(conv)});
    append_rows(queue_, history, part.of(normed));
  }
  residual_add(queue_, conv, gated);  // V + C
  observe("ple_out", index, conv);
  residual_add(queue_, make_f32(x.f32(), {rows, width}), conv);
}

}  // namespace strata
