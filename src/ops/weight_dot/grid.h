// The table of a lattice type. Internal to the walks over weights.
#pragma once

#include "base/dtype.h"
#include "gguf/iq_grids.h"

namespace strata {

inline const void* lattice_grid(DType type) {
  switch (type) {
    case DType::IQ2_XXS: return gguf::kIq2xxsGrid.data();
    case DType::IQ2_XS: return gguf::kIq2xsGrid.data();
    case DType::IQ2_S: return gguf::kIq2sGrid.data();
    case DType::IQ3_XXS: return gguf::kIq3xxsGrid.data();
    case DType::IQ3_S: return gguf::kIq3sGrid.data();
    default: return nullptr;
  }
}

}  // namespace strata
