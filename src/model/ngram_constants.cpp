#include "model/ngram_constants.h"

#include "base/random.h"

namespace strata {
namespace {

bool is_prime(uint64_t n) {
  if (n < 2) return false;
  for (uint64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return true;
}

}  // namespace

std::vector<uint64_t> ngram_multipliers(uint64_t seed, uint64_t vocabulary, uint64_t module, size_t count) {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;
  const uint64_t half = ((uint64_t{1} << 63) - 1) / vocabulary / 2;
  std::vector<uint64_t> multipliers;
  for (uint64_t j = 0; j < count; ++j)
    multipliers.push_back(2 * (splitmix64(seed + 10007 * module + kGolden * (j + 1)) % half) + 1);
  return multipliers;
}

NgramParams ngram_params(int orders, int heads, int32_t eos, uint64_t seed, uint64_t vocabulary, uint64_t module,
                         uint64_t smallest) {
  NgramParams params;
  params.orders = orders;
  params.heads = heads;
  params.eos = eos;
  params.multipliers = ngram_multipliers(seed, vocabulary, module, static_cast<size_t>(orders) + 1);
  const uint64_t count = static_cast<uint64_t>(orders) * static_cast<uint64_t>(heads);
  uint64_t index = 0, offset = 0;
  for (uint64_t candidate = smallest; params.head_sizes.size() < count; ++candidate) {
    if (!is_prime(candidate) || index++ < module * count) continue;
    params.head_sizes.push_back(candidate);
    params.head_offsets.push_back(offset);
    offset += candidate;
  }
  return params;
}

uint64_t ngram_table_rows(const NgramParams& params) {
  return (params.head_offsets.back() + params.head_sizes.back() + 127) / 128 * 128;
}

}  // namespace strata
