#include "gguf/quant.h"

#include <string>

#include "base/error.h"
#include "gguf/quant_detail.h"

namespace strata::gguf {
namespace {

EncodeRow find_encoder(DType type) {
  for (auto family : {plain_encoder, simple_encoder, k_encoder})
    if (EncodeRow row = family(type)) return row;
  return nullptr;
}

}  // namespace

DecodeRow decoder(DType type) {
  for (auto family : {plain_decoder, simple_decoder, codebook_decoder, k_decoder, lattice_decoder, ternary_decoder})
    if (DecodeRow row = family(type)) return row;
  throw Error(ErrorKind::Argument, "no decoder for dtype id " + std::to_string(static_cast<uint32_t>(type)), "decoder");
}

bool has_encoder(DType type) { return find_encoder(type) != nullptr; }

EncodeRow encoder(DType type) {
  if (EncodeRow row = find_encoder(type)) return row;
  std::string known;
  for (const DTypeInfo& entry : all_dtypes())
    if (has_encoder(entry.type)) known += (known.empty() ? "" : ", ") + std::string(entry.name);
  throw Error(ErrorKind::Argument, "no encoder for " + std::string(to_string(type)) + "; types that have one: " + known,
              "encoder");
}

}  // namespace strata::gguf
