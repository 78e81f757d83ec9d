#include "gguf/hf/storage.h"

#include <string>

#include "base/error.h"

namespace strata::gguf::hf {

bool stays_f32(std::string_view name, size_t dims) {
  if (dims == 1 || !name.ends_with(".weight") || name.ends_with("_norm.weight")) return true;
  for (const std::string_view part : {".ffn_gate_inp.weight", ".ffn_gate_inp_shexp.weight", ".ssm_conv1d.weight"})
    if (name.ends_with(part)) return true;
  return false;
}

DType storage_type(std::string_view name, size_t dims, uint64_t row, DType asked) {
  if (stays_f32(name, dims)) return DType::F32;
  return row % info(asked).block_elements == 0 ? asked : DType::F16;
}

uint32_t file_type(DType asked) {
  switch (asked) {
    case DType::F32: return 0;
    case DType::F16: return 1;
    case DType::Q4_0: return 2;
    case DType::Q4_1: return 3;
    case DType::Q8_0: return 7;
    case DType::Q5_0: return 8;
    case DType::Q5_1: return 9;
    case DType::Q2_K: return 10;
    case DType::Q3_K: return 11;
    case DType::Q4_K: return 14;
    case DType::Q5_K: return 16;
    case DType::Q6_K: return 18;
    case DType::IQ4_NL: return 25;
    case DType::IQ3_S: return 26;
    case DType::IQ4_XS: return 30;
    case DType::BF16: return 32;
    case DType::MXFP4: return 38;
    default: throw Error(ErrorKind::Argument, "no general.file_type for " + std::string(to_string(asked)));
  }
}

}  // namespace strata::gguf::hf
