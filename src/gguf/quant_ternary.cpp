// Ternary types: TQ1_0 (five digits of base 3 to a byte) and TQ2_0 (two bits each). Layouts: docs/formats.md.
#include "gguf/quant_detail.h"

namespace strata::gguf {
namespace {

constexpr uint8_t kPower[5] = {1, 3, 9, 27, 81};

// A byte is a fixed-point fraction of 256: digit k is the integer part of three times the fraction of x·3^k.
inline int digit(uint8_t x, uint8_t power) { return (static_cast<uint8_t>(x * power) * 3) >> 8; }

// kBytes bytes hold kDigits runs of kBytes elements, the leading digit of every byte first.
template <int kBytes, int kDigits>
inline void put_digits(const uint8_t* __restrict bytes, float d, float* __restrict out) {
  for (int k = 0; k < kDigits; ++k)
    for (int j = 0; j < kBytes; ++j) out[kBytes * k + j] = static_cast<float>(digit(bytes[j], kPower[k]) - 1) * d;
}

void tq1_0(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block + 52);
  put_digits<32, 5>(block, d, out);
  put_digits<16, 5>(block + 32, d, out + 160);
  put_digits<4, 4>(block + 48, d, out + 240);
}

void tq2_0(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block + 64);
  for (int s = 0; s < 8; ++s) {
    const uint8_t* qs = block + 32 * (s / 4);
    const int shift = 2 * (s % 4);
    for (int l = 0; l < 32; ++l) out[32 * s + l] = static_cast<float>(((qs[l] >> shift) & 3) - 1) * d;
  }
}

}  // namespace

DecodeRow ternary_decoder(DType type) {
  switch (type) {
    case DType::TQ1_0: return decode_blocks<tq1_0, 256, 54>;
    case DType::TQ2_0: return decode_blocks<tq2_0, 256, 66>;
    default: return nullptr;
  }
}

}  // namespace strata::gguf
