#include <algorithm>
#include <cmath>
#include <vector>

#include "base/fmath.h"
#include "gguf/quant.h"
#include "ops/ngram_embedding/ngram_embedding.h"

namespace strata {

void ngram_rows(const NgramParams& params, const Tensor& ids, const Tensor& context, int64_t* rows_out) {
  const int orders = params.orders;
  std::vector<uint64_t> previous(static_cast<size_t>(orders) + 1);  // c_0 .. c_{N-1}
  for (int64_t t = 0; t < ids.extent(0); ++t) {
    bool ended = false;
    for (int s = 0; s <= orders; ++s) {
      const int64_t source = t - s;
      int32_t token = source >= 0 ? ids.as<int32_t>()[source] : context.as<int32_t>()[orders + source];
      // The token's own EOS does not end its own context.
      ended = ended || token < 0 || (s > 0 && token == params.eos);
      previous[static_cast<size_t>(s)] = static_cast<uint64_t>(ended ? params.eos : token);
    }
    uint64_t mix = previous[0] * params.multipliers[0];
    for (int order = 1; order <= orders; ++order) {
      mix ^= previous[static_cast<size_t>(order)] * params.multipliers[static_cast<size_t>(order)];
      for (int h = 0; h < params.heads; ++h) {
        const auto head = static_cast<size_t>((order - 1) * params.heads + h);
        *rows_out++ = static_cast<int64_t>(mix % params.head_sizes[head] + params.head_offsets[head]);
      }
    }
  }
}

void ngram_embedding_portable(Queue& queue, const NgramEmbeddingArgs& args) {
  const int64_t heads = args.y.extent(1), width = args.y.extent(2);
  std::vector<int64_t> rows(static_cast<size_t>(args.ids.extent(0) * heads));
  ngram_rows(*args.params, args.ids, args.context, rows.data());
  const gguf::DecodeRow decode = gguf::decoder(args.table.dtype);
  queue.pool().run(args.ids.extent(0) * heads, ThreadPool::grain_of(width), [&](int64_t begin, int64_t end, int) {
    for (int64_t item = begin; item < end; ++item)
      decode(args.table.row<const void>(rows[static_cast<size_t>(item)]), args.y[item / heads].row<float>(item % heads),
             width);
  });
}

void ngram_gate_portable(Queue& queue, const NgramGateArgs& args) {
  const int64_t streams = args.key.extent(1), hidden = args.key.extent(2);
  const float scale = 1.0f / std::sqrt(static_cast<float>(hidden));
  queue.pool().run(args.key.extent(0) * streams, ThreadPool::grain_of(3 * hidden),
                   [&](int64_t begin, int64_t end, int) {
                     for (int64_t item = begin; item < end; ++item) {
                       const int64_t t = item / streams, s = item % streams;
                       const float product =
                           dot_f32(args.key[t].row<const float>(s), args.query[t].row<const float>(s), hidden) * scale;
                       const float root = std::sqrt(std::max(std::fabs(product), 1e-6f));
                       const float sign = product > 0 ? 1.0f : (product < 0 ? -1.0f : 0.0f);
                       const float gate = product != product ? product : sigmoid_f32(sign * root);
                       const float* value = args.value.row<const float>(t);
                       float* y = args.y[t].row<float>(s);
                       for (int64_t i = 0; i < hidden; ++i) y[i] = gate * value[i];
                     }
                   });
}

}  // namespace strata
