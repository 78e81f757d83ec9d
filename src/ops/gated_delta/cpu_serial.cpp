#include <algorithm>
#include <cmath>
#include <memory>

#include "base/fault.h"
#include "ops/gated_delta/cpu.h"

namespace strata {
namespace {

constexpr int64_t kBlock = 256;  // rows normalised at a time

bool is_grouped(HeadMapping mapping) { return (mapping == HeadMapping::Grouped) != fault(Fault::WrongHeadMapping); }

int64_t floats(int64_t bytes) { return bytes / static_cast<int64_t>(sizeof(float)); }

// Columns of a slice side by side: in the state they are dv floats apart and would share few cache sets.
void serial_slice_packed(const SerialKernels& kernels, SerialSlice slice, float* packed) {
  float* const state = slice.state;
  const int64_t stride = slice.state_stride;
  if (slice.rows < kDeltaManyRows) return kernels.slice(slice);
  for (int64_t i = 0; i < slice.dk; ++i) std::copy_n(state + i * stride, slice.count, packed + i * slice.count);
  slice.state = packed;
  slice.state_stride = slice.count;
  kernels.slice(slice);
  for (int64_t i = 0; i < slice.dk; ++i) std::copy_n(packed + i * slice.count, slice.count, state + i * stride);
}

SerialSlice rows_of(SerialSlice slice, int64_t first, int64_t count) {
  slice.rows = count;
  slice.q += first * slice.key_stride;
  slice.k += first * slice.key_stride;
  slice.v += first * slice.v_stride;
  slice.decay += first * slice.decay_stride;
  slice.beta += first * slice.beta_stride;
  slice.out += first * slice.out_stride;
  return slice;
}

// The rows behind `stored` run on a copy of the columns that is thrown away.
void serial_slice_stored(const SerialKernels& kernels, const SerialSlice& slice, int64_t stored, float* packed) {
  if (stored > 0) serial_slice_packed(kernels, rows_of(slice, 0, stored), packed);
  if (stored == slice.rows) return;
  SerialSlice rest = rows_of(slice, stored, slice.rows - stored);
  for (int64_t i = 0; i < slice.dk; ++i)
    std::copy_n(slice.state + i * slice.state_stride, slice.count, packed + i * slice.count);
  rest.state = packed;
  rest.state_stride = slice.count;
  kernels.slice(rest);
}

// All heads, rows of one block.
void serial_block(Queue& queue, const GatedDeltaArgs& args, const SerialKernels& kernels, float* scratch) {
  const int64_t rows = args.q.extent(0), key_heads = args.q.extent(1), dk = args.q.extent(2);
  const int64_t value_heads = args.v.extent(1), dv = args.v.extent(2), stored = stored_rows(args);
  float *queries = scratch, *keys = queries + rows * key_heads * dk, *decays = keys + rows * key_heads * dk;
  normalise_rows(queue, args.q, query_factor(dk), kernels.normalise, queries, rows * dk, dk);
  normalise_rows(queue, args.k, 1, kernels.normalise, keys, rows * dk, dk);
  for (int64_t t = 0; t < rows; ++t) kernels.exp(args.g.row<const float>(t), value_heads, decays + t * value_heads);

  const int64_t width = rows < kDeltaManyRows ? kDeltaWideSlice : kDeltaSlice, slices = (dv + width - 1) / width;
  const int64_t grain = ThreadPool::grain_of(rows * dk * std::min(dv, width) / 4);
  queue.pool().run(value_heads * slices, grain, [&](int64_t begin, int64_t end, int) {
    const bool copies = rows >= kDeltaManyRows || stored < rows;
    const auto packed = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(copies ? dk * width : 0));
    for (int64_t item = begin; item < end; ++item) {
      const int64_t h = item / slices, first = item % slices * width;
      const int64_t key_head = key_head_of_arm(args.mapping, h, key_heads, value_heads);
      serial_slice_stored(kernels,
                          {.rows = rows,
                           .dk = dk,
                           .count = std::min(width, dv - first),
                           .state = args.state.row<float>(h) + first,
                           .state_stride = floats(args.state.stride(1)),
                           .q = queries + key_head * rows * dk,
                           .k = keys + key_head * rows * dk,
                           .key_stride = dk,
                           .v = args.v[0].row<const float>(h) + first,
                           .v_stride = floats(args.v.stride(0)),
                           .decay = decays + h,
                           .decay_stride = value_heads,
                           .beta = args.beta.row<const float>(0) + h,
                           .beta_stride = floats(args.beta.stride(0)),
                           .out = args.out[0].row<float>(h) + first,
                           .out_stride = floats(args.out.stride(0))},
                          stored, packed.get());
    }
  });
}

void run(Queue& queue, const GatedDeltaArgs& args, const SerialKernels& kernels) {
  const int64_t rows = args.q.extent(0), stored = stored_rows(args);
  // Rows behind the stored ones need the copy of the state that their block makes: they are one block.
  const int64_t tail = stored < rows ? stored / kBlock * kBlock : rows,
                block = std::max(std::min(rows, kBlock), rows - tail);
  const int64_t per_row = 2 * args.q.extent(1) * args.q.extent(2) + args.v.extent(1);
  const auto scratch = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(block * per_row));
  for (int64_t first = 0, count = 0; first < rows; first += count) {
    count = first < tail ? std::min(kBlock, tail - first) : rows - first;
    GatedDeltaArgs part = args;
    part.stored = std::clamp<int64_t>(stored - first, 0, count);
    for (Tensor GatedDeltaArgs::*tensor : {&GatedDeltaArgs::q, &GatedDeltaArgs::k, &GatedDeltaArgs::v,
                                           &GatedDeltaArgs::g, &GatedDeltaArgs::beta, &GatedDeltaArgs::out})
      part.*tensor = (args.*tensor).slice(first, count);
    serial_block(queue, part, kernels, scratch.get());
  }
}

}  // namespace

int64_t key_head_of_arm(HeadMapping mapping, int64_t head, int64_t key_heads, int64_t value_heads) {
  return is_grouped(mapping) ? head / (value_heads / key_heads) : head % key_heads;
}
int64_t value_head_of_arm(HeadMapping mapping, int64_t key_head, int64_t index, int64_t key_heads,
                          int64_t value_heads) {
  return is_grouped(mapping) ? key_head * (value_heads / key_heads) + index : key_head + index * key_heads;
}

float query_factor(int64_t dk) { return 1.0f / std::sqrt(static_cast<float>(dk)); }

void normalise_rows(Queue& queue, const Tensor& x, float factor, void (*normalise)(const NormaliseRow&), float* out,
                    int64_t head_stride, int64_t row_stride) {
  const int64_t rows = x.extent(0), heads = x.extent(1), dk = x.extent(2);
  queue.pool().run(rows * heads, ThreadPool::grain_of(dk / 4), [&](int64_t begin, int64_t end, int) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t h = item / rows, t = item % rows;
      normalise({x[t].row<const float>(h), dk, factor, out + h * head_stride + t * row_stride});
    }
  });
}

void gated_delta_avx2(Queue& queue, const GatedDeltaArgs& args) { run(queue, args, delta_serial_avx2()); }
void gated_delta_avx512(Queue& queue, const GatedDeltaArgs& args) { run(queue, args, delta_serial_avx512()); }

}  // namespace strata
