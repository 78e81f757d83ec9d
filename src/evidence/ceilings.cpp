#include "evidence/ceilings.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/buffer.h"
#include "evidence/arm.h"
#include "evidence/ceilings_kernels.h"

namespace strata {
namespace {

constexpr int kRounds = 5;                        // the best counts: a ceiling is what the machine can do
constexpr int64_t kIterations = 200'000;          // about a millisecond
constexpr size_t kCopyBytes = size_t{192} << 20;  // past the caches of the machines this runs on

template <class F>
double seconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double peak_of(ThreadPool& pool, PeakLoop loop) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    double operations = 0;
    const double time = seconds([&] {
      pool.run(pool.threads(), 1, [&](int64_t begin, int64_t end, int share) {
        for (int64_t i = begin; i < end; ++i) {
          float values[64];
          for (int k = 0; k < 64; ++k) values[k] = 0.5f + static_cast<float>(k + share) * 1e-3f;
          const double one = loop(kIterations, values);
          if (share == 0) operations = one * static_cast<double>(kIterations);
        }
      });
    });
    best = std::max(best, operations * pool.threads() / time);
  }
  return best;
}

double copy_bandwidth(ThreadPool& pool, Buffer& from, Buffer& to) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double time = seconds([&] {
      pool.run(static_cast<int64_t>(kCopyBytes), 4096, [&](int64_t begin, int64_t end, int) {
        std::memcpy(static_cast<char*>(to.data()) + begin, static_cast<const char*>(from.data()) + begin,
                    static_cast<size_t>(end - begin));
      });
    });
    best = std::max(best, 2.0 * static_cast<double>(kCopyBytes) / time);
  }
  return best;
}

double read_bandwidth(ThreadPool& pool, const Buffer& from, ReadLoop loop) {
  double best = 0;
  std::vector<float> sums(static_cast<size_t>(pool.threads()));
  for (int round = 0; round < kRounds; ++round) {
    const double time = seconds([&] {
      pool.run(static_cast<int64_t>(kCopyBytes / sizeof(float)), 1024, [&](int64_t begin, int64_t end, int share) {
        sums[static_cast<size_t>(share)] = loop(static_cast<const float*>(from.data()) + begin, end - begin);
      });
    });
    best = std::max(best, static_cast<double>(kCopyBytes) / time);
  }
  return best;
}

}  // namespace

Ceilings measure_ceilings(ThreadPool& pool, const CpuFeatures& cpu) {
  Ceilings result;
  result.threads = pool.threads();
  Buffer from(kCopyBytes), to(kCopyBytes);
  std::memset(from.data(), 0, kCopyBytes);
  std::memset(to.data(), 0, kCopyBytes);
  result.copy_bytes = copy_bandwidth(pool, from, to);
  result.read_bytes = read_bandwidth(pool, from, cpu.avx512 ? read_avx512 : cpu.avx2 ? read_avx2 : read_portable);
  result.list.push_back({"copy (read + written)", "memory", result.copy_bytes, true});
  result.list.push_back({"read", "memory", result.read_bytes, true});
  const struct {
    const char* name;
    CpuIsa isa;
    PeakLoop loop;
    double Ceilings::*best;
  } loops[] = {
      {"f32 multiply-add", CpuIsa::Portable, peak_f32_portable, &Ceilings::f32},
      {"f32 multiply-add", CpuIsa::Avx2, peak_f32_avx2, &Ceilings::f32},
      {"f32 multiply-add", CpuIsa::Avx512, peak_f32_avx512, &Ceilings::f32},
      {"bf16 multiply-add", CpuIsa::Avx512Bf16, peak_bf16_avx512, &Ceilings::bf16},
      {"int8 multiply-add", CpuIsa::Avx2, peak_int8_avx2, &Ceilings::int8},
      {"int8 multiply-add", CpuIsa::Avx512Vnni, peak_int8_avx512, &Ceilings::int8},
  };
  for (const auto& one : loops) {
    if (!cpu.has(one.isa)) continue;
    const double peak = peak_of(pool, one.loop);
    result.list.push_back({one.name, cpu_class(one.isa), peak, false});
    result.*one.best = std::max(result.*one.best, peak);
  }
  // Without an instruction of its own a narrower type is converted and multiplied as f32.
  result.bf16 = std::max(result.bf16, result.f32);
  result.int8 = std::max(result.int8, result.f32);
  return result;
}

}  // namespace strata
