// Plain element types: conversion of each element to and from f32.
#include "gguf/quant_detail.h"

namespace strata::gguf {
namespace {

template <typename T>
T load_element(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Integers and f64 round to nearest even; a double beyond the range of f32 becomes an infinity.
template <typename T>
void decode_plain(const void* source, float* __restrict out, int64_t elements) {
  const uint8_t* __restrict p = static_cast<const uint8_t*>(source);
  for (int64_t i = 0; i < elements; ++i) out[i] = static_cast<float>(load_element<T>(p + i * sizeof(T)));
}

void decode_f32(const void* source, float* out, int64_t elements) {
  if (elements > 0) std::memcpy(out, source, static_cast<size_t>(elements) * sizeof(float));
}

// Equal to f16_to_f32 on all 65536 patterns, as selects instead of branches so that the loop vectorises. No operand is
// ever a subnormal f32: no slow path in the hardware, and no change where subnormals are flushed.
inline float f16_select(uint32_t h) {
  constexpr uint32_t kExponent = 0x0f800000u;  // the f16 exponent field after the shift by 13
  const uint32_t sign = (h & 0x8000u) << 16;
  const uint32_t shifted = (h & 0x7fffu) << 13;
  const uint32_t exponent = shifted & kExponent;
  // Normal: rebias by 127 - 15. Infinity and NaN: once more, to reach exponent 255.
  const uint32_t normal = shifted + (112u << 23) + (exponent == kExponent ? 112u << 23 : 0u);
  // Zero and subnormal m: (2^-14 + m·2^-24) - 2^-14, both exact.
  const float small = std::bit_cast<float>(shifted + (113u << 23)) - 0x1p-14f;
  return std::bit_cast<float>(sign | (exponent == 0u ? std::bit_cast<uint32_t>(small) : normal));
}

void decode_f16(const void* source, float* __restrict out, int64_t elements) {
  const uint8_t* __restrict p = static_cast<const uint8_t*>(source);
  for (int64_t i = 0; i < elements; ++i) out[i] = f16_select(load_u16(p + 2 * i));
}

void decode_bf16(const void* source, float* __restrict out, int64_t elements) {
  const uint8_t* __restrict p = static_cast<const uint8_t*>(source);
  for (int64_t i = 0; i < elements; ++i) out[i] = bf16_to_f32(load_u16(p + 2 * i));
}

void encode_f32(const float* values, void* target, int64_t elements) {
  if (elements > 0) std::memcpy(target, values, static_cast<size_t>(elements) * sizeof(float));
}

template <uint16_t (*kConvert)(float)>
void encode_half(const float* values, void* target, int64_t elements) {
  uint8_t* p = static_cast<uint8_t*>(target);
  for (int64_t i = 0; i < elements; ++i) store_u16(p + 2 * i, kConvert(values[i]));
}

}  // namespace

DecodeRow plain_decoder(DType type) {
  switch (type) {
    case DType::F32: return decode_f32;
    case DType::F16: return decode_f16;
    case DType::BF16: return decode_bf16;
    case DType::I8: return decode_plain<int8_t>;
    case DType::I16: return decode_plain<int16_t>;
    case DType::I32: return decode_plain<int32_t>;
    case DType::I64: return decode_plain<int64_t>;
    case DType::F64: return decode_plain<double>;
    default: return nullptr;
  }
}

Encoder plain_encoder(DType type) {
  switch (type) {
    case DType::F32: return unweighted_row<encode_f32>();
    case DType::F16: return unweighted_row<encode_half<f32_to_f16>>();
    case DType::BF16: return unweighted_row<encode_half<f32_to_bf16>>();
    default: return {};
  }
}

}  // namespace strata::gguf
