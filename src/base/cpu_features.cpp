#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace strata {
namespace {

#if defined(__x86_64__)
// clang's __builtin_cpu_supports does not know this one.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

bool CpuFeatures::has(CpuIsa isa) const {
  switch (isa) {
    case CpuIsa::Portable: return true;
    case CpuIsa::Avx2: return avx2;
    case CpuIsa::Avx512: return avx512;
    case CpuIsa::Avx512Vnni: return avx512 && avx512_vnni;
    case CpuIsa::Avx512Vbmi: return avx512 && avx512_vnni && avx512_vbmi;
    case CpuIsa::Avx512Bf16: return avx512 && avx512_bf16;
  }
  return false;
}

std::string CpuFeatures::refusal(CpuIsa isa) const {
  return has(isa) ? std::string() : "this processor has no " + to_string(isa) + " (or cpu.isa leaves it out)";
}

CpuFeatures CpuFeatures::limited_to(CpuIsa isa) const {
  CpuFeatures rest = *this;
  if (isa < CpuIsa::Avx512Bf16) rest.avx512_bf16 = false;
  if (isa < CpuIsa::Avx512Vbmi) rest.avx512_vbmi = false;
  if (isa < CpuIsa::Avx512Vnni) rest.avx512_vnni = false;
  if (isa < CpuIsa::Avx512) rest.avx512 = false;
  if (isa < CpuIsa::Avx2) rest.avx2 = false;
  return rest;
}

CpuFeatures cpu_features() {
  CpuFeatures found;
#if defined(__x86_64__)
  found.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  found.avx512 = found.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  found.avx512_vnni = found.avx512 && __builtin_cpu_supports("avx512vnni");
  found.avx512_vbmi = found.avx512_vnni && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("gfni");
  found.avx512_bf16 = found.avx512 && __builtin_cpu_supports("avx512bf16");
#endif
  return found;
}

std::string to_string(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::Portable: return "portable code";
    case CpuIsa::Avx2: return "AVX2 with FMA and F16C";
    case CpuIsa::Avx512: return "AVX-512";
    case CpuIsa::Avx512Vnni: return "AVX-512 VNNI";
    case CpuIsa::Avx512Vbmi: return "AVX-512 VBMI with GFNI";
    case CpuIsa::Avx512Bf16: return "AVX-512 BF16";
  }
  return {};
}

std::string describe(const CpuFeatures& features) {
#if defined(__x86_64__)
  std::string text = "x86-64";
#else
  std::string text = "portable";
#endif
  if (features.avx2) text += ", AVX2";
  if (features.avx512) text += ", AVX-512";
  if (features.avx512_vnni) text += " VNNI";
  if (features.avx512_vbmi) text += " VBMI";
  if (features.avx512_bf16) text += " BF16";
  return text;
}

}  // namespace strata
