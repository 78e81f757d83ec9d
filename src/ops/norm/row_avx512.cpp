#include "ops/norm/norm_row.h"

namespace strata {
void norm_row_avx512(const NormRow& row) { norm_row(row); }
}  // namespace strata
