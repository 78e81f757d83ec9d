#include "ops/weight_dot/grid.h"
#include "ops/weight_dot/int8_lattice_vbmi.h"

// Before it, where lattices are unpacked.
#include "ops/weight_dot/int8_kernel.h"

namespace strata {
namespace {

template <DType type>
constexpr Int8FewFn own_few() {
  if constexpr (Is<type>::kLattice) return few<type>;
  return nullptr;
}
template <DType type>
constexpr Int8PackFn own_pack() {
  if constexpr (Is<type>::kLattice) return pack<type>;
  return nullptr;
}
template <DType type>
struct FewOf {
  static constexpr Int8FewFn value = own_few<type>();
};
template <DType type>
struct PackOf {
  static constexpr Int8PackFn value = own_pack<type>();
};

// Lattices are unpacked here, other types as by kInt8Avx512Vnni: the same sums, and the same panels.
Int8Traits traits(DType type) {
  Int8Traits found = kInt8Avx512Vnni.traits(type);
  if (lattice_planes(type) != nullptr) found.transposed = true;
  if (type == DType::IQ3_S) found.offset = 15;
  return found;
}
Int8FewFn few_of(DType type) {
  const Int8FewFn own = of_level_type<FewOf, Int8FewFn>(type);
  return own != nullptr ? own : kInt8Avx512Vnni.few(type);
}
Int8PackFn pack_of(DType type) {
  const Int8PackFn own = of_level_type<PackOf, Int8PackFn>(type);
  return own != nullptr ? own : kInt8Avx512Vnni.pack(type);
}
void panel_as_vnni(const Int8Panel& a) { kInt8Avx512Vnni.panel(a); }
void round_as_vnni(const float* x, int64_t in, Int8Traits traits, Int8Piece* pieces) {
  kInt8Avx512Vnni.round(x, in, traits, pieces);
}

}  // namespace

constinit const Int8Kernel kInt8Avx512Vbmi{
    lattice_planes,     traits, kFewRows, kTurnsRows,    16,           kPanelGroups,
    sizeof(PanelBlock), few_of, pack_of,  panel_as_vnni, round_as_vnni};

}  // namespace strata
