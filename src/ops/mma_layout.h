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

// One row of x, or up to eight (mma_one.h). Where a chunk is whole pieces of 16 bytes, rows are where they are copied
// as they lie.
inline constexpr int kMmaOneWords = 48;  // of split x for 32 elements
constexpr int mma_one_pieces(int elements, int bytes) {
  const int row = kMmaChunk / elements * bytes;
  return (row + (row % 16 == 0 ? 15 : 30)) / 16;
}
constexpr int mma_one_stride(int elements, int bytes) { return 16 * (mma_one_pieces(elements, bytes) / 2 * 2 + 1); }
constexpr int mma_one_stages(int elements, int bytes) { return 16 * mma_one_stride(elements, bytes) <= 3200 ? 3 : 2; }
constexpr int mma_one_wave_bytes(int elements, int bytes, int group, bool minima) {
  const int scales = elements == 1 ? 0 : 16 * 4 * (kMmaChunk / group + 4) * (minima ? 3 : 1);
  return 16 * mma_one_stride(elements, bytes) * mma_one_stages(elements, bytes) + scales;
}

}  // namespace strata
