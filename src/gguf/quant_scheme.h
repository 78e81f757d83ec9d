// Which type each tensor of a file gets when it is quantised: plain types and the mixes that users know by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/gguf.h"

namespace strata::gguf {

enum class QuantMix {
  None,    // one type for all large tensors
  Small,   // output and a few early layers higher
  Medium,  // output, embedding and the sensitive tensors of some layers higher
};

struct QuantScheme {
  std::string_view name;  // "Q4_K_M"
  DType base = DType::F16;
  QuantMix mix = QuantMix::None;
  uint32_t file_type = 1;  // general.file_type
};

// Every type with an encoder, and Q3_K_M, Q4_K_S, Q4_K_M, Q5_K_M.
const std::vector<QuantScheme>& quant_schemes();
std::optional<QuantScheme> quant_scheme(std::string_view name);  // case-insensitive
std::string quant_scheme_names();                                // "F32, F16, ..."

// Tensors that quantising never touches: vectors, norms, routers, convolutions, the small projections that steer the
// delta net, the block index and the hyper-connections, and whatever does not hold real weights.
bool keeps_type(const TensorInfo& tensor);

// `wanted`, or the next type with as many bits or more whose blocks divide rows of `row` elements.
DType fitting_type(DType wanted, uint64_t row);

struct ChosenType {
  DType type = DType::F32;
  bool kept = false;  // keeps_type()
  std::string note;   // why it is not what the scheme says; empty otherwise
};

// One per tensor. Kept tensors get the type that they have.
std::vector<ChosenType> choose_types(std::span<const TensorInfo> tensors, const QuantScheme& scheme);

}  // namespace strata::gguf
