#include "gguf/hf/rows.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/half.h"

namespace strata::gguf::hf {
namespace {

template <typename Stored, typename Convert>
void decode_each(const std::byte* bytes, float* out, uint64_t elements, Convert convert) {
  for (uint64_t i = 0; i < elements; ++i) {
    Stored stored;
    std::memcpy(&stored, bytes + i * sizeof(Stored), sizeof(Stored));
    out[i] = convert(stored);
  }
}

void apply(Op op, float* values, uint64_t elements) {
  switch (op) {
    case Op::Copy: return;
    case Op::AddOne:
      for (uint64_t i = 0; i < elements; ++i) values[i] += 1.0f;
      return;
    case Op::NegExp:
      for (uint64_t i = 0; i < elements; ++i) values[i] = static_cast<float>(-std::exp(static_cast<double>(values[i])));
      return;
  }
}

}  // namespace

bool is_real(SourceType type) {
  return type == SourceType::F16 || type == SourceType::BF16 || type == SourceType::F32 || type == SourceType::F64;
}

void decode(SourceType type, const std::byte* bytes, float* out, uint64_t elements) {
  switch (type) {
    case SourceType::F32: std::memcpy(out, bytes, elements * sizeof(float)); return;
    case SourceType::F16: decode_each<uint16_t>(bytes, out, elements, f16_to_f32); return;
    case SourceType::BF16: decode_each<uint16_t>(bytes, out, elements, bf16_to_f32); return;
    case SourceType::F64:
      decode_each<double>(bytes, out, elements, [](double value) { return static_cast<float>(value); });
      return;
    default: throw Error(ErrorKind::Argument, "cannot read " + std::string(to_string(type)) + " as real numbers");
  }
}

void read_rows(const Checkpoint& checkpoint, const Piece& piece, uint64_t first, uint64_t count, float* out) {
  const std::byte* source = checkpoint.data(*piece.source).data();
  const std::byte* right = piece.right != nullptr ? checkpoint.data(*piece.right).data() : nullptr;
  const SourceType type = piece.source->type;
  const uint64_t row_bytes = piece.width * element_size(type);
  const uint64_t width = piece.output_width();
  auto source_row = [&](uint64_t row) { return piece.rows.empty() ? piece.first_row + row : piece.rows[row]; };

  if (piece.rows.empty() && piece.columns.empty() && right == nullptr) {
    decode(type, source + source_row(first) * row_bytes, out, count * width);
  } else {
    std::vector<float> whole(piece.columns.empty() ? 0 : piece.width);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t row = source_row(first + i);
      float* target = out + i * width;
      if (piece.columns.empty()) {
        decode(type, source + row * row_bytes, target, piece.width);
      } else {
        decode(type, source + row * row_bytes, whole.data(), piece.width);
        for (uint64_t c = 0; c < piece.columns.size(); ++c) target[c] = whole[piece.columns[c]];
      }
      if (right == nullptr) continue;
      const uint64_t right_bytes = piece.right_width * element_size(piece.right->type);
      decode(piece.right->type, right + row * right_bytes, target + width - piece.right_width, piece.right_width);
    }
  }
  apply(piece.op, out, count * width);
}

}  // namespace strata::gguf::hf
