#include "unit/base/simd_form.h"

namespace strata {
constinit const SimdForm kSimdAvx512 = form_of("avx512");
}
