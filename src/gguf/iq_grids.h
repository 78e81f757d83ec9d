// Lattice tables of the IQ block formats: row = grid index, entry j multiplies weight j of the group.
// iq_grids.cpp is generated from data/iq_grids.txt by tools/gen_grids.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace strata::gguf {

template <size_t kRows, size_t kColumns>
using Grid = std::array<std::array<int8_t, kColumns>, kRows>;

extern const Grid<256, 8> kIq2xxsGrid;  // magnitudes 8, 25, 43
extern const Grid<512, 8> kIq2xsGrid;
extern const Grid<1024, 8> kIq2sGrid;
extern const Grid<256, 4> kIq3xxsGrid;  // magnitudes 4, 12, 20, ..., 52, 62
extern const Grid<512, 4> kIq3sGrid;    // magnitudes 1, 3, ..., 15
extern const Grid<2048, 8> kIq1sGrid;   // -1, 0, 1; IQ1_S and IQ1_M

}  // namespace strata::gguf
