#include "evidence/ceilings_kernels.h"
#include "evidence/ceilings_loops.h"

namespace strata {

double peak_f32_avx512(int64_t iterations, float* values) { return peak_f32<16>(iterations, values); }
float read_avx512(const float* values, int64_t n) { return read_sum(values, n); }

}  // namespace strata
