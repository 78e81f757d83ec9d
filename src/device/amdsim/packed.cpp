// VOP3P: two values a register, mixed fused multiply-add, dot products.
#include <iterator>

#include "device/amdsim/lanes.h"
#include "device/amdsim/numbers.h"

namespace strata::amdsim {
namespace {

using u16 = uint16_t;
using i16 = int16_t;
using u32 = uint32_t;
using i32 = int32_t;

// The half of each source that a half of the result is made of, with its sign.
template <class T>
T half_of(const Source& source, const Instruction& i, int n, bool high, int l) {
  const uint8_t which = high ? i.op_sel_hi : i.op_sel, negative = high ? i.neg_hi : i.neg_lo;
  u32 bits = source.lo[l] >> ((which >> n & 1) != 0 ? 16 : 0) & 0xffffu;
  if ((negative >> n & 1) != 0) bits ^= 0x8000u;
  return make<T>(&bits, nullptr, 0);
}

template <class F>
void run_pair(Wave& wave, const Instruction& i) {
  using S = Signature<decltype(&F::operator())>;
  using R = typename S::Result;
  if (i.clamp && !is_number<R>()) wave.fail("a packed instruction that saturates is unknown to the interpreter");
  Source s[3];
  for (int n = 0; n < S::kCount; ++n) load_plain(wave, i.src[n], Width::W32, s[n]);
  alignas(64) u32 result[kMaxLanes];
  for (int l = 0; l < wave.lanes; ++l) {
    u32 halves[2];
    for (int h = 0; h < 2; ++h) {
      using A = typename S::template Parameter<0>;
      const A a = half_of<A>(s[0], i, 0, h == 1, l);
      R value;
      if constexpr (S::kCount == 2) {
        value = F{}(a, half_of<typename S::template Parameter<1>>(s[1], i, 1, h == 1, l));
      } else {
        value = F{}(a, half_of<typename S::template Parameter<1>>(s[1], i, 1, h == 1, l),
                    half_of<typename S::template Parameter<2>>(s[2], i, 2, h == 1, l));
      }
      if (i.clamp) {
        if constexpr (std::is_same_v<R, Half>) value.value = value.value > 0 ? std::min(value.value, 1.0f) : 0.0f;
      }
      put<R>(value, &halves[h], nullptr, 0);
    }
    result[l] = halves[0] | halves[1] << 16;
  }
  blend(wave, i.dst.reg, result);
}
template <class F>
OpEntry pair_op(const char* name, F) {
  return own_op(name, &run_pair<F>, 1, Type::Pair16, Flow::Vector);
}

// gfx942: two floats in two registers.
template <class F>
void run_pair_f32(Wave& wave, const Instruction& i) {
  using S = Signature<decltype(&F::operator())>;
  Source s[3];
  for (int n = 0; n < S::kCount; ++n) {
    load_plain(wave, i.src[n], Width::W64, s[n]);
    if (i.src[n].kind == Kind::Value) s[n].hi = s[n].lo;
  }
  alignas(64) u32 halves[2][kMaxLanes];
  for (int h = 0; h < 2; ++h) {
    auto value = [&](int n, int l) {
      const bool high = ((h == 1 ? i.op_sel_hi : i.op_sel) >> n & 1) != 0;
      const float x = std::bit_cast<float>(high ? s[n].hi[l] : s[n].lo[l]);
      return ((h == 1 ? i.neg_hi : i.neg_lo) >> n & 1) != 0 ? -x : x;
    };
    for (int l = 0; l < wave.lanes; ++l) {
      float result = 0;
      if constexpr (S::kCount == 2)
        result = F{}(value(0, l), value(1, l));
      else
        result = F{}(value(0, l), value(1, l), value(2, l));
      halves[h][l] = std::bit_cast<u32>(result);
    }
  }
  blend(wave, i.dst.reg, halves[0]);
  blend(wave, i.dst.reg + 1, halves[1]);
}
template <class F>
OpEntry pair_f32_op(const char* name, F) {
  return own_op(name, &run_pair_f32<F>, 1, Type::F32, Flow::Pair);
}
void pair_move(Wave& wave, const Instruction& i) {
  Source a, b;
  load_plain(wave, i.src[0], Width::W64, a);
  load_plain(wave, i.src[1], Width::W64, b);
  alignas(64) u32 lo[kMaxLanes], hi[kMaxLanes];
  for (int l = 0; l < wave.lanes; ++l) {
    lo[l] = (i.op_sel & 1) != 0 ? a.hi[l] : a.lo[l];
    hi[l] = (i.op_sel >> 1 & 1) != 0 ? b.hi[l] : b.lo[l];
  }
  blend(wave, i.dst.reg, lo);
  blend(wave, i.dst.reg + 1, hi);
  uint64_t unknown[2] = {};  // the first source gives the lower word, the second the upper one
  for (int half = 0; half < 2; ++half) {
    Operand word = i.src[half];
    if (word.words == 2 && (i.op_sel >> half & 1) != 0) ++word.reg;
    word.words = 1;
    unknown[half] = wave.undefined_lanes(word);
  }
  Operand word = i.dst;
  word.words = 1;
  wave.set_undefined(word, unknown[0]);
  ++word.reg;
  wave.set_undefined(word, unknown[1]);
}

// a · b + c, each source an f32 or half of a register; the result f32, or a half of the destination.
enum class MixTo : uint8_t { Float, Low, High };
template <MixTo to>
void fma_mix(Wave& wave, const Instruction& i) {
  Source s[3];
  for (int n = 0; n < 3; ++n) load_plain(wave, i.src[n], Width::W32, s[n]);
  auto value = [&](int n, int l) {
    const u32 bits = s[n].lo[l];
    float x = std::bit_cast<float>(bits);
    const bool number = i.src[n].kind == Kind::Value && bits > 0xffffu;  // a constant is the same in both
    if ((i.op_sel_hi >> n & 1) != 0 && !number)
      x = f16_to_f32(static_cast<u16>((i.op_sel >> n & 1) != 0 ? bits >> 16 : bits));
    if (((i.abs | i.neg_hi) >> n & 1) != 0) x = std::fabs(x);
    return ((i.neg | i.neg_lo) >> n & 1) != 0 ? -x : x;
  };
  alignas(64) u32 result[kMaxLanes];
  const u32* before = wave.row(i.dst.reg);
  for (int l = 0; l < wave.lanes; ++l) {
    float x = std::fma(value(0, l), value(1, l), value(2, l));
    if (i.clamp) x = x > 0 ? std::min(x, 1.0f) : 0.0f;
    if (to == MixTo::Float) result[l] = std::bit_cast<u32>(x);
    if (to == MixTo::Low) result[l] = f32_to_f16(x) | (before[l] & 0xffff0000u);
    if (to == MixTo::High) result[l] = static_cast<u32>(f32_to_f16(x)) << 16 | (before[l] & 0xffffu);
  }
  blend(wave, i.dst.reg, result);
}

// Bytes or halves multiplied and summed onto the third source.
void need_plain_dot(const Wave& wave, const Instruction& i) {
  if (i.clamp || i.op_sel != 0 || i.op_sel_hi != 7 || i.neg_hi != 0)
    wave.fail("this form of a dot product is unknown to the interpreter");
}
template <bool by_modifier, bool is_signed>
void dot4(Wave& wave, const Instruction& i) {
  need_plain_dot(wave, i);
  Source s[3];
  for (int n = 0; n < 3; ++n) load_plain(wave, i.src[n], Width::W32, s[n]);
  const bool sign[2] = {by_modifier ? (i.neg_lo & 1) != 0 : is_signed, by_modifier ? (i.neg_lo & 2) != 0 : is_signed};
  alignas(64) u32 result[kMaxLanes];
  for (int l = 0; l < wave.lanes; ++l) {
    u32 sum = s[2].lo[l];
    for (int k = 0; k < 4; ++k) {
      i32 product = 1;
      for (int n = 0; n < 2; ++n) {
        const auto byte = static_cast<uint8_t>(s[n].lo[l] >> 8 * k);
        product *= sign[n] ? static_cast<int8_t>(byte) : byte;
      }
      sum += static_cast<u32>(product);
    }
    result[l] = sum;
  }
  blend(wave, i.dst.reg, result);
}
template <bool brain>
void dot2(Wave& wave, const Instruction& i) {
  need_plain_dot(wave, i);
  if (i.neg_lo != 0) wave.fail("this form of a dot product is unknown to the interpreter");
  Source s[3];
  for (int n = 0; n < 3; ++n) load_plain(wave, i.src[n], Width::W32, s[n]);
  alignas(64) u32 result[kMaxLanes];
  for (int l = 0; l < wave.lanes; ++l) {
    float sum = std::bit_cast<float>(s[2].lo[l]);
    for (int h = 0; h < 2; ++h) {
      const auto a = static_cast<u16>(s[0].lo[l] >> 16 * h), b = static_cast<u16>(s[1].lo[l] >> 16 * h);
      sum = brain ? std::fma(bf16_to_f32(a), bf16_to_f32(b), sum) : std::fma(f16_to_f32(a), f16_to_f32(b), sum);
    }
    result[l] = std::bit_cast<u32>(sum);
  }
  blend(wave, i.dst.reg, result);
}

u16 shorten(unsigned value) { return static_cast<u16>(value); }
OpEntry half_result(OpEntry entry) {
  entry.keeps = false;  // the other half may be what nothing has written
  return entry;
}

}  // namespace

std::vector<OpEntry> packed_ops() {
  return {
      pair_op("v_pk_add_u16", [](u16 a, u16 b) { return shorten(unsigned{a} + b); }),
      pair_op("v_pk_sub_u16", [](u16 a, u16 b) { return shorten(unsigned{a} - b); }),
      pair_op("v_pk_add_i16", [](u16 a, u16 b) { return shorten(unsigned{a} + b); }),
      pair_op("v_pk_sub_i16", [](u16 a, u16 b) { return shorten(unsigned{a} - b); }),
      pair_op("v_pk_mul_lo_u16", [](u16 a, u16 b) { return shorten(unsigned{a} * b); }),
      pair_op("v_pk_mad_u16", [](u16 a, u16 b, u16 c) { return shorten(unsigned{a} * b + c); }),
      pair_op("v_pk_lshlrev_b16", [](u16 a, u16 b) { return shorten(unsigned{b} << (a & 15u)); }),
      pair_op("v_pk_lshrrev_b16", [](u16 a, u16 b) { return shorten(unsigned{b} >> (a & 15u)); }),
      pair_op("v_pk_ashrrev_i16", [](u16 a, i16 b) { return static_cast<i16>(b >> (a & 15u)); }),
      pair_op("v_pk_min_u16", [](u16 a, u16 b) { return std::min(a, b); }),
      pair_op("v_pk_max_u16", [](u16 a, u16 b) { return std::max(a, b); }),
      pair_op("v_pk_min_i16", [](i16 a, i16 b) { return std::min(a, b); }),
      pair_op("v_pk_max_i16", [](i16 a, i16 b) { return std::max(a, b); }),
      pair_op("v_pk_add_f16", [](Half a, Half b) { return Half{a.value + b.value}; }),
      pair_op("v_pk_mul_f16", [](Half a, Half b) { return Half{a.value * b.value}; }),
      pair_op("v_pk_fma_f16",
              [](Half a, Half b, Half c) {
                return Half{static_cast<float>(static_cast<double>(a.value) * static_cast<double>(b.value) +
                                               static_cast<double>(c.value))};
              }),
      pair_op("v_pk_max_f16", [](Half a, Half b) { return Half{largest(a.value, b.value)}; }),
      pair_op("v_pk_min_f16", [](Half a, Half b) { return Half{least(a.value, b.value)}; }),
      pair_op("v_pk_max_num_f16", [](Half a, Half b) { return Half{largest(a.value, b.value)}; }),
      pair_op("v_pk_min_num_f16", [](Half a, Half b) { return Half{least(a.value, b.value)}; }),
      pair_f32_op("v_pk_add_f32", [](float a, float b) { return a + b; }),
      pair_f32_op("v_pk_mul_f32", [](float a, float b) { return a * b; }),
      pair_f32_op("v_pk_fma_f32", [](float a, float b, float c) { return std::fma(a, b, c); }),
      own_op("v_pk_mov_b32", pair_move, 1, Type::B32),
      own_op("v_fma_mix_f32", fma_mix<MixTo::Float>, 1, Type::F32, Flow::Vector),
      half_result(own_op("v_fma_mixlo_f16", fma_mix<MixTo::Low>, 1, Type::F32, Flow::Vector)),
      half_result(own_op("v_fma_mixhi_f16", fma_mix<MixTo::High>, 1, Type::F32, Flow::Vector)),
      own_op("v_dot4_i32_iu8", dot4<true, false>, 1, Type::B32, Flow::Vector),
      own_op("v_dot4_i32_i8", dot4<false, true>, 1, Type::B32, Flow::Vector),
      own_op("v_dot4_u32_u8", dot4<false, false>, 1, Type::B32, Flow::Vector),
      own_op("v_dot2_f32_f16", dot2<false>, 1, Type::F32, Flow::Vector),
      own_op("v_dot2_f32_bf16", dot2<true>, 1, Type::F32, Flow::Vector),
  };
}

}  // namespace strata::amdsim
