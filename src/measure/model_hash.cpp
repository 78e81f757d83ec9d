#include "measure/model_hash.h"

#include <algorithm>

#include "base/hash.h"

namespace strata {

uint64_t model_hash(const gguf::File& file) {
  constexpr size_t kSample = 256;
  uint64_t hash = file.file_bytes();
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    const uint64_t fixed[] = {static_cast<uint64_t>(tensor.type), tensor.ne[0], tensor.ne[1], tensor.ne[2],
                              tensor.ne[3]};
    hash = hash64(fixed, sizeof fixed, hash64(tensor.name.data(), tensor.name.size(), hash));
    const size_t bytes = tensor.bytes;
    hash = hash64(file.data(tensor), std::min(bytes, kSample), hash);
    if (bytes > kSample) hash = hash64(file.data(tensor) + (bytes - kSample), kSample, hash);
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace strata
