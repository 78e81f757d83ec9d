#include "ops/attention/rotation.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/profile.h"
#include "evidence/parity_case.h"
#include "ops/attention/device_rotation.h"

namespace strata {

extern const KernelImage kernel_image_kv_rotation;

namespace {

// Butterflies from the widest to the narrowest: log2 n sums for each value, always the same ones.
void rotate_block(float* x, int64_t n, float scale) {
  for (int64_t half = n / 2; half > 0; half /= 2)
    for (int64_t first = 0; first < n; first += 2 * half)
      for (int64_t i = first; i < first + half; ++i) {
        const float a = x[i], b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
  for (int64_t i = 0; i < n; ++i) x[i] *= scale;
}

void rotate_on_device(Queue& queue, const Tensor& x, int64_t n, float scale) {
  if (n == 1) return;
  const int64_t heads = x.extent(1), dim = x.extent(2);
  const RotationKernel kernel{x.f32(), x.stride(0) / 4, x.stride(1) / 4, heads, dim, static_cast<int32_t>(n), scale};
  queue.launch("rotate_heads", kernel_image_kv_rotation, "kv_rotation",
               {{x.extent(0) * heads * (dim / n)}, {std::max<int64_t>(n / 2, 32)}, static_cast<uint32_t>(n * 4)},
               kernel);
}

}  // namespace

int64_t rotation_block(int64_t dim) {
  int64_t n = 1;
  while (n < 256 && dim % (2 * n) == 0) n *= 2;
  return n;
}

void rotate_heads(Queue& queue, const Tensor& x) {
  check_tensor("rotate_heads", "x", x, DType::F32, {-1, -1, -1});
  const bool on_device = queue.accelerator() != nullptr;
  const ProfileSpan span(queue.profiler, "kv_rotation", on_device ? "device" : "host");
  const int64_t heads = x.extent(1), dim = x.extent(2), n = rotation_block(dim);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(n)));
  if (on_device) return rotate_on_device(queue, x, n, scale);
  const int64_t cost = heads * dim * std::countr_zero(static_cast<uint64_t>(n));
  queue.pool().run(x.extent(0), ThreadPool::grain_of(cost), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t c = 0; c < dim; c += n) rotate_block(x[t].row<float>(h) + c, n, scale);
  });
}

void rotation_oracle(const float* x, int64_t dim, double* y) {
  const int64_t n = rotation_block(dim);
  for (int64_t c = 0; c < dim; c += n)
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        const auto value = static_cast<double>(x[c + j]);
        sum += std::popcount(static_cast<uint64_t>(i & j)) % 2 == 0 ? value : -value;
      }
      y[c + i] = sum / std::sqrt(static_cast<double>(n));
    }
}

void rotation_bound(const float* x, int64_t dim, double* bound) {
  const int64_t n = rotation_block(dim), sums = std::countr_zero(static_cast<uint64_t>(n));
  // An odd power of two has a scale that f32 rounds: 1/sqrt(2), by 0.29 u.
  const double roundings = static_cast<double>(sums + 1) + (sums % 2 == 0 ? 0 : 0.29);
  for (int64_t c = 0; c < dim; c += n) {
    double magnitude = 0;
    for (int64_t j = 0; j < n; ++j) magnitude += std::fabs(static_cast<double>(x[c + j]));
    for (int64_t i = 0; i < n; ++i)
      bound[c + i] = gamma(roundings) * magnitude / std::sqrt(static_cast<double>(n)) + 0x1p-149;
  }
}

}  // namespace strata
