#include "gguf/quant.h"

#include <string>

#include "base/error.h"
#include "gguf/quant_detail.h"

namespace strata::gguf {
namespace {

Encoder find_encoder(DType type) {
  for (auto family : {plain_encoder, simple_encoder, codebook_encoder, k_encoder, lattice_encoder})
    if (const Encoder found = family(type)) return found;
  return {};
}

Encoder checked_encoder(DType type) {
  if (const Encoder found = find_encoder(type)) return found;
  std::string known;
  for (const DTypeInfo& entry : all_dtypes())
    if (has_encoder(entry.type)) known += (known.empty() ? "" : ", ") + std::string(entry.name);
  throw Error(ErrorKind::Argument, "no encoder for " + std::string(to_string(type)) + "; types that have one: " + known,
              "encoder");
}

}  // namespace

DecodeRow decoder(DType type) {
  for (auto family : {plain_decoder, simple_decoder, codebook_decoder, k_decoder, lattice_decoder, ternary_decoder})
    if (DecodeRow row = family(type)) return row;
  throw Error(ErrorKind::Argument, "no decoder for dtype id " + std::to_string(static_cast<uint32_t>(type)), "decoder");
}

bool has_encoder(DType type) { return static_cast<bool>(find_encoder(type)); }
EncodeRow encoder(DType type) { return checked_encoder(type).row; }
EncodeWeightedRow weighted_encoder(DType type) { return checked_encoder(type).weighted; }
bool uses_weights(DType type) { return find_encoder(type).uses_weights; }

}  // namespace strata::gguf
