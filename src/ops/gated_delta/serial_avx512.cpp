#include "ops/gated_delta/serial_kernel.h"

namespace strata {

const SerialKernels& delta_serial_avx512() {
  static constexpr SerialKernels kKernels{normalise_row, exp_row, serial_slice};
  return kKernels;
}

}  // namespace strata
