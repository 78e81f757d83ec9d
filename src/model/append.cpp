#include "model/append.h"

#include "ops/store_rows/store_rows.h"

namespace strata {
namespace {

// [n, ...] as [n, elements of a row].
Tensor rows_of(const Tensor& x) {
  Tensor view = x;
  view.rank = 2;
  int64_t width = 1;
  for (int axis = 1; axis < x.rank; ++axis) width *= x.extent(axis);
  view.extents = {x.extent(0), width, 0, 0};
  view.strides = {x.stride(0), info(x.dtype).block_bytes, 0, 0};
  return view;
}

}  // namespace

void append_rows(Queue& queue, PagedRows& cache, const Tensor& rows) {
  if (rows.extent(0) == 0) return;
  const int64_t first = cache.length();
  cache.extend(rows.extent(0));
  store_rows(queue, {rows_of(rows), rows_of(cache.shape()), first, cache.pages()});
}

void append_rows(Queue& queue, HistoryRows& cache, const Tensor& rows) {
  if (rows.extent(0) == 0) return;
  const Tensor to = cache.extend(rows.extent(0));
  const int64_t kept = to.extent(0);
  store_rows(queue, {rows_of(rows).slice(rows.extent(0) - kept, kept), to});
}

void advance_pending(Queue& queue, DeltaState& state, int64_t rows, const DeltaState::Rows& uncertain) {
  const int64_t kept = uncertain.g.empty() ? 0 : uncertain.g.extent(0);
  const DeltaState::Rows own = state.advance_pending(rows, kept);
  if (kept == 0) return;
  copy_rows(queue, uncertain.conv, own.conv);
  copy_rows(queue, uncertain.g, own.g);
  copy_rows(queue, uncertain.beta, own.beta);
}

void copy_rows(Queue& queue, const Tensor& from, const Tensor& to) { store_rows(queue, {rows_of(from), rows_of(to)}); }

}  // namespace strata
