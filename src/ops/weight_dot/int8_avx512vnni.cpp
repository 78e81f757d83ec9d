#include "ops/weight_dot/grid.h"
#include "ops/weight_dot/int8_lattice.h"

// Before it, where lattices are unpacked.
#include "ops/weight_dot/int8_kernel.h"
#include "ops/weight_dot/int8_round_avx512.h"

namespace strata {
namespace {

template <DType type>
struct FewOf {
  static constexpr Int8FewFn value = few<type>;
};
template <DType type>
struct PackOf {
  static constexpr Int8PackFn value = pack<type>;
};
Int8Traits traits(DType type) {
  Int8Traits found = int8_traits(type);
  found.transposed = type == DType::Q2_0;
  return found;
}
Int8FewFn few_of(DType type) { return of_level_type<FewOf, Int8FewFn>(type); }
Int8PackFn pack_of(DType type) { return of_level_type<PackOf, Int8PackFn>(type); }

void panel(const Int8Panel& a) {
  if (a.traits.minima) return panel_of<Kind::Minima, false>(a);
  const bool transposed = a.traits.transposed;
  if (a.traits.halves) return transposed ? panel_of<Kind::Halves, true>(a) : panel_of<Kind::Halves, false>(a);
  transposed ? panel_of<Kind::Plain, true>(a) : panel_of<Kind::Plain, false>(a);
}

}  // namespace

constinit const Int8Kernel kInt8Avx512Vnni{packed_lattice_grid, traits, kFewRows, kTurnsRows, 16,       kPanelGroups,
                                           sizeof(PanelBlock),  few_of, pack_of,  panel,      round_row};

}  // namespace strata
