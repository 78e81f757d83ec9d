#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/qsa_select/qsa_select.h"

namespace strata {

void qsa_select_oracle(const QsaSelectArgs& args, int32_t* ids, int32_t* counts, int32_t* thresholds) {
  const int64_t rows = args.scores.extent(0), ratio = args.ratio;
  for (int64_t t = 0; t < rows; ++t, ids += args.ids.extent(1)) {
    const float* score = args.scores.row<float>(t);
    const int64_t cells = args.n_kv.as<int32_t>()[t], blocks = cells / ratio;

    // Best first: numbers by falling value, then NaN; equal ones stay in the order of their index.
    std::vector<int64_t> ranked(static_cast<size_t>(blocks));
    std::iota(ranked.begin(), ranked.end(), int64_t{0});
    std::stable_sort(ranked.begin(), ranked.end(), [&](int64_t a, int64_t b) {
      if (std::isnan(score[a]) || std::isnan(score[b])) return !std::isnan(score[a]) && std::isnan(score[b]);
      return score[a] > score[b];
    });

    std::vector<int64_t> chosen;
    for (int64_t cell = blocks * ratio; cell < cells; ++cell) chosen.push_back(cell);
    int64_t room = args.budget;
    if (args.semantics == QsaSemantics::FixedWidth) room += ratio - 1 - (cells - blocks * ratio);
    int64_t last = 0;
    for (int64_t block : ranked)
      for (int64_t cell = block * ratio; cell < (block + 1) * ratio && room > 0; ++cell, --room) {
        chosen.push_back(cell);
        last = block;
      }
    if (thresholds != nullptr && blocks > args.budget / ratio)
      thresholds[t] = static_cast<int32_t>(qsa_order_key(score[last]));
    std::sort(chosen.begin(), chosen.end());
    std::copy(chosen.begin(), chosen.end(), ids);
    counts[t] = static_cast<int32_t>(chosen.size());
  }
}

}  // namespace strata
