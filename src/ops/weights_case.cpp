#include "ops/weights_case.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "evidence/parity_case.h"
#include "gguf/quant.h"

namespace strata {
namespace {

bool ordinary(const std::vector<float>& values) {
  double largest = 0;
  for (float value : values) {
    if (!std::isfinite(value)) return false;
    largest = std::max(largest, std::fabs(static_cast<double>(value)));
  }
  return largest > 0.01 && largest < 100;
}

void random_block(const DTypeInfo& type, void* block, Random& random) {
  std::vector<float> decoded(type.block_elements);
  for (int tries = 0; tries < 100000; ++tries) {
    for (uint32_t i = 0; i < type.block_bytes; ++i)
      static_cast<uint8_t*>(block)[i] = static_cast<uint8_t>(random.next());
    gguf::decoder(type.type)(block, decoded.data(), type.block_elements);
    if (ordinary(decoded)) return;
  }
  throw Error(ErrorKind::Evidence, "no ordinary block of " + std::string(type.name));
}

void random_plain(const DTypeInfo& type, void* element, Random& random) {
  const int64_t small = random.below(256) - 128;  // little-endian: the low bytes are the narrower integer
  const double real = static_cast<double>(random.uniform(-1, 1));
  if (type.type == DType::F64)
    std::memcpy(element, &real, sizeof real);
  else
    std::memcpy(element, &small, type.block_bytes);
}

}  // namespace

void fill_weights(const Tensor& weight, Random& random) {
  const DTypeInfo& type = info(weight.dtype);
  const int64_t width = weight.extent(weight.rank - 1);
  std::vector<float> values(static_cast<size_t>(width));
  for_each_row(weight, [&](void* row) {
    if (gguf::has_encoder(weight.dtype)) {
      for (float& value : values) value = random.uniform(-1, 1);
      return gguf::encoder(weight.dtype)(values.data(), row, width);
    }
    for (int64_t i = 0; i < width / type.block_elements; ++i) {
      auto* block = static_cast<char*>(row) + i * type.block_bytes;
      type.block_elements == 1 ? random_plain(type, block, random) : random_block(type, block, random);
    }
  });
}

}  // namespace strata
