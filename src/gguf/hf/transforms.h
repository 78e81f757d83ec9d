// Index maps of the conversion: element i of a map says which row (or column) of the HF tensor becomes row i of the
// file.
#pragma once

#include <cstdint>
#include <vector>

namespace strata::gguf::hf {

using IndexMap = std::vector<uint64_t>;

// llama q and k: half-split rotation pairs become adjacent. New row (h, 2j+s) = old row (h, s·head_dim/2 + j).
IndexMap adjacent_pairs(uint64_t heads, uint64_t head_dim);

// Value heads from grouped to tiled order, `block` rows each: new head r·key_heads + k = old head k·per_key + r.
IndexMap tiled_value_heads(uint64_t key_heads, uint64_t per_key, uint64_t block);

// `kept` leading items stay, the map acts on those after them (q and k before the value rows of in_proj_qkv).
IndexMap after(uint64_t kept, IndexMap map);

// in_proj_qkvz of qwen3next: rows grouped per key head as q (key_dim), k (key_dim), v (value_rows), z (value_rows).
IndexMap ungrouped_qkv(uint64_t key_heads, uint64_t key_dim, uint64_t value_rows);  // all q, all k, all v
IndexMap ungrouped_z(uint64_t key_heads, uint64_t key_dim, uint64_t value_rows);    // all z

// Llama 3 scaling: divisors of the head_dim/2 rotation frequencies.
struct Llama3Scaling {
  double base, factor, low_freq_factor, high_freq_factor, original_context;
};
std::vector<float> llama3_rope_freqs(uint64_t head_dim, const Llama3Scaling& scaling);

}  // namespace strata::gguf::hf
