// Rows enter a sequence's caches.
#pragma once

#include "cache/delta_state.h"
#include "cache/history_rows.h"
#include "cache/paged_rows.h"
#include "device/device.h"

namespace strata {

// [n, ...] with contiguous rows, f32 (a history of i32 takes i32): converted to the cache's type.
void append_rows(Queue& queue, PagedRows& cache, const Tensor& rows);
void append_rows(Queue& queue, HistoryRows& cache, const Tensor& rows);
// A serial state has every row so far and those of `rows` more but the last ones, whose inputs it keeps.
void advance_pending(Queue& queue, DeltaState& state, int64_t rows, const DeltaState::Rows& uncertain);
// The values of one tensor into another of the same size: f32 or i32, rows may be strided.
void copy_rows(Queue& queue, const Tensor& from, const Tensor& to);

}  // namespace strata
