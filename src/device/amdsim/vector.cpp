// VOP1, VOP2, VOP3: whole numbers and floats, lane by lane.
#include <iterator>

#include "device/amdsim/lanes.h"
#include "device/amdsim/numbers.h"

namespace strata::amdsim {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

u32 product(u32 a, u32 b) { return a * b; }

// Bytes of b (0 to 3) and of a (4 to 7) by the bytes of the selector; 12: zeros, above: ones, 8 to 11: signs.
u32 permuted(u32 a, u32 b, u32 selector) {
  const u64 bytes = static_cast<u64>(a) << 32 | b;
  u32 result = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 which = selector >> 8 * k & 255u;
    u32 byte = 0;
    if (which < 8)
      byte = static_cast<u32>(bytes >> 8 * which) & 255u;
    else if (which < 12)
      byte = (bytes >> (16 * (which - 8) + 15) & 1u) != 0 ? 255u : 0u;
    else if (which > 12)
      byte = 255u;
    result |= byte << 8 * k;
  }
  return result;
}

template <class T>
T scaled(T value, i32 exponent) {
  return std::ldexp(value, std::clamp(exponent, -4000, 4000));
}
template <class T>
T fraction(T value) {
  const T below = value - std::floor(value);
  return below >= 1 ? std::nextafter(T{1}, T{0}) : below;
}
template <class T>
i32 exponent_of(T value) {
  int exponent = 0;
  if (std::isfinite(value)) (void)std::frexp(value, &exponent);
  return exponent;
}
template <class T>
T mantissa_of(T value) {
  int exponent = 0;
  return std::isfinite(value) ? std::frexp(value, &exponent) : value;
}

// Saturation where the instruction asks for it.
template <class F, class Saturating>
void run_clamped(Wave& wave, const Instruction& i) {
  if (i.clamp)
    run_vector<Saturating>(wave, i);
  else
    run_vector<F>(wave, i);
}
template <class F, class Saturating>
constexpr OpEntry clamped_op(const char* name, F f, Saturating) {
  OpEntry entry = vector_op(name, f);
  entry.run = &run_clamped<F, Saturating>;
  return entry;
}

const OpEntry kMoves[] = {
    vector_op("v_mov_b32", [](u32 a) { return a; }),
    pair_words_op("v_mov_b64", [](u64 a) { return a; }),
    vector_op("v_accvgpr_read_b32", [](u32 a) { return a; }),
    vector_op("v_accvgpr_write_b32", [](u32 a) { return a; }),
    vector_op("v_not_b32", [](u32 a) { return ~a; }),
    vector_op("v_bfrev_b32", [](u32 a) { return reversed(a); }),
    vector_op("v_ffbh_u32", [](u32 a) { return leading_zeros(a); }),
    vector_op("v_clz_i32_u32", [](u32 a) { return leading_zeros(a); }),
    vector_op("v_ffbl_b32", [](u32 a) { return trailing_zeros(a); }),
    vector_op("v_ctz_i32_b32", [](u32 a) { return trailing_zeros(a); }),
    vector_op("v_ffbh_i32", [](u32 a) { return leading_signs(a); }),
    vector_op("v_cls_i32", [](u32 a) { return leading_signs(a); }),
    vector_op("v_bcnt_u32_b32", [](u32 a, u32 b) { return static_cast<u32>(std::popcount(a)) + b; }),
};

const OpEntry kWhole[] = {
    clamped_op(
        "v_add_u32", [](u32 a, u32 b) { return a + b; }, [](u32 a, u32 b) { return a + b < a ? ~0u : a + b; }),
    clamped_op(
        "v_sub_u32", [](u32 a, u32 b) { return a - b; }, [](u32 a, u32 b) { return a < b ? 0u : a - b; }),
    clamped_op(
        "v_subrev_u32", [](u32 a, u32 b) { return b - a; }, [](u32 a, u32 b) { return b < a ? 0u : b - a; }),
    clamped_op(
        "v_add_nc_u32", [](u32 a, u32 b) { return a + b; }, [](u32 a, u32 b) { return a + b < a ? ~0u : a + b; }),
    clamped_op(
        "v_sub_nc_u32", [](u32 a, u32 b) { return a - b; }, [](u32 a, u32 b) { return a < b ? 0u : a - b; }),
    clamped_op(
        "v_subrev_nc_u32", [](u32 a, u32 b) { return b - a; }, [](u32 a, u32 b) { return b < a ? 0u : b - a; }),
    vector_op("v_add3_u32", [](u32 a, u32 b, u32 c) { return a + b + c; }),
    vector_op("v_add_lshl_u32", [](u32 a, u32 b, u32 c) { return (a + b) << (c & 31u); }),
    vector_op("v_lshl_add_u32", [](u32 a, u32 b, u32 c) { return (a << (b & 31u)) + c; }),
    upward_op("v_lshl_add_u64", [](u64 a, u32 b, u64 c) { return (a << (b & 7u)) + c; }),
    vector_op("v_xad_u32", [](u32 a, u32 b, u32 c) { return (a ^ b) + c; }),
    vector_op("v_mul_lo_u32", [](u32 a, u32 b) { return a * b; }),
    vector_op("v_mul_hi_u32", [](u32 a, u32 b) { return static_cast<u32>(static_cast<u64>(a) * b >> 32); }),
    vector_op("v_mul_hi_i32", [](i32 a, i32 b) { return static_cast<i32>(static_cast<i64>(a) * b >> 32); }),
    vector_op("v_mul_u32_u24", [](u32 a, u32 b) { return (a & 0xffffffu) * (b & 0xffffffu); }),
    vector_op("v_mul_hi_u32_u24",
              [](u32 a, u32 b) { return static_cast<u32>(static_cast<u64>(a & 0xffffffu) * (b & 0xffffffu) >> 32); }),
    vector_op("v_mul_i32_i24",
              [](i32 a, i32 b) { return product(static_cast<u32>(low24(a)), static_cast<u32>(low24(b))); }),
    vector_op("v_mul_hi_i32_i24",
              [](i32 a, i32 b) { return static_cast<i32>(static_cast<i64>(low24(a)) * low24(b) >> 32); }),
    vector_op("v_mad_u32_u24", [](u32 a, u32 b, u32 c) { return (a & 0xffffffu) * (b & 0xffffffu) + c; }),
    vector_op("v_mad_i32_i24",
              [](i32 a, i32 b, i32 c) {
                return product(static_cast<u32>(low24(a)), static_cast<u32>(low24(b))) + static_cast<u32>(c);
              }),
    vector_op("v_min_i32", [](i32 a, i32 b) { return std::min(a, b); }),
    vector_op("v_max_i32", [](i32 a, i32 b) { return std::max(a, b); }),
    vector_op("v_min_u32", [](u32 a, u32 b) { return std::min(a, b); }),
    vector_op("v_max_u32", [](u32 a, u32 b) { return std::max(a, b); }),
    vector_op("v_min3_i32", [](i32 a, i32 b, i32 c) { return std::min(std::min(a, b), c); }),
    vector_op("v_max3_i32", [](i32 a, i32 b, i32 c) { return std::max(std::max(a, b), c); }),
    vector_op("v_min3_u32", [](u32 a, u32 b, u32 c) { return std::min(std::min(a, b), c); }),
    vector_op("v_max3_u32", [](u32 a, u32 b, u32 c) { return std::max(std::max(a, b), c); }),
    vector_op("v_med3_i32", [](i32 a, i32 b, i32 c) { return middle(a, b, c); }),
    vector_op("v_med3_u32", [](u32 a, u32 b, u32 c) { return middle(a, b, c); }),
    vector_op("v_maxmin_i32", [](i32 a, i32 b, i32 c) { return std::min(std::max(a, b), c); }),
    vector_op("v_minmax_i32", [](i32 a, i32 b, i32 c) { return std::max(std::min(a, b), c); }),
    vector_op("v_maxmin_u32", [](u32 a, u32 b, u32 c) { return std::min(std::max(a, b), c); }),
    vector_op("v_minmax_u32", [](u32 a, u32 b, u32 c) { return std::max(std::min(a, b), c); }),
};

const OpEntry kBits[] = {
    vector_op("v_and_b32", [](u32 a, u32 b) { return a & b; }),
    vector_op("v_or_b32", [](u32 a, u32 b) { return a | b; }),
    vector_op("v_xor_b32", [](u32 a, u32 b) { return a ^ b; }),
    vector_op("v_xnor_b32", [](u32 a, u32 b) { return ~(a ^ b); }),
    vector_op("v_and_or_b32", [](u32 a, u32 b, u32 c) { return (a & b) | c; }),
    vector_op("v_or3_b32", [](u32 a, u32 b, u32 c) { return a | b | c; }),
    vector_op("v_xor3_b32", [](u32 a, u32 b, u32 c) { return a ^ b ^ c; }),
    vector_op("v_lshl_or_b32", [](u32 a, u32 b, u32 c) { return (a << (b & 31u)) | c; }),
    vector_op("v_lshlrev_b32", [](u32 a, u32 b) { return b << (a & 31u); }),
    vector_op("v_lshrrev_b32", [](u32 a, u32 b) { return b >> (a & 31u); }),
    vector_op("v_ashrrev_i32", [](u32 a, i32 b) { return b >> (a & 31u); }),
    upward_op("v_lshlrev_b64", [](u32 a, u64 b) { return b << (a & 63u); }),
    vector_op("v_lshrrev_b64", [](u32 a, u64 b) { return b >> (a & 63u); }),
    vector_op("v_ashrrev_i64", [](u32 a, i64 b) { return b >> (a & 63u); }),
    vector_op("v_alignbit_b32",
              [](u32 a, u32 b, u32 c) { return static_cast<u32>((static_cast<u64>(a) << 32 | b) >> (c & 31u)); }),
    vector_op("v_alignbyte_b32",
              [](u32 a, u32 b, u32 c) { return static_cast<u32>((static_cast<u64>(a) << 32 | b) >> 8 * (c & 3u)); }),
    vector_op("v_bfe_u32", [](u32 a, u32 b, u32 c) { return field(a, b, c); }),
    vector_op("v_bfe_i32", [](i32 a, u32 b, u32 c) { return signed_field(a, b, c); }),
    vector_op("v_bfi_b32", [](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }),
    vector_op("v_bfm_b32", [](u32 a, u32 b) { return ((1u << (a & 31u)) - 1) << (b & 31u); }),
    vector_op("v_perm_b32", [](u32 a, u32 b, u32 c) { return permuted(a, b, c); }),
};

const OpEntry kSingle[] = {
    vector_op("v_add_f32", [](float a, float b) { return a + b; }),
    vector_op("v_sub_f32", [](float a, float b) { return a - b; }),
    vector_op("v_subrev_f32", [](float a, float b) { return b - a; }),
    vector_op("v_mul_f32", [](float a, float b) { return a * b; }),
    vector_op("v_fma_f32", Fused{}),
    vector_op("v_fmaak_f32", Fused{}),
    vector_op("v_fmamk_f32", Fused{}),
    accumulate_op("v_fmac_f32", Fused{}),
    vector_op("v_min_f32", [](float a, float b) { return least(a, b); }),
    vector_op("v_max_f32", [](float a, float b) { return largest(a, b); }),
    vector_op("v_min_num_f32", [](float a, float b) { return least(a, b); }),
    vector_op("v_max_num_f32", [](float a, float b) { return largest(a, b); }),
    vector_op("v_min3_f32", [](float a, float b, float c) { return least(least(a, b), c); }),
    vector_op("v_max3_f32", [](float a, float b, float c) { return largest(largest(a, b), c); }),
    vector_op("v_min3_num_f32", [](float a, float b, float c) { return least(least(a, b), c); }),
    vector_op("v_max3_num_f32", [](float a, float b, float c) { return largest(largest(a, b), c); }),
    vector_op("v_med3_f32", [](float a, float b, float c) { return middle_f32(a, b, c); }),
    vector_op("v_med3_num_f32", [](float a, float b, float c) { return middle_f32(a, b, c); }),
    vector_op("v_rcp_f32", [](float a) { return 1.0f / a; }),
    vector_op("v_rcp_iflag_f32", [](float a) { return 1.0f / a; }),
    vector_op("v_rsq_f32", [](float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }),
    vector_op("v_sqrt_f32", [](float a) { return std::sqrt(a); }),
    vector_op("v_exp_f32", [](float a) { return std::exp2(a); }),
    vector_op("v_log_f32", [](float a) { return std::log2(a); }),
    vector_op("v_sin_f32",
              [](float a) { return static_cast<float>(std::sin(6.283185307179586 * static_cast<double>(a))); }),
    vector_op("v_cos_f32",
              [](float a) { return static_cast<float>(std::cos(6.283185307179586 * static_cast<double>(a))); }),
    vector_op("v_floor_f32", [](float a) { return std::floor(a); }),
    vector_op("v_ceil_f32", [](float a) { return std::ceil(a); }),
    vector_op("v_trunc_f32", [](float a) { return std::trunc(a); }),
    vector_op("v_rndne_f32", [](float a) { return std::nearbyint(a); }),
    vector_op("v_fract_f32", [](float a) { return fraction(a); }),
    vector_op("v_ldexp_f32", [](float a, i32 b) { return scaled(a, b); }),
    vector_op("v_frexp_exp_i32_f32", [](float a) { return exponent_of(a); }),
    vector_op("v_frexp_mant_f32", [](float a) { return mantissa_of(a); }),
};

const OpEntry kDouble[] = {
    vector_op("v_add_f64", [](double a, double b) { return a + b; }),
    vector_op("v_mul_f64", [](double a, double b) { return a * b; }),
    vector_op("v_fma_f64", [](double a, double b, double c) { return std::fma(a, b, c); }),
    accumulate_op("v_fmac_f64", [](double a, double b, double c) { return std::fma(a, b, c); }),
    vector_op("v_min_f64", [](double a, double b) { return least(a, b); }),
    vector_op("v_max_f64", [](double a, double b) { return largest(a, b); }),
    vector_op("v_min_num_f64", [](double a, double b) { return least(a, b); }),
    vector_op("v_max_num_f64", [](double a, double b) { return largest(a, b); }),
    vector_op("v_rcp_f64", [](double a) { return 1.0 / a; }),
    vector_op("v_rsq_f64", [](double a) { return 1.0 / std::sqrt(a); }),
    vector_op("v_sqrt_f64", [](double a) { return std::sqrt(a); }),
    vector_op("v_floor_f64", [](double a) { return std::floor(a); }),
    vector_op("v_ceil_f64", [](double a) { return std::ceil(a); }),
    vector_op("v_trunc_f64", [](double a) { return std::trunc(a); }),
    vector_op("v_rndne_f64", [](double a) { return std::nearbyint(a); }),
    vector_op("v_fract_f64", [](double a) { return fraction(a); }),
    vector_op("v_ldexp_f64", [](double a, i32 b) { return scaled(a, b); }),
    vector_op("v_frexp_exp_i32_f64", [](double a) { return exponent_of(a); }),
    vector_op("v_frexp_mant_f64", [](double a) { return mantissa_of(a); }),
};

const OpEntry kConversions[] = {
    vector_op("v_cvt_f32_i32", [](i32 a) { return static_cast<float>(a); }),
    vector_op("v_cvt_f32_u32", [](u32 a) { return static_cast<float>(a); }),
    vector_op("v_cvt_i32_f32", [](float a) { return to_whole<i32>(static_cast<double>(a)); }),
    vector_op("v_cvt_u32_f32", [](float a) { return to_whole<u32>(static_cast<double>(a)); }),
    vector_op("v_cvt_f64_i32", [](i32 a) { return static_cast<double>(a); }),
    vector_op("v_cvt_f64_u32", [](u32 a) { return static_cast<double>(a); }),
    vector_op("v_cvt_i32_f64", [](double a) { return to_whole<i32>(a); }),
    vector_op("v_cvt_u32_f64", [](double a) { return to_whole<u32>(a); }),
    vector_op("v_cvt_f32_f64", [](double a) { return static_cast<float>(a); }),
    vector_op("v_cvt_f64_f32", [](float a) { return static_cast<double>(a); }),
    vector_op("v_cvt_f32_ubyte0", [](u32 a) { return static_cast<float>(a & 255u); }),
    vector_op("v_cvt_f32_ubyte1", [](u32 a) { return static_cast<float>(a >> 8 & 255u); }),
    vector_op("v_cvt_f32_ubyte2", [](u32 a) { return static_cast<float>(a >> 16 & 255u); }),
    vector_op("v_cvt_f32_ubyte3", [](u32 a) { return static_cast<float>(a >> 24); }),
};

}  // namespace

std::vector<OpEntry> vector_ops() {
  std::vector<OpEntry> all;
  auto add = [&all](const auto& table) {
    for (const OpEntry& entry : table) all.push_back(entry);
  };
  add(kMoves);
  add(kWhole);
  add(kBits);
  add(kSingle);
  add(kDouble);
  add(kConversions);
  return all;
}

}  // namespace strata::amdsim
