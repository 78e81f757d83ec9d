// The tables of lattice types. Internal to the walks over weights.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace strata {

const void* lattice_grid(DType type);  // of gguf/iq_grids.h; null: the type has none
// The same, a word of 16 bits a row, for lookups in registers: of four columns nibbles, columns 0, 2, 1, 3 from the
// lowest on; of eight columns pairs of bits, columns 0, 2, 4, 6, 1, 3, 5, 7. They are the magnitude itself (IQ3_S) or
// its place among those of the type.
// Tables for registers begin at a line of the cache, since half of their loads would cross one.
const void* packed_lattice_grid(DType type);
// The same in two planes of bytes, one behind the other. Of four columns nibbles, columns 0 and 1 in the first plane: 8
// more than the place of the magnitude, so that the complement of a nibble is that of the negative level. Of eight
// columns pairs of bits, columns 0 to 3 in the first plane.
const void* lattice_planes(DType type);

}  // namespace strata
