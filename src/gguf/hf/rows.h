// Reads rows of checkpoint tensors as f32, rearranged and with the arithmetic of the conversion applied.
#pragma once

#include <cstdint>
#include <vector>

#include "gguf/hf/safetensors.h"
#include "gguf/hf/transforms.h"

namespace strata::gguf::hf {

enum class Op : uint8_t {
  Copy,
  AddOne,  // zero-centred norm weights: w + 1 in f32
  NegExp,  // A_log: -exp(x), rounded to f32 once
};

// A run of rows of one output tensor. The source counts as a matrix [elements / width, width].
struct Piece {
  const SourceTensor* source = nullptr;
  uint64_t width = 1;
  uint64_t first_row = 0;  // without `rows`: row_count rows from here on
  uint64_t row_count = 0;
  IndexMap rows;                        // source row of every output row
  IndexMap columns;                     // source column of every output column; empty: as they are
  const SourceTensor* right = nullptr;  // appended to every row, same number of rows
  uint64_t right_width = 0;
  Op op = Op::Copy;

  uint64_t output_rows() const { return rows.empty() ? row_count : rows.size(); }
  uint64_t output_width() const { return (columns.empty() ? width : columns.size()) + right_width; }
};

bool is_real(SourceType type);  // types that weights may have: F16, BF16, F32, F64
void decode(SourceType type, const std::byte* bytes, float* out, uint64_t elements);

// Output rows first .. first + count - 1 to out [count, output_width].
void read_rows(const Checkpoint& checkpoint, const Piece& piece, uint64_t first, uint64_t count, float* out);

}  // namespace strata::gguf::hf
