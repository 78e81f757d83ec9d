#include "gguf/hf/transforms.h"

#include <cmath>
#include <numbers>

namespace strata::gguf::hf {

IndexMap adjacent_pairs(uint64_t heads, uint64_t head_dim) {
  IndexMap map;
  map.reserve(heads * head_dim);
  for (uint64_t h = 0; h < heads; ++h)
    for (uint64_t j = 0; j < head_dim / 2; ++j)
      for (uint64_t s = 0; s < 2; ++s) map.push_back(h * head_dim + s * (head_dim / 2) + j);
  return map;
}

IndexMap tiled_value_heads(uint64_t key_heads, uint64_t per_key, uint64_t block) {
  IndexMap map;
  map.reserve(key_heads * per_key * block);
  for (uint64_t r = 0; r < per_key; ++r)
    for (uint64_t k = 0; k < key_heads; ++k)
      for (uint64_t x = 0; x < block; ++x) map.push_back((k * per_key + r) * block + x);
  return map;
}

IndexMap after(uint64_t kept, IndexMap map) {
  IndexMap shifted;
  shifted.reserve(kept + map.size());
  for (uint64_t i = 0; i < kept; ++i) shifted.push_back(i);
  for (const uint64_t index : map) shifted.push_back(kept + index);
  return shifted;
}

IndexMap ungrouped_qkv(uint64_t key_heads, uint64_t key_dim, uint64_t value_rows) {
  const uint64_t group = 2 * key_dim + 2 * value_rows;
  IndexMap map;
  map.reserve(key_heads * (2 * key_dim + value_rows));
  auto gather = [&](uint64_t first, uint64_t rows) {
    for (uint64_t k = 0; k < key_heads; ++k)
      for (uint64_t x = 0; x < rows; ++x) map.push_back(k * group + first + x);
  };
  gather(0, key_dim);
  gather(key_dim, key_dim);
  gather(2 * key_dim, value_rows);
  return map;
}

IndexMap ungrouped_z(uint64_t key_heads, uint64_t key_dim, uint64_t value_rows) {
  const uint64_t group = 2 * key_dim + 2 * value_rows;
  IndexMap map;
  map.reserve(key_heads * value_rows);
  for (uint64_t k = 0; k < key_heads; ++k)
    for (uint64_t x = 0; x < value_rows; ++x) map.push_back(k * group + 2 * key_dim + value_rows + x);
  return map;
}

std::vector<float> llama3_rope_freqs(uint64_t head_dim, const Llama3Scaling& s) {
  std::vector<float> freqs;
  for (uint64_t j = 0; j < head_dim / 2; ++j) {
    const double exponent = 2.0 * static_cast<double>(j) / static_cast<double>(head_dim);
    const double wavelength = 2.0 * std::numbers::pi * std::pow(s.base, exponent);
    double divisor = 1.0;
    if (wavelength > s.original_context / s.low_freq_factor) {
      divisor = s.factor;
    } else if (wavelength >= s.original_context / s.high_freq_factor) {
      const double mix =
          (s.original_context / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
      divisor = 1.0 / ((1.0 - mix) / s.factor + mix);
    }
    freqs.push_back(static_cast<float>(divisor));
  }
  return freqs;
}

}  // namespace strata::gguf::hf
