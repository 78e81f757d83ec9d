#include "unit/base/simd_form.h"

namespace strata {
constinit const SimdForm kSimdPortable = form_of("portable");
}
