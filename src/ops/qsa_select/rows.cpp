// The selection of one row out of the passes of an arm: guess a threshold, keep the few scores above it, find the exact
// cut among them. A guess that keeps too few or too many costs time, never the result.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "base/fault.h"
#include "ops/qsa_select/kernels.h"
#include "ops/qsa_select/qsa_select.h"

namespace strata {
namespace {

constexpr uint32_t kLeastNumber = 0x007fffffu, kGreatest = 0xff800000u;     // keys of -inf and +inf
constexpr int64_t kMinSample = 512, kMaxSample = 4096, kSampledShare = 64;  // one score of 64 where that is between
constexpr int64_t kSlack = 16;                                              // the passes write whole vectors
// How far below the last step's threshold this step's is looked for: 6 to 12 % of the value, for which a few more
// candidates are kept.
constexpr uint32_t kGuessMargin = 1u << 20;

// The score with that key; keys that no score has give the nearest number below.
float score_of_key(uint32_t key) {
  key = std::clamp(key, kLeastNumber, kGreatest);
  return std::bit_cast<float>((key >> 31) != 0 ? key ^ 0x80000000u : ~key);
}

class RowSelector {
 public:
  RowSelector(const QsaSelectArgs& args, const QsaSelectKernels& kernels)
      : args_(args), kernels_(kernels), ratio_(args.ratio), budget_(args.budget / args.ratio) {
    // Scratch is for rows with more blocks than the budget; there are none when the scores are no wider.
    const int64_t most = std::min(budget_, args.scores.extent(1));
    kept_capacity_ = std::max(4 * most, kMaxSample);
    blocks_ = std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(kept_capacity_ + kSlack));
    chosen_ = std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(most + 1 + kSlack));
    reserve_keys(kept_capacity_);
  }

  void select(int64_t row) {
    const int64_t n_kv = args_.n_kv.as<int32_t>()[row], blocks = n_kv / ratio_, tail = n_kv % ratio_;
    int32_t* ids = args_.ids.row<int32_t>(row);
    int64_t count = 0;
    if (blocks <= budget_) {
      count = emit(ids, 0, n_kv);
    } else {
      // With cells left over for it, the next block in order is cut: it is the last one of the budget + 1 best.
      const int64_t extra = args_.semantics == QsaSemantics::FixedWidth ? ratio_ - 1 - tail : 0;
      const int64_t wanted = budget_ + (extra > 0 ? 1 : 0) - (fault(Fault::SelectOneShort) ? 1 : 0);
      count = emit_best(row, blocks, wanted, extra, ids);
      count += emit(ids + count, blocks * ratio_, tail);
    }
    args_.counts.as<int32_t>()[row] = static_cast<int32_t>(count);
    if (fault(Fault::WritePastSet) && count < args_.ids.extent(1)) ids[count] = static_cast<int32_t>(n_kv);
  }

 private:
  // Candidates: keys_[0 .. n - 1] in ascending order of block; blocks is null when they are all blocks.
  struct Candidates {
    int64_t n;
    const int32_t* blocks;
    uint32_t largest;
    uint32_t hint;  // near the cut
  };

  static int64_t emit(int32_t* ids, int64_t first_cell, int64_t cells) {
    for (int64_t i = 0; i < cells; ++i) ids[i] = static_cast<int32_t>(first_cell + i);
    return cells;
  }
  int64_t emit_blocks(int32_t* ids, const int32_t* blocks, int64_t number) const {
    for (int64_t i = 0; i < number; ++i)
      if (ratio_ == 4)
        emit(ids + 4 * i, int64_t{blocks[i]} * 4, 4);  // one vector
      else
        emit(ids + ratio_ * i, int64_t{blocks[i]} * ratio_, ratio_);
    return number * ratio_;
  }

  void reserve_keys(int64_t count) {
    if (count > key_capacity_) keys_ = std::make_unique_for_overwrite<uint32_t[]>(static_cast<size_t>(count + kSlack));
    key_capacity_ = std::max(key_capacity_, count);
  }

  // The largest key that at least `rank` of the keys reach; with `more`, any key that up to so many more reach will do.
  // `hint` is tried first, and the key above it: with many ties the cut is often just there.
  uint32_t key_of_rank(int64_t n, int64_t rank, int64_t more, uint32_t largest, uint32_t hint) const {
    uint32_t low = 0, high = largest;  // the answer is in low .. high
    for (uint32_t step = 0; low < high; ++step) {
      const uint32_t tried = hint + step;
      const bool try_it = step < 2 && tried > low && tried <= high;
      const uint32_t middle = try_it ? tried : low + (high - low) / 2 + 1;
      const int64_t reach = kernels_.count(keys_.get(), n, middle);
      if (reach >= rank && reach <= rank + more) return kernels_.smallest(keys_.get(), n, middle);
      if (reach > rank)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  // A score that about `wanted` of all are above, and with near certainty not fewer: the order statistic of an evenly
  // spaced sample, three standard deviations and a few beyond the expected one. 0: no such score.
  uint32_t sampled_pivot(const float* scores, int64_t n, int64_t wanted) {
    const int64_t size = std::clamp(n / kSampledShare, kMinSample, kMaxSample);
    const double expected = static_cast<double>(size) * static_cast<double>(wanted) / static_cast<double>(n);
    const auto rank = static_cast<int64_t>(expected + 3 * std::sqrt(expected) + 3);
    if (rank >= size || n < 2 * size) return 0;
    for (int64_t i = 0; i < size; ++i)
      blocks_[static_cast<size_t>(i)] = static_cast<int32_t>((2 * i + 1) * n / (2 * size));
    const uint32_t largest = kernels_.order(scores, blocks_.get(), size, keys_.get());
    return key_of_rank(size, rank, rank / 8, largest, 0x80000000u);
  }

  bool keep_from(const float* scores, int64_t n, int64_t wanted, uint32_t pivot, Candidates& result) {
    const int64_t kept = kernels_.compact(scores, n, score_of_key(pivot), kept_capacity_, blocks_.get());
    if (kept < wanted || kept > kept_capacity_) return false;
    result = {kept, blocks_.get(), kernels_.order(scores, blocks_.get(), kept, keys_.get()), pivot};
    return true;
  }

  Candidates candidates(const float* scores, int64_t n, int64_t wanted, uint32_t guess) {
    Candidates result{};
    if (guess >= kLeastNumber && guess <= kGreatest &&
        keep_from(scores, n, wanted, guess - std::min(kGuessMargin, guess - kLeastNumber), result))
      return result;
    const uint32_t pivot = sampled_pivot(scores, n, wanted);
    if (pivot >= kLeastNumber && keep_from(scores, n, wanted, pivot, result)) return result;
    reserve_keys(n);
    return {n, nullptr, kernels_.order(scores, nullptr, n, keys_.get()), std::max(pivot, kLeastNumber)};
  }

  int64_t emit_best(int64_t row, int64_t n, int64_t wanted, int64_t extra, int32_t* ids) {
    uint32_t* memory = args_.thresholds.empty() ? nullptr : args_.thresholds.as<uint32_t>() + row;
    const Candidates kept = candidates(args_.scores.row<const float>(row), n, wanted, memory == nullptr ? 0 : *memory);
    const uint32_t threshold = key_of_rank(kept.n, wanted, 0, kept.largest, kept.hint);
    const int64_t equal = wanted - kernels_.count(keys_.get(), kept.n, threshold + 1);
    kernels_.take(keys_.get(), kept.blocks, kept.n, threshold, equal, chosen_.get());
    if (memory != nullptr) *memory = threshold;
    if (extra == 0) return emit_blocks(ids, chosen_.get(), wanted);
    const int32_t cut = tie_number(kept, threshold, equal);
    const int64_t before = std::lower_bound(chosen_.get(), chosen_.get() + wanted, cut) - chosen_.get();
    int64_t count = emit_blocks(ids, chosen_.get(), before);
    count += emit(ids + count, int64_t{cut} * ratio_, extra);
    return count + emit_blocks(ids + count, chosen_.get() + before + 1, wanted - before - 1);
  }

  // The block of the candidate that is the number-th with that key.
  int32_t tie_number(const Candidates& kept, uint32_t key, int64_t number) const {
    for (int64_t i = 0; i < kept.n; ++i)
      if (keys_[static_cast<size_t>(i)] == key && --number == 0)
        return kept.blocks == nullptr ? static_cast<int32_t>(i) : kept.blocks[i];
    return -1;
  }

  const QsaSelectArgs& args_;
  const QsaSelectKernels& kernels_;
  const int64_t ratio_, budget_;
  int64_t kept_capacity_ = 0, key_capacity_ = 0;
  std::unique_ptr<int32_t[]> blocks_, chosen_;
  std::unique_ptr<uint32_t[]> keys_;
};

void select_rows(Queue& queue, const QsaSelectArgs& args, const QsaSelectKernels& kernels) {
  queue.pool().run(args.scores.extent(0), ThreadPool::grain_of(args.scores.extent(1)),
                   [&](int64_t begin, int64_t end, int) {
                     RowSelector selector(args, kernels);
                     for (int64_t row = begin; row < end; ++row) selector.select(row);
                   });
}

}  // namespace

void qsa_select_portable(Queue& queue, const QsaSelectArgs& args) { select_rows(queue, args, kQsaSelectPortable); }
void qsa_select_avx2(Queue& queue, const QsaSelectArgs& args) { select_rows(queue, args, kQsaSelectAvx2); }
void qsa_select_avx512(Queue& queue, const QsaSelectArgs& args) { select_rows(queue, args, kQsaSelectAvx512); }

}  // namespace strata
