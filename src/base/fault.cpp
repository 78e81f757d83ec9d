#include "base/fault.h"

#if defined(STRATA_FAULTS)
namespace strata {
Fault active_fault = Fault::None;
int fault_hits = 0;
}
#endif
