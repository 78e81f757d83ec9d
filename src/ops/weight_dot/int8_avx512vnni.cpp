#include "ops/weight_dot/int8_kernel.h"
#include "ops/weight_dot/int8_round.h"

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
Int8FewFn few_of(DType type) { return of_level_type<FewOf, Int8FewFn>(type); }
Int8PackFn pack_of(DType type) { return of_level_type<PackOf, Int8PackFn>(type); }

}  // namespace

constinit const Int8Kernel kInt8Avx512Vnni{true,   kFewRows, 16,    2,         sizeof(PanelBlock),
                                           few_of, pack_of,  panel, round_row, activate};

}  // namespace strata
