// Numbers of 16 bits: VOP2 and VOP3 forms, halves of registers.
#include <iterator>

#include "device/amdsim/lanes.h"
#include "device/amdsim/numbers.h"

namespace strata::amdsim {
namespace {

using u16 = uint16_t;
using i16 = int16_t;

u16 shorten(unsigned value) { return static_cast<u16>(value); }
// One rounding: the product of two halves is exact in f64 and so is nearly every sum.
Half fused(Half a, Half b, Half c) {
  return {
      static_cast<float>(static_cast<double>(a.value) * static_cast<double>(b.value) + static_cast<double>(c.value))};
}

const OpEntry kHalf[] = {
    vector_op("v_add_u16", [](u16 a, u16 b) { return shorten(unsigned{a} + b); }),
    vector_op("v_sub_u16", [](u16 a, u16 b) { return shorten(unsigned{a} - b); }),
    vector_op("v_subrev_u16", [](u16 a, u16 b) { return shorten(unsigned{b} - a); }),
    vector_op("v_add_nc_u16", [](u16 a, u16 b) { return shorten(unsigned{a} + b); }),
    vector_op("v_sub_nc_u16", [](u16 a, u16 b) { return shorten(unsigned{a} - b); }),
    vector_op("v_add_nc_i16", [](u16 a, u16 b) { return shorten(unsigned{a} + b); }),
    vector_op("v_sub_nc_i16", [](u16 a, u16 b) { return shorten(unsigned{a} - b); }),
    vector_op("v_mul_lo_u16", [](u16 a, u16 b) { return shorten(unsigned{a} * b); }),
    vector_op("v_mad_u16", [](u16 a, u16 b, u16 c) { return shorten(unsigned{a} * b + c); }),
    vector_op("v_mad_legacy_u16", [](u16 a, u16 b, u16 c) { return shorten(unsigned{a} * b + c); }),
    vector_op("v_lshlrev_b16", [](u16 a, u16 b) { return shorten(unsigned{b} << (a & 15u)); }),
    vector_op("v_lshrrev_b16", [](u16 a, u16 b) { return shorten(unsigned{b} >> (a & 15u)); }),
    vector_op("v_ashrrev_i16", [](u16 a, i16 b) { return static_cast<i16>(b >> (a & 15u)); }),
    vector_op("v_min_u16", [](u16 a, u16 b) { return std::min(a, b); }),
    vector_op("v_max_u16", [](u16 a, u16 b) { return std::max(a, b); }),
    vector_op("v_min_i16", [](i16 a, i16 b) { return std::min(a, b); }),
    vector_op("v_max_i16", [](i16 a, i16 b) { return std::max(a, b); }),
    vector_op("v_and_b16", [](u16 a, u16 b) { return shorten(unsigned{a} & b); }),
    vector_op("v_or_b16", [](u16 a, u16 b) { return shorten(unsigned{a} | b); }),
    vector_op("v_xor_b16", [](u16 a, u16 b) { return shorten(unsigned{a} ^ b); }),
    vector_op("v_mov_b16", [](u16 a) { return a; }),
    vector_op("v_cvt_f16_f32", [](float a) { return Half{a}; }),
    vector_op("v_cvt_f32_f16", [](Half a) { return a.value; }),
    vector_op("v_cvt_f16_u16", [](u16 a) { return Half{static_cast<float>(a)}; }),
    vector_op("v_cvt_f16_i16", [](i16 a) { return Half{static_cast<float>(a)}; }),
    vector_op("v_cvt_u16_f16", [](Half a) { return to_whole<u16>(a.value); }),
    vector_op("v_cvt_i16_f16", [](Half a) { return to_whole<i16>(a.value); }),
    vector_op("v_add_f16", [](Half a, Half b) { return Half{a.value + b.value}; }),
    vector_op("v_sub_f16", [](Half a, Half b) { return Half{a.value - b.value}; }),
    vector_op("v_mul_f16", [](Half a, Half b) { return Half{a.value * b.value}; }),
    vector_op("v_fma_f16", [](Half a, Half b, Half c) { return fused(a, b, c); }),
    vector_op("v_max_f16", [](Half a, Half b) { return Half{largest(a.value, b.value)}; }),
    vector_op("v_min_f16", [](Half a, Half b) { return Half{least(a.value, b.value)}; }),
    vector_op("v_max_num_f16", [](Half a, Half b) { return Half{largest(a.value, b.value)}; }),
    vector_op("v_min_num_f16", [](Half a, Half b) { return Half{least(a.value, b.value)}; }),
    accumulate_op("v_fmac_f16", [](Half a, Half b, Half c) { return fused(a, b, c); }),
    vector_op("v_pack_b32_f16", [](u16 a, u16 b) { return uint32_t{a} | uint32_t{b} << 16; }),
};

}  // namespace

std::vector<OpEntry> vector_half_ops() { return {std::begin(kHalf), std::end(kHalf)}; }

}  // namespace strata::amdsim
