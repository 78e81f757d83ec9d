// One block of threads for each row. The order keys of its scores lie in shared memory, or are made again in every pass
// where they do not fit. Three histograms, of 11, 11 and 10 bits of the key, find the key at the cut and how many of
// its ties are taken; the waves then share the blocks in ascending order, count, and write.
//
// Scores of 0, of which there may be many, are counted by ballots, and where all keys of a row are counted the
// histogram is kept in several copies: threads of a wave that add to one counter wait for each other.
#include "device/kernel.h"
#include "ops/qsa_select/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr uint32_t kZero = 0x80000000u;  // the key of 0
constexpr int kAhead = 8;                // loads that a thread has under way

struct Shared {
  uint32_t* bins;   // [copies, kSelectBins]
  uint32_t* waves;  // [2, 32]
  uint32_t* cut;    // bin of the cut, what is still to be taken from it
  uint32_t* keys;
};

__device__ Shared shared_of(const QsaSelectKernel& a) {
  auto* bins = reinterpret_cast<uint32_t*>(shared_memory());
  uint32_t* waves = bins + a.copies * kSelectBins;
  return {bins, waves, waves + 64, waves + 68};
}

__device__ uint32_t order_key(float score) {
  const uint32_t bits = bits_of_f32(score + 0.0f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0;
  return (bits >> 31) != 0 ? ~bits : bits ^ kZero;
}

// Adds to the histogram the keys that agree with `prefix` above bit shift + width.
struct Digit {
  int shift, width;
  uint32_t prefix;
};

__device__ void add_key(const QsaSelectKernel& a, const Shared& s, const Digit& digit, bool there, uint32_t key,
                        uint32_t& zeros) {
  const int above = digit.shift + digit.width;
  const bool counts = there && (above == 32 || key >> above == digit.prefix);
  zeros += static_cast<uint32_t>(popcount(gpu::ballot(counts && key == kZero)));
  if (!counts || key == kZero) return;
  const uint32_t bin = key >> digit.shift & ((1u << digit.width) - 1);
  atomic_add(s.bins + (lane() & (a.copies - 1)) * kSelectBins + bin, 1);
}

// One pass over the keys. The first of kept ones makes them from the scores.
template <bool kKept, bool kFirst>
__device__ void histogram(const QsaSelectKernel& a, const Shared& s, const Digit& digit, const float* scores, int n) {
  for (int i = thread(); i < a.copies * kSelectBins; i += threads()) s.bins[i] = 0;
  barrier();
  uint32_t zeros = 0;
  for (int first = 0; first < n; first += kAhead * threads()) {
    uint32_t keys[kAhead];
    STRATA_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      const int i = first + j * threads() + thread();
      keys[j] = 0;
      if (i < n) keys[j] = kKept && !kFirst ? s.keys[i] : order_key(scores[i]);
    }
    STRATA_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      if (first + j * threads() >= n) break;
      const int i = first + j * threads() + thread();
      if (kKept && kFirst && i < n) s.keys[i] = keys[j];
      add_key(a, s, digit, i < n, keys[j], zeros);
    }
  }
  if (lane() == 0 && zeros > 0) atomic_add(s.bins + (kZero >> digit.shift & ((1u << digit.width) - 1)), zeros);
  barrier();
}

__device__ uint32_t wave_prefix(uint32_t value) {  // of the lanes up to this one
  for (int step = 1; step < kWave; step *= 2) {
    const uint32_t below = shuffle_up(value, step);
    if (lane() >= step) value += below;
  }
  return value;
}

__device__ uint32_t sum_of_wave(uint32_t value) {
  for (int step = kWave / 2; step > 0; step /= 2) value += shuffle_xor(value, step);
  return value;
}

// What the waves before this one have together, of a word each.
__device__ uint32_t waves_before(const uint32_t* words) {
  return sum_of_wave(lane() < wave_index() ? words[lane()] : 0);
}

// What the threads before this one have together. `scratch`: 32 words, which other waves may still read afterwards:
// before they are written again comes a barrier.
__device__ uint32_t block_before(uint32_t value, uint32_t* scratch) {
  const uint32_t prefix = wave_prefix(value);
  if (lane() == kWave - 1) scratch[wave_index()] = prefix;
  barrier();
  return waves_before(scratch) + prefix - value;
}

// Narrows `wanted` keys from the top down to a bin of the histogram: appends it to the prefix.
__device__ uint32_t find_cut(const QsaSelectKernel& a, const Shared& s, const Digit& digit, uint32_t& wanted) {
  const int each = kSelectBins / threads(), top = kSelectBins - 1 - thread() * each;
  uint32_t sum = 0;
  for (int b = 0; b < each; ++b)
    for (int c = 0; c < a.copies; ++c) sum += s.bins[c * kSelectBins + top - b];
  const uint32_t before = block_before(sum, s.waves);
  if (before < wanted && wanted <= before + sum) {
    uint32_t left = wanted - before;
    for (int b = 0; b < each; ++b) {
      uint32_t count = 0;
      for (int c = 0; c < a.copies; ++c) count += s.bins[c * kSelectBins + top - b];
      if (left <= count) {
        s.cut[0] = static_cast<uint32_t>(top - b);
        s.cut[1] = left;
        break;
      }
      left -= count;
    }
  }
  barrier();
  wanted = s.cut[1];
  return digit.prefix << digit.width | s.cut[0];
}

// Where the cells of a row's blocks go.
struct Cells {
  int32_t* ids;
  int32_t ratio, capacity;
  uint32_t ties;   // how many at the cut are taken
  uint32_t extra;  // cells of the last of them; 0: all
};

__device__ void write_cells(const Cells& c, int block, uint32_t rank, uint32_t ties_before, bool tie) {
  const bool cut = c.extra != 0 && tie && ties_before == c.ties - 1;
  const bool behind = c.extra != 0 && ties_before >= c.ties;
  const auto whole = static_cast<uint32_t>(c.ratio);
  const uint32_t at = rank * whole - (behind ? whole - c.extra : 0), cells = cut ? c.extra : whole;
  for (uint32_t i = 0; i < cells && at + i < static_cast<uint32_t>(c.capacity); ++i)
    c.ids[at + i] = block * c.ratio + static_cast<int32_t>(i);
}

// The blocks above the threshold and the first ties at it, ascending.
template <bool kKept>
__device__ void emit(const Shared& s, const Cells& c, uint32_t threshold, const float* scores, int n) {
  const int waves = threads() / kWave, share = ((n + waves - 1) / waves + kWave - 1) / kWave * kWave;
  const int begin = wave_index() * share, end = begin + share < n ? begin + share : n;
  auto key_at = [&](int i) { return kKept ? s.keys[i] : order_key(scores[i]); };
  uint32_t above = 0, ties = 0;
  for (int i = begin + lane(); i < end; i += kWave) {
    const uint32_t key = key_at(i);
    above += key > threshold;
    ties += key == threshold;
  }
  above = sum_of_wave(above);
  ties = sum_of_wave(ties);
  if (lane() == 0) {
    s.waves[wave_index()] = above;
    s.waves[32 + wave_index()] = ties;
  }
  barrier();
  above = waves_before(s.waves);
  ties = waves_before(s.waves + 32);
  uint32_t rank = above + (ties < c.ties ? ties : c.ties);
  const uint32_t lower = (1u << lane()) - 1;
  for (int first = begin; first < end; first += kWave) {
    const int i = first + lane();
    const uint32_t key = i < end ? key_at(i) : 0;
    const bool tie = i < end && key == threshold;
    const uint32_t all_ties = gpu::ballot(tie);
    const uint32_t ties_before = ties + static_cast<uint32_t>(popcount(all_ties & lower));
    const bool chosen = (i < end && key > threshold) || (tie && ties_before < c.ties);
    const uint32_t all = gpu::ballot(chosen);
    if (chosen) write_cells(c, i, rank + static_cast<uint32_t>(popcount(all & lower)), ties_before, tie);
    rank += static_cast<uint32_t>(popcount(all));
    ties += static_cast<uint32_t>(popcount(all_ties));
  }
}

struct Row {
  const float* scores;
  int32_t* ids;
  int32_t n, cells, tail;
  uint32_t extra;  // cells of the next block in order: it is the last one of the budget + 1 best then
};

__device__ Row row_of(const QsaSelectKernel& a) {
  const int64_t row = block_x();
  const int32_t cells = a.n_kv[row] < 0 ? 0 : a.n_kv[row], blocks = cells / a.ratio, tail = cells - blocks * a.ratio;
  return {a.scores + row * a.score_row,
          a.ids + row * a.id_row,
          blocks < a.limit ? blocks : a.limit,
          cells,
          tail,
          static_cast<uint32_t>(a.fixed_width != 0 ? a.ratio - 1 - tail : 0)};
}

__device__ void take_all(const QsaSelectKernel& a, const Row& row) {
  const int32_t all = row.cells < a.capacity ? row.cells : a.capacity;
  for (int32_t i = thread(); i < all; i += threads()) row.ids[i] = i;
  if (thread() == 0) a.counts[block_x()] = all;
}

__device__ uint32_t blocks_wanted(const QsaSelectKernel& a, const Row& row) {
  return static_cast<uint32_t>(a.budget) + (row.extra > 0 ? 1 : 0);
}

// The tail, the count and the threshold.
__device__ void finish(const QsaSelectKernel& a, const Row& row, uint32_t threshold) {
  const int32_t count = a.budget * a.ratio + static_cast<int32_t>(row.extra);
  if (thread() < row.tail && count + thread() < a.capacity) row.ids[count + thread()] = row.n * a.ratio + thread();
  if (thread() != 0) return;
  a.counts[block_x()] = count + row.tail < a.capacity ? count + row.tail : a.capacity;
  if (a.thresholds != nullptr) a.thresholds[block_x()] = threshold;
}

// The key at the cut of n keys, of which `wanted` are taken; how many of its ties.
template <bool kKept, bool kFirst>
__device__ uint32_t find_threshold(const QsaSelectKernel& a, const Shared& s, const float* scores, int n,
                                   uint32_t& wanted) {
  Digit digit{21, 11, 0};
  histogram<kKept, kFirst>(a, s, digit, scores, n);
  digit = {10, 11, find_cut(a, s, digit, wanted)};
  histogram<kKept, false>(a, s, digit, scores, n);
  digit = {0, 10, find_cut(a, s, digit, wanted)};
  histogram<kKept, false>(a, s, digit, scores, n);
  return find_cut(a, s, digit, wanted);
}

template <bool kKept>
__device__ void select_row(const QsaSelectKernel& a, const Row& row) {
  const Shared s = shared_of(a);
  uint32_t wanted = blocks_wanted(a, row);
  const uint32_t threshold = find_threshold<kKept, true>(a, s, row.scores, row.n, wanted);
  emit<kKept>(s, {row.ids, a.ratio, a.capacity, wanted, row.extra}, threshold, row.scores, row.n);
  finish(a, row, threshold);
}

// The sieve. The keys of a row are dealt to the threads, and each thread's largest is found: as many keys as are wanted
// are no smaller than the wanted-th of these, so only keys from there on are looked at again.
__device__ uint32_t lower_bound(const QsaSelectKernel& a, const Shared& s, uint32_t largest, uint32_t wanted) {
  uint32_t prefix = 0;
  STRATA_UNROLL
  for (int pass = 0; pass < 2; ++pass) {
    const Digit digit{21 - 11 * pass, 11, prefix};
    for (int i = thread(); i < a.copies * kSelectBins; i += threads()) s.bins[i] = 0;
    barrier();
    if (pass == 0 || largest >> 21 == prefix)
      atomic_add(s.bins + (lane() & (a.copies - 1)) * kSelectBins + (largest >> digit.shift & (kSelectBins - 1)), 1);
    barrier();
    prefix = find_cut(a, s, digit, wanted);
  }
  return prefix << 10;
}

// Bits of chosen blocks and of ties, a word for 32 blocks, become cells, ascending.
__device__ void emit_words(const Shared& s, const Cells& c, const uint32_t* above, const uint32_t* ties, int words) {
  const int each = (words + threads() - 1) / threads(), begin = thread() * each;
  const int end = begin + each < words ? begin + each : words;
  uint32_t count = 0;  // above, and ties in the upper half: both are kept ones, fewer than 2^16
  for (int w = begin; w < end; ++w)
    count += static_cast<uint32_t>(popcount(above[w])) | static_cast<uint32_t>(popcount(ties[w])) << 16;
  const uint32_t before = block_before(count, s.waves);
  uint32_t chosen = before & 0xffffu, ties_before = before >> 16;
  for (int w = begin; w < end; ++w)
    for (uint32_t left = above[w] | ties[w]; left != 0; left &= left - 1) {
      const uint32_t bit = left & (~left + 1);
      const bool tie = (ties[w] & bit) != 0;
      const uint32_t taken = ties_before < c.ties ? ties_before : c.ties;
      if (!tie || ties_before < c.ties) write_cells(c, w * 32 + popcount(bit - 1), chosen + taken, ties_before, tie);
      chosen += tie ? 0 : 1;
      ties_before += tie ? 1 : 0;
    }
}

// The first kKept · kAhead keys of a thread stay in registers, the others are read twice.
template <int kKept>
__device__ void sieve_row(const QsaSelectKernel& a, int n, uint32_t wanted, const float* scores) {
  const Shared s = shared_of(a);
  auto* places = reinterpret_cast<int32_t*>(s.keys + kSelectKept);
  auto* above = reinterpret_cast<uint32_t*>(places + kSelectKept);
  const int words = (n + 31) / 32;
  uint32_t* ties = above + words;
  uint32_t keys[kKept][kAhead], largest = 0;
  auto load = [&](int first, uint32_t(&some)[kAhead]) {
    STRATA_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      const int i = first + j * threads() + thread();
      some[j] = i < n ? bits_of_f32(scores[i]) : 0x7fc00000u;  // a NaN: the smallest key
    }
    for (uint32_t& bits : some) bits = order_key(f32_of_bits(bits));
  };
  auto raise = [&](const uint32_t(&some)[kAhead]) {
    for (const uint32_t key : some) largest = key > largest ? key : largest;
  };
  const int step = kAhead * threads();
  STRATA_UNROLL
  for (int k = 0; k < kKept; ++k) load(k * step, keys[k]);
  if (thread() == 0) s.cut[2] = 0;
  for (int w = thread(); w < 2 * words; w += threads()) above[w] = 0;
  STRATA_UNROLL
  for (int k = 0; k < kKept; ++k) raise(keys[k]);
  for (int first = kKept * step; first < n; first += step) {
    uint32_t more[kAhead];
    load(first, more);
    raise(more);
  }
  const uint32_t least = lower_bound(a, s, largest, wanted);
  auto keep = [&](int first, const uint32_t(&some)[kAhead]) {
    const auto end = static_cast<int>(computed_again(n));
    STRATA_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      const int i = first + j * threads() + thread();
      if (some[j] < least || i >= end) continue;
      const uint32_t at = atomic_add(s.cut + 2, 1);  // in any order: keys are counted, and marked by their place
      if (at >= kSelectKept) continue;
      s.keys[at] = some[j];
      places[at] = i;
    }
  };
  STRATA_UNROLL
  for (int k = 0; k < kKept; ++k) keep(k * step, keys[k]);
  for (int first = kKept * step; first < n; first += step) {
    uint32_t more[kAhead];
    load(first, more);
    keep(first, more);
  }
  barrier();
  const uint32_t kept = s.cut[2];
  if (kept > kSelectKept) return select_row<false>(a, row_of(a));
  const uint32_t threshold = find_threshold<true, false>(a, s, nullptr, static_cast<int>(kept), wanted);
  for (int i = thread(); i < static_cast<int>(kept); i += threads()) {
    const uint32_t key = s.keys[i], bit = 1u << (places[i] & 31);
    if (key >= threshold) atomic_add((key > threshold ? above : ties) + places[i] / 32, bit);
  }
  barrier();
  const Row row = row_of(a);  // once more: the keys need the registers
  emit_words(s, {row.ids, a.ratio, a.capacity, wanted, row.extra}, above, ties, words);
  finish(a, row, threshold);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024) qsa_select_kept(const QsaSelectKernel a) {
  const Row row = row_of(a);
  row.n <= a.budget ? take_all(a, row) : select_row<true>(a, row);
}
extern "C" __global__ void __launch_bounds__(1024) qsa_select_read(const QsaSelectKernel a) {
  const Row row = row_of(a);
  row.n <= a.budget ? take_all(a, row) : select_row<false>(a, row);
}
extern "C" __global__ void __launch_bounds__(1024) qsa_select_sieve_8(const QsaSelectKernel a) {
  const Row row = row_of(a);
  row.n <= a.budget ? take_all(a, row) : sieve_row<1>(a, row.n, blocks_wanted(a, row), row.scores);
}
extern "C" __global__ void __launch_bounds__(1024) qsa_select_sieve_32(const QsaSelectKernel a) {
  const Row row = row_of(a);
  row.n <= a.budget ? take_all(a, row) : sieve_row<4>(a, row.n, blocks_wanted(a, row), row.scores);
}
