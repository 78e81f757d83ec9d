#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "ops/qsa_select/qsa_select.h"

namespace strata {

uint32_t qsa_order_key(float score) {
  if (score != score) return 0;
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits ^ 0x80000000u;
}

namespace {

// The blocks that win: keys above the threshold, then keys equal to it by ascending index. `partial` leading cells of
// the next equal block follow under the fixed width.
struct Cut {
  uint32_t threshold = 0;
  int64_t equal_blocks = 0;  // blocks with the threshold key that are taken whole
};

Cut find_cut(const std::vector<uint32_t>& keys, std::vector<uint32_t>& scratch, int64_t taken) {
  scratch = keys;
  std::nth_element(scratch.begin(), scratch.begin() + (taken - 1), scratch.end(), std::greater<>());
  Cut cut;
  cut.threshold = scratch[static_cast<size_t>(taken - 1)];
  const auto above = std::count_if(keys.begin(), keys.end(), [&](uint32_t key) { return key > cut.threshold; });
  cut.equal_blocks = taken - above;
  return cut;
}

int32_t emit(int32_t* ids, int32_t count, int64_t first_cell, int64_t cells) {
  for (int64_t i = 0; i < cells; ++i) ids[count++] = static_cast<int32_t>(first_cell + i);
  return count;
}

int32_t select_row(const float* scores, int64_t n_kv, const QsaSelectArgs& args, int32_t* ids,
                   std::vector<uint32_t>& keys, std::vector<uint32_t>& scratch) {
  const int64_t ratio = args.ratio, blocks = n_kv / ratio, tail = n_kv % ratio, budget = args.budget / ratio;
  const int64_t extra = args.semantics == QsaSemantics::FixedWidth ? ratio - 1 - tail : 0;
  // Everything fits: the whole blocks and the tail, or the width of the fixed form.
  if (blocks <= budget) return emit(ids, 0, 0, n_kv);
  keys.resize(static_cast<size_t>(blocks));
  for (int64_t b = 0; b < blocks; ++b) keys[static_cast<size_t>(b)] = qsa_order_key(scores[b]);
  // With extra cells to give, the next block in order is cut: it is the last one of the budget + 1 best.
  Cut whole = find_cut(keys, scratch, budget);
  const Cut next = extra > 0 ? find_cut(keys, scratch, budget + 1) : whole;
  int32_t count = 0;
  int64_t equal = 0, next_equal = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    const uint32_t key = keys[static_cast<size_t>(b)];
    const bool in_whole = key > whole.threshold || (key == whole.threshold && equal++ < whole.equal_blocks);
    const bool in_next = key > next.threshold || (key == next.threshold && next_equal++ < next.equal_blocks);
    if (in_whole)
      count = emit(ids, count, b * ratio, ratio);
    else if (in_next)
      count = emit(ids, count, b * ratio, extra);
  }
  return emit(ids, count, blocks * ratio, tail);
}

}  // namespace

void qsa_select_portable(Queue& queue, const QsaSelectArgs& args) {
  queue.pool().run(
      args.scores.extent(0), ThreadPool::grain_of(args.scores.extent(1) * 8), [&](int64_t begin, int64_t end, int) {
        std::vector<uint32_t> keys, scratch;
        for (int64_t t = begin; t < end; ++t)
          args.counts.as<int32_t>()[t] = select_row(args.scores.row<const float>(t), args.n_kv.as<int32_t>()[t], args,
                                                    args.ids.row<int32_t>(t), keys, scratch);
      });
}

}  // namespace strata
