// What host and kernels share about weights on their way through shared memory (mma_kernel.h).
#pragma once

namespace strata {

inline constexpr int kMmaChunk = 256;  // elements
// Tiles: 16 weight rows of a block with 8 rows of x, or 64 of a wave with 32.
inline constexpr int kFewStages = 2, kManyStages = 1, kManyTiles = 4, kManyColumns = 4;

// Of a row of one chunk: rows start at any multiple of a byte unless every block (of plain types: 32 elements) is whole
// pieces of 16 bytes. An odd number of pieces: rows lie in different banks.
constexpr int mma_row_pieces(int elements, int bytes) {
  const bool aligned = elements == 1 || bytes % 16 == 0;
  return (kMmaChunk / elements * bytes + 15 + (aligned ? 0 : 15)) / 16;
}
constexpr int mma_row_stride(int elements, int bytes) { return 16 * (mma_row_pieces(elements, bytes) / 2 * 2 + 1); }
// Words of one row of weights: of each group its scale, with minima four.
constexpr int mma_scales(int elements, int group, bool minima) {
  return elements == 1 ? 0 : kMmaChunk / group * (minima ? 4 : 1);
}
// Bytes of shared memory of a wave.
constexpr int mma_stage_bytes(int elements, int bytes, int group, bool minima, int rows, int stages) {
  return rows * (stages * mma_row_stride(elements, bytes) + 4 * mma_scales(elements, group, minima));
}

}  // namespace strata
