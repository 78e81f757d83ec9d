// Internal to qsa_score: the shapes of `wmma`.
#pragma once

namespace strata {

inline constexpr int kWmmaWaves = 4;                              // of a block, as the hardware counts them
inline constexpr int kWmmaTiles = 4;                              // of 16 blocks, one after another, for a wave
inline constexpr int kWmmaQueries = 4, kWmmaHeads = 4;            // of a tile
inline constexpr int kWmmaPitch = 17;                             // of a tile of sums in shared memory
inline constexpr int kWmmaBlocks = 16 * kWmmaTiles * kWmmaWaves;  // of a block of threads

}  // namespace strata
