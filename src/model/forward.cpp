#include "model/forward.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "device/side_by_side.h"
#include "model/append.h"
#include "ops/argmax/argmax.h"
#include "ops/attention/attention.h"
#include "ops/embedding/embedding.h"
#include "ops/hyper_connection/hyper_connection.h"
#include "ops/matmul/matmul.h"
#include "ops/norm/norm.h"

namespace strata {
namespace {

// [rows, width] seen as [rows, groups, width / groups].
Tensor grouped(const Tensor& x, int64_t groups) {
  Tensor view = x;
  view.rank = 3;
  view.extents = {x.extent(0), groups, x.extent(1) / groups, 0};
  view.strides = {x.stride(0), view.extents[2] * static_cast<int64_t>(sizeof(float)), sizeof(float), 0};
  return view;
}

// Columns first .. first + count - 1 of [rows, width].
Tensor columns(const Tensor& x, int64_t first, int64_t count) {
  Tensor view = x;
  view.data = x.f32() + first;
  view.extents[1] = count;
  return view;
}

}  // namespace

namespace {

// Operators between its beginning and its end go to an accelerator together. Tensors can be looked at only where they
// do not.
class Pass {
 public:
  Pass(Queue& queue, bool together) : queue_(queue), open_(together && queue.accelerator() != nullptr) {
    if (open_) queue_.stream().begin_pass();
  }
  ~Pass() {
    try {
      end();
    } catch (const Error&) {  // one is on its way already
    }
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  void end() {
    if (std::exchange(open_, false)) queue_.stream().end_pass();
  }

 private:
  Queue& queue_;
  bool open_;
};

bool same_scores(const IndexerSpec& a, const IndexerSpec& b) { return a.ratio == b.ratio && a.budget == b.budget; }

}  // namespace

Forward::Forward(const Model& model, Queue& queue, ForwardOptions options)
    : spec_(model.spec()),
      weights_(model.weights()),
      queue_(queue),
      beside_(std::make_shared<SideBySide>(queue)),
      options_(std::move(options)),
      rope_(model.spec().rope),
      arena_(queue.space()) {
  for (const LayerSpec& layer : spec_.layers)
    if (layer.indexer.ratio > 0 && indexer_of(layer) == indexers_.size()) indexers_.push_back(layer.indexer);
}

size_t Forward::indexer_of(const LayerSpec& layer) const {
  size_t index = 0;
  while (index < indexers_.size() && !same_scores(indexers_[index], layer.indexer)) ++index;
  return index;
}

void Forward::observe(const char* name, int index, const Tensor& value) const {
  if (!options_.observe) return;
  Tensor seen = value;
  Fetched host(queue_.space());
  seen.data = const_cast<void*>(host.of(value.data, bytes_of(value.dtype, value.elements())));
  options_.observe(name, index, seen);
}

Tensor Forward::result(const Tensor& host) {
  if (arena_.space().on_host()) return host;
  const Tensor here = arena_.f32({host.extent(0), host.extent(1)});
  results_.push_back({here, host});
  return here;
}

void Forward::deliver() {
  for (const auto& [from, to] : results_) {
    const size_t bytes = bytes_of(from.dtype, from.extent(1));
    if (to.contiguous() || to.extent(0) == 1)
      arena_.space().copy(to.data, from.data, bytes * static_cast<size_t>(to.extent(0)));
    else
      for (int64_t i = 0; i < to.extent(0); ++i) arena_.space().copy(to.row<char>(i), from.row<const char>(i), bytes);
  }
  if (!results_.empty()) arena_.space().wait();
  results_.clear();
}

Activations Forward::activations() const {
  return queue_.accelerator() == nullptr ? options_.activations : Activations::F32;
}

void Forward::apply(const Linear& map, const Tensor& x, const Tensor& y, float scale) {
  for (const Linear::Part& part : map.parts) {
    const int64_t rows = part.weight.extent(0);
    const Tensor bias = map.bias.empty() ? Tensor{} : map.bias.slice(part.column, rows);
    matmul(queue_, {x, part.weight, bias, map.scale * scale, columns(y, part.column, rows), activations()});
  }
}

void Forward::apply_norm(const Tensor& x, const Tensor& weight, const Tensor& y) {
  const int64_t groups = weight.rank == 2 ? weight.extent(0) : 1;
  norm(queue_, {x.rank == 3 ? x : grouped(x, groups), weight, spec_.eps, y.rank == 3 ? y : grouped(y, groups)});
}

Forward::Inputs Forward::inputs_at(char* memory, int64_t rows, size_t& bytes) const {
  bytes = 0;
  auto next = [&](DType type, std::initializer_list<int64_t> extents) {
    Tensor view = make_tensor(memory == nullptr ? nullptr : memory + bytes, type, extents);
    bytes += (bytes_of(type, view.elements()) + 63) / 64 * 64;
    return view;
  };
  const int64_t pairs = rope_.rotary_dims() / 2;
  Inputs in;
  in.ids = next(DType::I32, {rows});
  in.n_kv = next(DType::I32, {rows});
  in.cos = next(DType::F32, {rows, pairs});
  in.sin = next(DType::F32, {rows, pairs});
  in.scored = next(DType::I32, {static_cast<int64_t>(indexers_.size()), rows});
  return in;
}

void Forward::take_memory(Batch& batch) {
  size_t bytes = 0;
  inputs_at(nullptr, batch.rows, bytes);
  auto* memory = arena_.i32({static_cast<int64_t>(bytes / sizeof(int32_t))}).as<char>();
  batch.in = batch.given = inputs_at(memory, batch.rows, bytes);
  if (arena_.space().on_host()) return;
  staging_.resize(bytes);
  batch.given = inputs_at(staging_.data(), batch.rows, bytes);
}

// To where operators read it.
void Forward::send(const Batch& batch) {
  if (!arena_.space().on_host()) arena_.space().copy(batch.in.ids.data, staging_.data(), staging_.size());
}

void Forward::set_positions(Batch& batch, const Part& part, std::span<const int32_t> tokens, int64_t first_position) {
  const Inputs& given = batch.given;
  std::copy(tokens.begin(), tokens.end(), given.ids.as<int32_t>() + part.row);
  for (int64_t t = 0; t < part.rows; ++t) {
    const int64_t row = part.row + t, cells = part.first + t + 1;
    given.n_kv.as<int32_t>()[row] = static_cast<int32_t>(cells);
    rope_.angles(first_position + t, given.cos.row<float>(row), given.sin.row<float>(row));
    for (size_t i = 0; i < indexers_.size(); ++i) {
      // Rows that see no more than the budget take every block: their scores are not needed.
      const bool scores = cells / indexers_[i].ratio > indexers_[i].budget / indexers_[i].ratio;
      given.scored.row<int32_t>(static_cast<int64_t>(i))[row] = scores ? static_cast<int32_t>(cells) : 0;
    }
  }
  batch.parts.push_back(part);
}

namespace {

int64_t rows_wanted(const Segment& segment) {
  const Tensor& asked = segment.logits.empty() ? segment.greedy : segment.logits;
  return asked.empty() ? 0 : asked.extent(0);
}

int64_t certain_rows(const Segment& segment) {
  return segment.certain < 0 ? static_cast<int64_t>(segment.tokens.size()) : segment.certain;
}

}  // namespace

Forward::Batch Forward::make_batch(std::span<const Segment> segments) {
  Batch batch;
  for (const Segment& segment : segments) {
    Sequence& sequence = *segment.sequence;
    const auto rows = static_cast<int64_t>(segment.tokens.size());
    if (rows > sequence.capacity() - sequence.length())
      argument_error("forward", std::to_string(rows) + " tokens do not fit after " + std::to_string(sequence.length()) +
                                    " in a context of " + std::to_string(sequence.capacity()));
    if (segment.certain < -1 || segment.certain > rows)
      argument_error("forward",
                     std::to_string(segment.certain) + " of " + std::to_string(rows) + " tokens cannot be certain");
    for (const int32_t token : segment.tokens)
      if (token < 0 || token >= spec_.vocabulary)
        argument_error("forward", "token " + std::to_string(token) + " is outside the vocabulary of " +
                                      std::to_string(spec_.vocabulary));
    batch.rows += rows;
  }
  for (const Segment& segment : segments)
    segment.sequence->prepare(static_cast<int64_t>(segment.tokens.size()), certain_rows(segment));
  take_memory(batch);
  int64_t row = 0;
  for (const Segment& segment : segments) {
    const auto rows = static_cast<int64_t>(segment.tokens.size());
    const int64_t first = segment.sequence->length();
    if (rows > 0)
      set_positions(batch, {segment.sequence, row, rows, first, certain_rows(segment)}, segment.tokens, first);
    row += rows;
  }
  return batch;
}

void Forward::allow(const std::function<bool(int32_t)>& allowed) {
  std::vector<uint32_t> words(static_cast<size_t>((int64_t{spec_.vocabulary} + 31) / 32), 0);
  for (int32_t id = 0; id < spec_.vocabulary; ++id)
    if (allowed(id)) words[static_cast<size_t>(id / 32)] |= 1u << (id % 32);
  choices_ = SpaceMemory(arena_.space(), words.size() * sizeof(uint32_t));
  arena_.space().copy(choices_.data(), words.data(), words.size() * sizeof(uint32_t));
}

void Forward::run(std::span<const int32_t> tokens, Sequence& sequence, const Tensor& logits, const Tensor& tap) {
  const Segment segment{&sequence, tokens, logits, tap};
  run({&segment, 1});
}

void Forward::run(std::span<const Segment> segments) {
  const ArenaScope scope(arena_);
  results_.clear();
  const Batch batch = make_batch(segments);
  if (batch.rows == 0) return;
  send(batch);
  const ThreadAffinity placed = queue_.pool().place_caller();
  Pass pass(queue_, !options_.observe && queue_.profiler == nullptr);
  const Tensor x = arena_.f32({batch.rows, spec_.streams, spec_.hidden});  // the residual
  embedding(queue_, {batch.in.ids, weights_.table, x});
  observe("embedding", -1, x);
  for (int i = 0; i < spec_.trunk_layers(); ++i) {
    layer(static_cast<size_t>(i), batch, x);
    observe("hidden", i, x);
  }
  for (const Part& part : batch.parts) {
    HistoryRows& context = part.sequence->ngram_context;
    if (!context.empty())
      append_rows(queue_, context, make_tensor(part.of(batch.in.ids).data, DType::I32, {part.rows, 1}));
    part.sequence->advance(part.rows);
  }
  finish(batch, segments, x);
  pass.end();
  deliver();
}

void Forward::settle(Sequence& sequence) {
  for (LayerCaches& caches : sequence.layers)
    if (caches.delta.pending() > 0) caches.delta.prepare(0, 0);
  for (LayerCaches& caches : sequence.layers) {
    const ArenaScope scope(arena_);
    const int64_t rows = caches.delta.pending(), heads = spec_.delta.value_heads;
    if (rows == 0) continue;
    const Tensor conv = arena_.f32({rows, spec_.delta.channels()});
    const Tensor g = arena_.f32({rows, heads}), beta = arena_.f32({rows, heads});
    const SerialDelta pending{&caches.delta, {conv, g, beta}, 0, arena_.f32({rows, heads, spec_.delta.dv})};
    delta_serial({&pending, 1});
  }
}

// Streams [n, streams · H] to what the head reads.
void Forward::head_input(const Tensor& wide, const Tensor& out) {
  if (spec_.hyper())
    hyper_input(weights_.output_mixer, wide, out, {});
  else
    apply_norm(wide, weights_.output_norm, out);
}

// Taps, hidden states, and the logits that segments ask for: their rows go through the head together.
void Forward::finish(const Batch& batch, std::span<const Segment> segments, const Tensor& x) {
  const int64_t hidden = spec_.hidden, width = spec_.residual_width();
  const Tensor wide = make_f32(x.f32(), {batch.rows, width});
  int64_t row = 0, wanted = 0;
  for (const Segment& segment : segments) {
    const auto rows = static_cast<int64_t>(segment.tokens.size());
    if (!segment.tap.empty() && rows > 0) {
      const Tensor own = wide.slice(row, rows);
      const Tensor tap = result(segment.tap);
      if (spec_.hyper())
        copy_rows(queue_, own, tap);
      else
        apply_norm(own, weights_.output_norm, tap);
    }
    row += rows;
    if (!segment.hidden.empty())
      head_input(wide.slice(row - segment.hidden.extent(0), segment.hidden.extent(0)), result(segment.hidden));
    wanted += rows_wanted(segment);
  }
  if (wanted == 0) return;
  const Tensor last = arena_.f32({wanted, width}), final_hidden = arena_.f32({wanted, hidden});
  row = wanted = 0;
  for (const Segment& segment : segments) {
    row += static_cast<int64_t>(segment.tokens.size());
    const int64_t count = rows_wanted(segment);
    if (count == 0) continue;
    copy_rows(queue_, wide.slice(row - count, count), last.slice(wanted, count));
    wanted += count;
  }
  head_input(last, final_hidden);
  observe("final_hidden", -1, final_hidden);
  const bool alone = segments.size() == 1 && segments[0].greedy.empty();
  if (alone) return apply(weights_.head, final_hidden, result(segments[0].logits));
  const Tensor logits = arena_.f32({wanted, spec_.vocabulary});
  apply(weights_.head, final_hidden, logits);
  wanted = 0;
  for (const Segment& segment : segments) {
    const int64_t count = rows_wanted(segment);
    if (!segment.logits.empty()) results_.push_back({logits.slice(wanted, count), segment.logits});
    if (!segment.greedy.empty()) {
      const Tensor ids = arena_.i32({count, 1});
      const Tensor allowed = choices_.bytes() == 0
                                 ? Tensor{}
                                 : make_tensor(choices_.data(), DType::I32, {(int64_t{spec_.vocabulary} + 31) / 32});
      argmax(queue_, {logits.slice(wanted, count), allowed, ids});
      results_.push_back({ids, segment.greedy});
    }
    wanted += count;
  }
}

void Forward::draft(const Tensor& tap, std::span<const int32_t> tokens, int64_t first, Sequence& sequence,
                    const Tensor& logits, const Tensor& next_tap) {
  if (weights_.mtp.empty()) throw Error(ErrorKind::Model, "this model has no MTP block to draft with");
  const MtpWeights& w = weights_.mtp[0];
  const int64_t rows = static_cast<int64_t>(tokens.size()), hidden = spec_.hidden, streams = spec_.streams;
  check_tensor("draft", "tap", tap, DType::F32, {rows, spec_.residual_width()});
  if (rows == 0) return;
  if (rows > sequence.capacity() - sequence.mtp_length()) argument_error("draft", "the MTP cache is full");
  const ArenaScope scope(arena_);
  const ThreadAffinity placed = queue_.pool().place_caller();
  sequence.prepare_mtp(rows);
  Batch batch;
  batch.rows = rows;
  take_memory(batch);
  set_positions(batch, {&sequence, 0, rows, sequence.mtp_length(), rows}, tokens, first + 1);
  send(batch);
  results_.clear();
  Tensor taps = tap;
  if (!arena_.space().on_host()) {
    taps = arena_.f32({rows, spec_.residual_width()});
    arena_.space().copy(taps.data, tap.data, bytes_of(DType::F32, tap.elements()));
  }
  Pass pass(queue_, !options_.observe && queue_.profiler == nullptr);
  const Tensor embedded = arena_.f32({rows, 1, hidden}), normed = arena_.f32({rows, hidden});
  embedding(queue_, {batch.in.ids, w.table, embedded});
  apply_norm(make_f32(embedded.f32(), {rows, hidden}), w.embedding_norm, normed);
  const Tensor hidden_normed = arena_.f32({rows, spec_.residual_width()});
  const bool joint = spec_.hyper() && options_.mtp_hidden_norm == MtpHiddenNorm::Joint;
  apply_norm(taps, joint ? make_f32(w.hidden_norm.f32(), {spec_.residual_width()}) : w.hidden_norm, hidden_normed);
  // One merge per stream: [normed embedding ; normed stream].
  const Tensor pairs = arena_.f32({rows * streams, 2 * hidden});
  copy_rows(queue_, make_f32(hidden_normed.f32(), {rows * streams, hidden}), columns(pairs, hidden, hidden));
  for (int64_t stream = 0; stream < streams; ++stream) {
    Tensor own = columns(pairs, 0, hidden);  // of this stream in every row
    own.data = pairs.row<float>(stream);
    own.extents[0] = rows;
    own.strides[0] *= streams;
    copy_rows(queue_, normed, own);
  }
  const Tensor x = arena_.f32({rows, streams, hidden});
  apply(w.merge, pairs, make_f32(x.f32(), {rows * streams, hidden}));
  layer(static_cast<size_t>(spec_.trunk_layers()), batch, x);
  sequence.advance_mtp(rows);

  const Tensor wide = make_f32(x.f32(), {rows, spec_.residual_width()});
  const Tensor final_hidden = arena_.f32({rows, hidden});
  if (spec_.hyper())
    hyper_input(w.mixer, wide, final_hidden, {});
  else
    apply_norm(wide, w.head_norm, final_hidden);
  const Tensor& next = spec_.hyper() ? wide : final_hidden;
  if (!next_tap.empty()) copy_rows(queue_, next, result(next_tap));
  if (!logits.empty()) apply(w.head, final_hidden.slice(rows - logits.extent(0), logits.extent(0)), result(logits));
  pass.end();
  deliver();
}

void Forward::layer(size_t index, const Batch& batch, const Tensor& x) {
  const LayerSpec& spec = spec_.layers[index];
  const LayerWeights& w = weights_.layers[index];
  const int number = static_cast<int>(index);
  const ArenaScope scope(arena_);
  const Tensor wide = make_f32(x.f32(), {batch.rows, spec_.residual_width()});
  const Tensor u = arena_.f32({batch.rows, spec_.hidden}), out = arena_.f32({batch.rows, spec_.hidden});
  const Tensor inject = arena_.f32({batch.rows, spec_.streams});
  auto read = [&](const Tensor& plain_norm, const HyperWeights& hyper) {
    if (spec_.hyper())
      hyper_input(hyper, wide, u, inject);
    else
      apply_norm(wide, plain_norm, u);
  };
  auto write = [&] {
    if (spec_.hyper())
      hyper_write(queue_, {out, inject, x});
    else
      residual_add(queue_, wide, out);
  };
  if (spec.ngram >= 0) ngram(spec, w.ngram, batch, x, number);
  read(w.attention_norm, w.attention_hyper);
  if (spec.mixer == MixerKind::Attention)
    attend(index, w.attention, batch, u, out);
  else
    delta_net(index, w.delta, batch, u, out);
  observe("mixer_out", number, out);
  write();
  read(w.mlp_norm, w.mlp_hyper);
  if (spec.mlp == MlpKind::Experts)
    expert_mlp(w.experts, u, out, number);
  else
    dense_mlp(w.dense, u, out);
  observe("mlp_out", number, out);
  write();
}

void Forward::hyper_input(const HyperWeights& w, const Tensor& x, const Tensor& u, const Tensor& inject) {
  const ArenaScope scope(arena_);
  const int64_t rows = x.extent(0), streams = spec_.streams, width = spec_.residual_width();
  const float share = 1.0f / static_cast<float>(streams);
  const Tensor normed = arena_.f32({rows, width}), low = arena_.f32({rows, spec_.low_rank});
  const Tensor mix = arena_.f32({rows, width});
  apply_norm(x, w.norm, normed);
  apply(w.down, normed, low, share);
  gate_act(queue_, {grouped(low, 1), {}, Activation::Silu, false, grouped(low, 1)});
  apply(w.up, low, mix);
  hyper_read(queue_, {grouped(normed, streams), grouped(mix, streams), u});
  if (!inject.empty()) apply(w.inject, normed, inject, share);
}

}  // namespace strata
