// One block of threads for each row. The order keys of its scores lie in shared memory, or are made again in every pass
// where they do not fit. Three histograms, of 11, 11 and 10 bits of the key, find the key at the cut and how many of
// its ties are taken; the waves then share the blocks in ascending order, count, and write.
//
// Scores of 0, of which there may be many, are counted by ballots, and the histogram is kept in several copies: threads
// of a wave that add to one counter wait for each other.
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

// What the threads before this one have together. Two barriers; `scratch`: 32 words.
__device__ uint32_t block_before(uint32_t value, uint32_t* scratch) {
  const uint32_t prefix = wave_prefix(value);
  if (lane() == kWave - 1) scratch[wave_index()] = prefix;
  barrier();
  uint32_t before = 0;
  for (int w = 0; w < wave_index(); ++w) before += scratch[w];
  barrier();
  return before + prefix - value;
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
  for (int step = kWave / 2; step > 0; step /= 2) {
    above += shuffle_xor(above, step);
    ties += shuffle_xor(ties, step);
  }
  if (lane() == 0) {
    s.waves[wave_index()] = above;
    s.waves[32 + wave_index()] = ties;
  }
  barrier();
  above = ties = 0;
  for (int w = 0; w < wave_index(); ++w) {
    above += s.waves[w];
    ties += s.waves[32 + w];
  }
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

template <bool kKept>
__device__ void select_row(const QsaSelectKernel& a) {
  const Shared s = shared_of(a);
  const int64_t row = block_x();
  const float* scores = a.scores + row * a.score_row;
  int32_t* ids = a.ids + row * a.id_row;
  const int32_t cells = a.n_kv[row] < 0 ? 0 : a.n_kv[row];
  const int32_t n = cells / a.ratio < a.limit ? cells / a.ratio : a.limit, tail = cells % a.ratio;
  if (n <= a.budget) {
    const int32_t all = cells < a.capacity ? cells : a.capacity;
    for (int32_t i = thread(); i < all; i += threads()) ids[i] = i;
    if (thread() == 0) a.counts[row] = all;
    return;
  }
  // With cells left over for it, the next block in order is cut: it is the last one of the budget + 1 best.
  const auto extra = static_cast<uint32_t>(a.fixed_width != 0 ? a.ratio - 1 - tail : 0);
  uint32_t wanted = static_cast<uint32_t>(a.budget) + (extra > 0 ? 1 : 0);
  Digit digit{21, 11, 0};
  histogram<kKept, true>(a, s, digit, scores, n);
  digit = {10, 11, find_cut(a, s, digit, wanted)};
  histogram<kKept, false>(a, s, digit, scores, n);
  digit = {0, 10, find_cut(a, s, digit, wanted)};
  histogram<kKept, false>(a, s, digit, scores, n);
  const uint32_t threshold = find_cut(a, s, digit, wanted);
  emit<kKept>(s, {ids, a.ratio, a.capacity, wanted, extra}, threshold, scores, n);
  const int32_t count = a.budget * a.ratio + static_cast<int32_t>(extra);
  if (thread() < tail && count + thread() < a.capacity) ids[count + thread()] = n * a.ratio + thread();
  if (thread() != 0) return;
  a.counts[row] = count + tail < a.capacity ? count + tail : a.capacity;
  if (a.thresholds != nullptr) a.thresholds[row] = threshold;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024) qsa_select_kept(const QsaSelectKernel a) { select_row<true>(a); }
extern "C" __global__ void __launch_bounds__(1024) qsa_select_read(const QsaSelectKernel a) { select_row<false>(a); }
