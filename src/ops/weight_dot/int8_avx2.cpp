#include "ops/weight_dot/grid.h"
#include "ops/weight_dot/int8_kernel_avx2.h"
#include "ops/weight_dot/int8_round_avx2.h"

namespace strata {
namespace {

template <DType type>
struct FewOf {
  static constexpr Int8FewFn value = few<type>;
};
Int8FewFn few_of(DType type) { return of_level_type<FewOf, Int8FewFn>(type); }
Int8PackFn no_panels(DType) { return nullptr; }

}  // namespace

constinit const Int8Kernel kInt8Avx2{lattice_grid, int8_traits, INT64_MAX, INT64_MAX, 4, 1, 0,
                                     few_of,       no_panels,   nullptr,   round_row};

}  // namespace strata
