#include "ops/gated_delta/chunk_kernel.h"

namespace strata {

const ChunkKernels& delta_chunk_portable() { return kChunkKernels; }

}  // namespace strata
