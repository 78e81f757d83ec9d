// Block formats of GGUF files: decode and encode rows. Layouts: docs/formats.md (all byte offsets from the start of a
// block).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace strata::gguf {

// Decodes `elements` contiguous elements to f32. elements must be a multiple of the type's block. Any bytes are legal:
// the result is then whatever the formula gives, NaN included. Thread safe; allocates nothing.
// The function pointer form lets callers choose once, outside their inner loop.
using DecodeRow = void (*)(const void* blocks, float* out, int64_t elements);
DecodeRow decoder(DType type);  // every type of all_dtypes(); Error{Argument} for anything else

// Encodes `elements` f32 to blocks. Deterministic. Types with an encoder: F32, F16, BF16, Q8_0, Q4_0, MXFP4, IQ4_NL,
// IQ4_XS, IQ3_S, Q3_K, Q4_K, Q5_K, Q6_K.
// Non-finite input is encoded as far as the format allows and never makes the encoder fail.
using EncodeRow = void (*)(const float* values, void* blocks, int64_t elements);
bool has_encoder(DType type);
EncodeRow encoder(DType type);  // Error{Argument} naming the types that have one

// The same with an importance per element: the mean square of the input that meets this weight. Types that search for
// scales (all K and IQ types, MXFP4) then minimise the importance-weighted squared error; the others, and all of them
// for null weights, encode as without. Weights may hold anything: what is not a positive number counts as 0.
using EncodeWeightedRow = void (*)(const float* values, const float* weights, void* blocks, int64_t elements);
EncodeWeightedRow weighted_encoder(DType type);  // Error{Argument} as above
bool uses_weights(DType type);

}  // namespace strata::gguf
