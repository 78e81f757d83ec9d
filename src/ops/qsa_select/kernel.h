// The passes of the SIMD arms, compiled once per instruction set. All are exact: there is nothing to round.
#pragma once

#include "base/fault.h"
#include "ops/qsa_select/kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define STRATA_PASS [[maybe_unused, gnu::always_inline]] static inline

namespace strata {
namespace {

// A vector of kLanes 32-bit lanes in three forms. Masks have one bit a lane.
#if defined(__AVX512F__)

constexpr int kLanes = 16;
using Vector = __m512i;
STRATA_PASS Vector load(const void* p) { return _mm512_loadu_si512(p); }
STRATA_PASS void store(void* p, Vector v) { _mm512_storeu_si512(p, v); }
STRATA_PASS Vector all_lanes(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
STRATA_PASS Vector lane_numbers() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
STRATA_PASS Vector add(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
STRATA_PASS uint32_t at_least(Vector scores, float least) {
  return _mm512_cmp_ps_mask(_mm512_castsi512_ps(scores), _mm512_set1_ps(least), _CMP_GE_OQ);
}
STRATA_PASS uint32_t reach(Vector keys, Vector least) { return _mm512_cmpge_epu32_mask(keys, least); }
STRATA_PASS uint32_t equals(Vector a, Vector b) { return _mm512_cmpeq_epi32_mask(a, b); }
STRATA_PASS Vector larger(Vector a, Vector b) { return _mm512_max_epu32(a, b); }
STRATA_PASS Vector smaller(Vector a, Vector b) { return _mm512_min_epu32(a, b); }
// The lanes of the mask moved together. In a register: a compressing store is far slower on some processors.
STRATA_PASS Vector pack_lanes(Vector v, uint32_t mask) {
  return _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), v);
}
STRATA_PASS void store_four(void* p, Vector v) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_castsi512_si128(v));
}
STRATA_PASS Vector keys_of(Vector scores) {
  const __m512 y = _mm512_add_ps(_mm512_castsi512_ps(scores), _mm512_setzero_ps());
  const __m512i bits = _mm512_castps_si512(y);
  const __m512i flip = _mm512_or_si512(_mm512_srai_epi32(bits, 31), all_lanes(0x80000000u));
  return _mm512_maskz_xor_epi32(_mm512_cmp_ps_mask(y, y, _CMP_ORD_Q), bits, flip);
}

#elif defined(__AVX2__)

constexpr int kLanes = 8;
using Vector = __m256i;
STRATA_PASS Vector load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
STRATA_PASS void store(void* p, Vector v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
STRATA_PASS Vector all_lanes(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
STRATA_PASS Vector lane_numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
STRATA_PASS Vector add(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
STRATA_PASS uint32_t bits_of(__m256 lanes) { return static_cast<uint32_t>(_mm256_movemask_ps(lanes)); }
STRATA_PASS uint32_t at_least(Vector scores, float least) {
  return bits_of(_mm256_cmp_ps(_mm256_castsi256_ps(scores), _mm256_set1_ps(least), _CMP_GE_OQ));
}
STRATA_PASS Vector larger(Vector a, Vector b) { return _mm256_max_epu32(a, b); }
STRATA_PASS Vector smaller(Vector a, Vector b) { return _mm256_min_epu32(a, b); }
STRATA_PASS uint32_t equals(Vector a, Vector b) { return bits_of(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))); }
STRATA_PASS uint32_t reach(Vector keys, Vector least) { return equals(larger(keys, least), keys); }
// The order of lanes that moves those of a mask together, one byte a lane.
struct Orders {
  alignas(8) uint8_t lane[256][8];
};
constexpr Orders make_orders() {
  Orders orders{};
  for (int mask = 0; mask < 256; ++mask)
    for (int lane = 0, next = 0; lane < 8; ++lane)
      if ((mask >> lane & 1) != 0) orders.lane[mask][next++] = static_cast<uint8_t>(lane);
  return orders;
}
constexpr Orders kOrders = make_orders();
STRATA_PASS Vector pack_lanes(Vector v, uint32_t mask) {
  const __m128i order = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kOrders.lane[mask]));
  return _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(order));
}
STRATA_PASS void store_four(void* p, Vector v) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_castsi256_si128(v));
}
STRATA_PASS Vector keys_of(Vector scores) {
  const __m256 y = _mm256_add_ps(_mm256_castsi256_ps(scores), _mm256_setzero_ps());
  const __m256i bits = _mm256_castps_si256(y);
  const __m256i flip = _mm256_or_si256(_mm256_srai_epi32(bits, 31), all_lanes(0x80000000u));
  const __m256i ordered = _mm256_castps_si256(_mm256_cmp_ps(y, y, _CMP_ORD_Q));
  return _mm256_and_si256(_mm256_xor_si256(bits, flip), ordered);
}

#else

constexpr int kLanes = 1;
using Vector = uint32_t;
STRATA_PASS Vector load(const void* p) {
  Vector v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
STRATA_PASS void store(void* p, Vector v) { __builtin_memcpy(p, &v, sizeof v); }
STRATA_PASS Vector all_lanes(uint32_t x) { return x; }
STRATA_PASS Vector lane_numbers() { return 0; }
STRATA_PASS Vector add(Vector a, Vector b) { return a + b; }
STRATA_PASS float as_score(Vector bits) {
  float score;
  __builtin_memcpy(&score, &bits, sizeof score);
  return score;
}
STRATA_PASS uint32_t at_least(Vector scores, float least) { return as_score(scores) >= least; }
STRATA_PASS uint32_t reach(Vector keys, Vector least) { return keys >= least; }
STRATA_PASS uint32_t equals(Vector a, Vector b) { return a == b; }
STRATA_PASS Vector larger(Vector a, Vector b) { return a > b ? a : b; }
STRATA_PASS Vector smaller(Vector a, Vector b) { return a < b ? a : b; }
STRATA_PASS Vector pack_lanes(Vector v, uint32_t) { return v; }
STRATA_PASS void store_four(void* p, Vector v) { store(p, v); }
STRATA_PASS Vector keys_of(Vector scores) {
  const float y = as_score(scores) + 0.0f;
  uint32_t bits;
  __builtin_memcpy(&bits, &y, sizeof bits);
  return y != y ? 0 : ((bits >> 31) != 0 ? ~bits : bits ^ 0x80000000u);
}

#endif

STRATA_PASS int64_t ones(uint32_t mask) { return __builtin_popcount(mask); }
STRATA_PASS uint32_t first_ones(int64_t n) { return n >= 32 ? ~0u : (1u << n) - 1; }

// Up to kLanes scores one by one: those of given blocks, or the last, ragged ones of a row. NaN where there are none.
STRATA_PASS Vector load_each(const float* scores, const int32_t* blocks, int64_t n) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = i < n ? scores[blocks == nullptr ? i : blocks[i]] : __builtin_nanf("");
  return load(lanes);
}

int64_t compact(const float* scores, int64_t n, float least, int64_t capacity, int32_t* blocks) {
  Vector numbers = lane_numbers();
  const Vector step = all_lanes(kLanes);
  int64_t found = 0;
  for (int64_t b = 0; b < n && found <= capacity; b += kLanes) {
    const bool whole = b + kLanes <= n;
    if (!whole && fault(Fault::SkipTail)) break;
    const uint32_t mask = at_least(whole ? load(scores + b) : load_each(scores + b, nullptr, n - b), least);
    const Vector kept = pack_lanes(numbers, mask);
    const int64_t more = ones(mask);
    if (more <= 4)  // nearly always: a whole vector would cross a cache line at almost every step
      store_four(blocks + found, kept);
    else
      store(blocks + found, kept);
    found += more;
    numbers = add(numbers, step);
  }
  return found > capacity ? capacity + 1 : found;
}

uint32_t order(const float* scores, const int32_t* blocks, int64_t n, uint32_t* keys) {
  Vector largest = all_lanes(0);
  for (int64_t i = 0; i < n; i += kLanes) {
    const bool whole = i + kLanes <= n;
    Vector v;
    if (blocks != nullptr)
      v = whole ? load_each(scores, blocks + i, kLanes) : load_each(scores, blocks + i, n - i);
    else
      v = whole ? load(scores + i) : load_each(scores + i, nullptr, n - i);
    v = keys_of(v);
    store(keys + i, v);
    largest = larger(largest, v);
  }
  uint32_t lanes[kLanes], result = 0;
  store(lanes, largest);
  for (uint32_t lane : lanes) result = lane > result ? lane : result;
  return result;
}

int64_t count(const uint32_t* keys, int64_t n, uint32_t least) {
  const Vector bar = all_lanes(least);
  int64_t found = 0, i = 0;
  for (; i + kLanes <= n; i += kLanes) found += ones(reach(load(keys + i), bar));
  for (; i < n; ++i) found += keys[i] >= least;
  return found;
}

uint32_t smallest(const uint32_t* keys, int64_t n, uint32_t least) {
  // Keys below `least` wrap around to the top.
  const Vector shift = all_lanes(0u - least);
  Vector best = all_lanes(~0u - least);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) best = smaller(best, add(load(keys + i), shift));
  uint32_t lanes[kLanes], result = ~0u - least;
  store(lanes, best);
  for (uint32_t lane : lanes) result = lane < result ? lane : result;
  for (; i < n; ++i) result = keys[i] - least < result ? keys[i] - least : result;
  return result + least;
}

void take(const uint32_t* keys, const int32_t* blocks, int64_t n, uint32_t threshold, int64_t equal, int32_t* out) {
  const Vector bar = all_lanes(threshold), step = all_lanes(kLanes);
  Vector numbers = lane_numbers();
  for (int64_t i = 0; i < n; i += kLanes) {
    const uint32_t valid = first_ones(n - i < kLanes ? n - i : kLanes);
    const Vector v = load(keys + i);  // whole vectors: the array has room for one more
    uint32_t ties = equals(v, bar) & valid;
    if (equal == 0) ties = 0;
    for (; ones(ties) > equal; ties &= ~(1u << (31 - __builtin_clz(ties)))) {
    }
    equal -= ones(ties);
    const uint32_t mask = ((reach(v, bar) & ~equals(v, bar)) & valid) | ties;
    store(out, pack_lanes(blocks == nullptr ? numbers : load(blocks + i), mask));
    out += ones(mask);
    numbers = add(numbers, step);
  }
}

}  // namespace
}  // namespace strata
