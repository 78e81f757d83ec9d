// Arms of the chunk form: gated_delta_anchored, and the opt-in arms of gated_delta that start their chunks at the
// call's first row.
#include <algorithm>
#include <memory>

#include "ops/gated_delta/cpu.h"

namespace strata {
namespace {

constexpr int64_t kSlots = kDeltaChunk;
constexpr float kClears = -87.33654f;  // e^g counts as 0 below, as in exp_f32

int64_t floats(int64_t bytes) { return bytes / static_cast<int64_t>(sizeof(float)); }

template <class T>
using Scratch = std::unique_ptr<T[]>;

template <class T>
Scratch<T> scratch(size_t count) {
  return std::make_unique_for_overwrite<T[]>(count);
}

class ChunkRun {
 public:
  ChunkRun(Queue& queue, const GatedDeltaAnchoredArgs& args, const ChunkKernels& kernels)
      : queue_(queue), args_(args), kernels_(kernels) {
    const auto rows = static_cast<size_t>(std::min(args.q.extent(0), kSlots));
    const auto heads = static_cast<size_t>(value_heads_);
    queries_ = scratch<float>(rows * static_cast<size_t>(key_heads_ * dk_));
    prefix_ = scratch<double>(heads * kSlots);
    cleared_ = scratch<int64_t>(heads * kSlots);
    kk_ = scratch<float>(heads * rows * kSlots);
    qk_ = scratch<float>(heads * rows * kSlots);
    from_state_ = scratch<float>(heads * rows);
  }

  // Rows first .. first + count - 1 of the call, which lie in one chunk from `slot` on.
  void chunk(int64_t first, int64_t count, int64_t slot, bool fold) {
    first_ = first;
    count_ = count;
    slot_ = slot;
    keys();
    gates();
    coefficients();
    columns(fold);
  }

 private:
  // Normalised rows, the keys straight into the ring.
  void keys() {
    normalise_rows(queue_, args_.q.slice(first_, count_), query_factor(dk_), kernels_.normalise, queries_.get(),
                   count_ * dk_, dk_);
    normalise_rows(queue_, args_.k.slice(first_, count_), 1, kernels_.normalise,
                   args_.ring_k.f32() + slot_ * key_stride_, floats(args_.ring_k.stride(0)), key_stride_);
  }

  // Log decays into the ring, and their prefix from the chunk's start. A row that clears the state restarts it: a
  // difference across such a row would be infinite, or would have lost its low digits.
  void gates() {
    for (int64_t h = 0; h < value_heads_; ++h) {
      float* g = args_.ring_g.row<float>(h);
      for (int64_t t = 0; t < count_; ++t) g[slot_ + t] = args_.g.row<const float>(first_ + t)[h];
      double sum = 0;
      int64_t cleared = -1;
      for (int64_t s = 0; s < slot_ + count_; ++s) {
        const bool clears = g[s] < kClears;
        if (clears) cleared = s;
        sum = clears ? 0 : sum + static_cast<double>(g[s]);
        prefix_[at(h, s)] = sum;
        cleared_[at(h, s)] = cleared;
      }
    }
  }

  void coefficients() {
    const int64_t repeat = value_heads_ / key_heads_;
    const int64_t grain = ThreadPool::grain_of((slot_ + count_) * (dk_ / 4 + repeat * 4));
    queue_.pool().run(key_heads_ * count_, grain, [&](int64_t begin, int64_t end, int) {
      alignas(64) float kk[kSlots], qk[kSlots];
      for (int64_t item = begin; item < end; ++item) {
        const int64_t key_head = item / count_, t = item % count_;
        kernels_.products({slot_ + t, dk_, query(key_head, t), args_.ring_k.row<float>(key_head), key_stride_, kk, qk});
        for (int64_t index = 0; index < repeat; ++index) {
          const int64_t h = value_head_of_arm(args_.mapping, key_head, index, key_heads_, value_heads_);
          const auto own = static_cast<size_t>(h * count_ + t);
          kernels_.coefficients({slot_ + t, &prefix_[at(h, 0)], cleared_[at(h, slot_ + t)], kk, qk, &kk_[own * kSlots],
                                 &qk_[own * kSlots], &from_state_[own]});
        }
      }
    });
  }

  void columns(bool fold) {
    const int64_t width = count_ < kDeltaManyRows ? kDeltaWideSlice : kDeltaSlice, slices = (dv_ + width - 1) / width;
    const int64_t grain = ThreadPool::grain_of((2 * count_ + (fold ? kSlots : 0)) * dk_ * std::min(dv_, width) / 8);
    queue_.pool().run(value_heads_ * slices, grain, [&](int64_t begin, int64_t end, int) {
      const auto packed = scratch<float>(static_cast<size_t>(dk_ * width));
      for (int64_t item = begin; item < end; ++item)
        slice(item / slices, item % slices * width, width, count_ < kDeltaManyRows ? nullptr : packed.get(), fold);
    });
  }

  // Columns of a slice side by side: in the state they are dv floats apart and would share few cache sets.
  void slice(int64_t h, int64_t column, int64_t most, float* packed, bool fold) {
    const int64_t width = std::min(most, dv_ - column), state_stride = floats(args_.state.stride(1));
    const int64_t key_head = key_head_of_arm(args_.mapping, h, key_heads_, value_heads_);
    float* const state = args_.state.row<float>(h) + column;
    const float* const ring_k = args_.ring_k.row<float>(key_head);
    float* const u = args_.ring_u.row<float>(h) + column;
    const int64_t u_stride = floats(args_.ring_u.stride(1));
    if (packed != nullptr)
      for (int64_t i = 0; i < dk_; ++i) std::copy_n(state + i * state_stride, width, packed + i * width);
    const float* const from = packed != nullptr ? packed : state;
    const int64_t from_stride = packed != nullptr ? width : state_stride;
    const auto own = static_cast<size_t>(h * count_);
    kernels_.slice({.first = slot_,
                    .rows = count_,
                    .dk = dk_,
                    .count = width,
                    .state = from,
                    .state_stride = from_stride,
                    .q = query(key_head, 0),
                    .k = ring_k + slot_ * key_stride_,
                    .query_stride = dk_,
                    .key_stride = key_stride_,
                    .v = args_.v[first_].row<const float>(h) + column,
                    .v_stride = floats(args_.v.stride(0)),
                    .beta = args_.beta.row<const float>(first_) + h,
                    .beta_stride = floats(args_.beta.stride(0)),
                    .kk = &kk_[own * kSlots],
                    .qk = &qk_[own * kSlots],
                    .from_state = &from_state_[own],
                    .u = u,
                    .u_stride = u_stride,
                    .out = args_.out[first_].row<float>(h) + column,
                    .out_stride = floats(args_.out.stride(0))});
    if (!fold) return;
    const int64_t rows = slot_ + count_;
    kernels_.fold({rows, dk_, width, &prefix_[at(h, 0)], cleared_[at(h, rows - 1)], ring_k, key_stride_, u, u_stride,
                   from, from_stride, state, state_stride});
  }

  float* query(int64_t key_head, int64_t t) const { return queries_.get() + (key_head * count_ + t) * dk_; }
  static size_t at(int64_t h, int64_t slot) { return static_cast<size_t>(h * kSlots + slot); }

  Queue& queue_;
  const GatedDeltaAnchoredArgs& args_;
  const ChunkKernels& kernels_;
  const int64_t key_heads_ = args_.q.extent(1), dk_ = args_.q.extent(2);
  const int64_t value_heads_ = args_.v.extent(1), dv_ = args_.v.extent(2);
  const int64_t key_stride_ = floats(args_.ring_k.stride(1));
  int64_t first_ = 0, count_ = 0, slot_ = 0;
  Scratch<float> queries_;               // [key_heads, count, dk]
  Scratch<double> prefix_;               // [value_heads, 64]
  Scratch<int64_t> cleared_;             // [value_heads, 64]
  Scratch<float> kk_, qk_, from_state_;  // [value_heads, count, 64] twice, [value_heads, count]
};

// fold_rest: the last chunk goes into the state even where it is not full.
void run(Queue& queue, const GatedDeltaAnchoredArgs& args, const ChunkKernels& kernels, bool fold_rest) {
  const int64_t rows = args.q.extent(0);
  ChunkRun run(queue, args, kernels);
  for (int64_t first = 0; first < rows;) {
    const int64_t slot = (args.first + first) % kSlots, count = std::min(rows - first, kSlots - slot);
    run.chunk(first, count, slot, fold_rest || slot + count == kSlots);
    first += count;
  }
}

// Chunks from the call's first row on, with a ring of its own.
void run_wy(Queue& queue, const GatedDeltaArgs& args, const ChunkKernels& kernels) {
  const int64_t key_heads = args.q.extent(1), dk = args.q.extent(2), value_heads = args.v.extent(1);
  const int64_t dv = args.v.extent(2);
  const auto ring_k = scratch<float>(static_cast<size_t>(key_heads * dk * kSlots));
  const auto ring_u = scratch<float>(static_cast<size_t>(value_heads * kSlots * dv));
  const auto ring_g = scratch<float>(static_cast<size_t>(value_heads * kSlots));
  run(queue,
      {args.q, args.k, args.v, args.g, args.beta, args.mapping, 0, args.state,
       make_f32(ring_k.get(), {key_heads, kSlots, dk}), make_f32(ring_u.get(), {value_heads, kSlots, dv}),
       make_f32(ring_g.get(), {value_heads, kSlots}), args.out},
      kernels, true);
}

}  // namespace

void gated_delta_wy_portable(Queue& queue, const GatedDeltaArgs& args) { run_wy(queue, args, delta_chunk_portable()); }
void gated_delta_wy_avx2(Queue& queue, const GatedDeltaArgs& args) { run_wy(queue, args, delta_chunk_avx2()); }
void gated_delta_wy_avx512(Queue& queue, const GatedDeltaArgs& args) { run_wy(queue, args, delta_chunk_avx512()); }

void gated_delta_anchored_portable(Queue& queue, const GatedDeltaAnchoredArgs& args) {
  run(queue, args, delta_chunk_portable(), false);
}
void gated_delta_anchored_avx2(Queue& queue, const GatedDeltaAnchoredArgs& args) {
  run(queue, args, delta_chunk_avx2(), false);
}
void gated_delta_anchored_avx512(Queue& queue, const GatedDeltaAnchoredArgs& args) {
  run(queue, args, delta_chunk_avx512(), false);
}

}  // namespace strata
