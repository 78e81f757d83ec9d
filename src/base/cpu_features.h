// What the processor can do, as far as arms ask. A build runs on any x86-64 (and elsewhere) and picks at run time.
#pragma once

#include <string>
#include <string_view>

namespace strata {

enum class CpuIsa {
  Portable,
  Avx2,        // with FMA and F16C
  Avx512,      // F, BW, DQ, VL
  Avx512Vnni,  // and VNNI
  Avx512Vbmi,  // and VBMI, GFNI
  Avx512Bf16,  // and BF16
};

struct CpuFeatures {
  bool avx2 = false, avx512 = false, avx512_vnni = false, avx512_vbmi = false, avx512_bf16 = false;

  bool has(CpuIsa isa) const;
  // Why an arm for `isa` cannot run: "this processor has no AVX-512"; empty: it can.
  std::string refusal(CpuIsa isa) const;
  // Without what lies above `isa`: Portable leaves nothing, Avx2 no AVX-512, Avx512 no VNNI, VBMI and BF16.
  CpuFeatures limited_to(CpuIsa isa) const;
};

CpuFeatures cpu_features();  // of this processor and what the operating system saves

std::string to_string(CpuIsa isa);                  // "AVX-512 BF16"
std::string describe(const CpuFeatures& features);  // "x86-64, AVX2, AVX-512 VNNI VBMI BF16"

}  // namespace strata
