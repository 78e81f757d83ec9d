#include "unit/base/simd_form.h"

namespace strata {
constinit const SimdForm kSimdAvx2 = form_of("avx2");
}
