// SOP1, SOP2, SOPC, SOPK: what a wave computes once.
#include <iterator>

#include "device/amdsim/lanes.h"
#include "device/amdsim/numbers.h"

namespace strata::amdsim {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

// How undefined bits of the sources spread: to all of the result; also from SCC; bit by bit; to those above.
enum class Spread : uint8_t { Whole, Carry, Bits, Upward };

u64 undefined_bits(const Wave& wave, const Operand& operand) {
  if (operand.kind != Kind::Scalar || operand.reg == kNull) return 0;
  if (operand.reg == kScc) return wave.scc_undefined ? 1 : 0;
  u64 bits = wave.s_undefined[operand.reg];
  if (operand.words > 1) bits |= static_cast<u64>(wave.s_undefined[operand.reg + 1]) << 32;
  return bits;
}

template <class T>
T value_of(u64 bits) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<u32>(bits));
  else
    return static_cast<T>(bits);
}
template <class R>
u64 bits_of(R value) {
  if constexpr (std::is_same_v<R, float>)
    return std::bit_cast<u32>(value);
  else if constexpr (sizeof(R) == 4)
    return static_cast<u32>(value);
  else
    return static_cast<u64>(value);
}

// Parameters of F: one to three values, then perhaps bool& for SCC. Its result: a value, or a bool that is SCC.
template <class F>
struct Form {
  using S = Signature<decltype(&F::operator())>;
  using R = typename S::Result;
  template <int N>
  using P = typename S::template Parameter<N>;
  static constexpr bool kScc = std::is_reference_v<P<S::kCount - 1>>;
  static constexpr int kValues = S::kCount - (kScc ? 1 : 0);

  static u64 compute(const u64* in, bool& scc) {
    auto get = [&]<int N>() -> decltype(auto) {
      if constexpr (kScc && N == S::kCount - 1)
        return static_cast<bool&>(scc);
      else
        return value_of<P<N>>(in[N]);
    };
    auto result = [&]() -> R {
      if constexpr (S::kCount == 1)
        return F{}(get.template operator()<0>());
      else if constexpr (S::kCount == 2)
        return F{}(get.template operator()<0>(), get.template operator()<1>());
      else if constexpr (S::kCount == 3)
        return F{}(get.template operator()<0>(), get.template operator()<1>(), get.template operator()<2>());
      else
        return F{}(get.template operator()<0>(), get.template operator()<1>(), get.template operator()<2>(),
                   get.template operator()<3>());
    }();
    if constexpr (std::is_same_v<R, bool>) {
      scc = result;
      return 0;
    } else {
      return bits_of(result);
    }
  }
};

template <class F, Spread spread>
void run_scalar(Wave& wave, const Instruction& i) {
  using Shape = Form<F>;
  constexpr bool compares = std::is_same_v<typename Shape::R, bool>;
  u64 in[4] = {}, unknown[4] = {}, any = 0;
  for (int n = 0; n < Shape::kValues; ++n) {
    const Operand& operand = i.keeps ? (n == 0 ? i.dst : i.src[n - 1]) : i.src[n];
    in[n] = wave.read64(operand);
    unknown[n] = undefined_bits(wave, operand);
    any |= unknown[n];
  }
  if (i.neg | i.abs) {  // of floats alone
    for (int n = 0; n < Shape::kValues; ++n) {
      if (i.abs >> n & 1) in[n] &= 0x7fffffffu;
      if (i.neg >> n & 1) in[n] ^= 0x80000000u;
    }
  }
  if (spread == Spread::Carry && wave.scc_undefined) any = 1;
  bool scc = wave.scc;
  const u64 result = Shape::compute(in, scc);
  u64 result_unknown = any != 0 ? ~u64{0} : 0;
  bool scc_unknown = any != 0;
  if (spread == Spread::Upward && any != 0) result_unknown = ~((any & (0 - any)) - 1);
  if (spread == Spread::Bits && any != 0) {
    // Bits that change with an undefined bit of a source.
    result_unknown = 0;
    u64 least = 0;
    for (unsigned which = 0; which < 4; ++which) {
      u64 changed[4];
      for (unsigned n = 0; n < 4; ++n)
        changed[n] = n < 2 && (which >> n & 1u) ? in[n] | unknown[n] : in[n] & ~unknown[n];
      bool ignored = false;
      const u64 other = Shape::compute(changed, ignored);
      if (which == 0) least = other;
      result_unknown |= other ^ least;
    }
    scc_unknown = result_unknown != 0 && (least & ~result_unknown) == 0;
  }
  if constexpr (Shape::kScc || compares) {
    wave.scc = scc;
    wave.scc_undefined = scc_unknown;
  }
  if constexpr (!compares) {
    if (sizeof(typename Shape::R) == 8)
      wave.write_scalar64(i.dst.reg, result, result_unknown);
    else
      wave.write_scalar(i.dst.reg, static_cast<u32>(result), static_cast<u32>(result_unknown));
  }
}

template <class T>
constexpr Type scalar_type() {
  if constexpr (std::is_reference_v<T>)
    return Type::Any;
  else
    return type_of<T>();
}

template <Spread spread = Spread::Whole, class F>
constexpr OpEntry op(const char* name, F, bool keeps = false) {
  using Shape = Form<F>;
  constexpr bool compares = std::is_same_v<typename Shape::R, bool>;
  OpEntry entry{name, &run_scalar<F, spread>, compares ? uint8_t{0} : uint8_t{1}, {}, Flow::Own, keeps};
  entry.types[0] = Type::Any;
  constexpr int count = Shape::S::kCount;
  const int first = keeps ? 0 : 1;
  if (!keeps) entry.types[1] = scalar_type<typename Shape::template P<0>>();
  if constexpr (count > 1) entry.types[first + 1] = scalar_type<typename Shape::template P<1>>();
  if constexpr (count > 2) entry.types[first + 2] = scalar_type<typename Shape::template P<2>>();
  return entry;
}

template <class T>
T noted(T value, bool& scc) {
  scc = value != 0;
  return value;
}
u32 add_carry(u32 a, u32 b, bool in, bool& scc) {
  const u64 sum = static_cast<u64>(a) + b + (in ? 1 : 0);
  scc = sum >> 32 != 0;
  return static_cast<u32>(sum);
}
u32 subtract_borrow(u32 a, u32 b, bool in, bool& scc) {
  const u64 taken = static_cast<u64>(b) + (in ? 1 : 0);
  scc = taken > a;
  return static_cast<u32>(a - taken);
}
u32 add_signed(u32 a, u32 b, bool& scc) {
  const i64 sum = static_cast<i64>(static_cast<i32>(a)) + static_cast<i32>(b);
  scc = sum != static_cast<i32>(sum);
  return a + b;
}
u32 subtract_signed(u32 a, u32 b, bool& scc) {
  const i64 sum = static_cast<i64>(static_cast<i32>(a)) - static_cast<i32>(b);
  scc = sum != static_cast<i32>(sum);
  return a - b;
}
u32 chosen(u32 a, u32 b, bool first, bool& scc) {
  scc = first;
  return first ? a : b;
}
u32 short_value(u32 a) { return static_cast<u32>(static_cast<int16_t>(static_cast<uint16_t>(a))); }

constexpr Spread kBits = Spread::Bits, kCarry = Spread::Carry;

const OpEntry kLogic[] = {
    op<kBits>("s_mov_b32", [](u32 a) { return a; }),
    op<kBits>("s_mov_b64", [](u64 a) { return a; }),
    op<kBits>("s_movk_i32", [](u32 a) { return short_value(a); }),
    op<kBits>("s_not_b32", [](u32 a, bool& c) { return noted(~a, c); }),
    op<kBits>("s_not_b64", [](u64 a, bool& c) { return noted(~a, c); }),
    op<kBits>("s_and_b32", [](u32 a, u32 b, bool& c) { return noted(a & b, c); }),
    op<kBits>("s_and_b64", [](u64 a, u64 b, bool& c) { return noted(a & b, c); }),
    op<kBits>("s_or_b32", [](u32 a, u32 b, bool& c) { return noted(a | b, c); }),
    op<kBits>("s_or_b64", [](u64 a, u64 b, bool& c) { return noted(a | b, c); }),
    op<kBits>("s_xor_b32", [](u32 a, u32 b, bool& c) { return noted(a ^ b, c); }),
    op<kBits>("s_xor_b64", [](u64 a, u64 b, bool& c) { return noted(a ^ b, c); }),
    op<kBits>("s_xnor_b32", [](u32 a, u32 b, bool& c) { return noted(~(a ^ b), c); }),
    op<kBits>("s_xnor_b64", [](u64 a, u64 b, bool& c) { return noted(~(a ^ b), c); }),
    op<kBits>("s_nand_b32", [](u32 a, u32 b, bool& c) { return noted(~(a & b), c); }),
    op<kBits>("s_nand_b64", [](u64 a, u64 b, bool& c) { return noted(~(a & b), c); }),
    op<kBits>("s_nor_b32", [](u32 a, u32 b, bool& c) { return noted(~(a | b), c); }),
    op<kBits>("s_nor_b64", [](u64 a, u64 b, bool& c) { return noted(~(a | b), c); }),
    op<kBits>("s_and_not1_b32", [](u32 a, u32 b, bool& c) { return noted(a & ~b, c); }),
    op<kBits>("s_and_not1_b64", [](u64 a, u64 b, bool& c) { return noted(a & ~b, c); }),
    op<kBits>("s_andn2_b32", [](u32 a, u32 b, bool& c) { return noted(a & ~b, c); }),
    op<kBits>("s_andn2_b64", [](u64 a, u64 b, bool& c) { return noted(a & ~b, c); }),
    op<kBits>("s_or_not1_b32", [](u32 a, u32 b, bool& c) { return noted(a | ~b, c); }),
    op<kBits>("s_or_not1_b64", [](u64 a, u64 b, bool& c) { return noted(a | ~b, c); }),
    op<kBits>("s_orn2_b32", [](u32 a, u32 b, bool& c) { return noted(a | ~b, c); }),
    op<kBits>("s_orn2_b64", [](u64 a, u64 b, bool& c) { return noted(a | ~b, c); }),
    op<kCarry>("s_cselect_b32", [](u32 a, u32 b, const bool& c) { return c ? a : b; }),
    op<kCarry>("s_cselect_b64", [](u64 a, u64 b, const bool& c) { return c ? a : b; }),
    op<kCarry>(
        "s_cmov_b32", [](u32 before, u32 a, const bool& c) { return c ? a : before; }, true),
};

const OpEntry kArithmetic[] = {
    op("s_add_u32", [](u32 a, u32 b, bool& c) { return add_carry(a, b, false, c); }),
    op("s_add_co_u32", [](u32 a, u32 b, bool& c) { return add_carry(a, b, false, c); }),
    op<kCarry>("s_addc_u32", [](u32 a, u32 b, bool& c) { return add_carry(a, b, c, c); }),
    op<kCarry>("s_add_co_ci_u32", [](u32 a, u32 b, bool& c) { return add_carry(a, b, c, c); }),
    op("s_sub_u32", [](u32 a, u32 b, bool& c) { return subtract_borrow(a, b, false, c); }),
    op("s_sub_co_u32", [](u32 a, u32 b, bool& c) { return subtract_borrow(a, b, false, c); }),
    op<kCarry>("s_subb_u32", [](u32 a, u32 b, bool& c) { return subtract_borrow(a, b, c, c); }),
    op<kCarry>("s_sub_co_ci_u32", [](u32 a, u32 b, bool& c) { return subtract_borrow(a, b, c, c); }),
    op("s_add_i32", [](u32 a, u32 b, bool& c) { return add_signed(a, b, c); }),
    op("s_add_co_i32", [](u32 a, u32 b, bool& c) { return add_signed(a, b, c); }),
    op("s_sub_i32", [](u32 a, u32 b, bool& c) { return subtract_signed(a, b, c); }),
    op("s_sub_co_i32", [](u32 a, u32 b, bool& c) { return subtract_signed(a, b, c); }),
    op(
        "s_addk_i32", [](u32 a, u32 b, bool& c) { return add_signed(a, short_value(b), c); }, true),
    op(
        "s_addk_co_i32", [](u32 a, u32 b, bool& c) { return add_signed(a, short_value(b), c); }, true),
    op(
        "s_mulk_i32", [](u32 a, u32 b) { return a * short_value(b); }, true),
    op<Spread::Upward>("s_add_nc_u64", [](u64 a, u64 b) { return a + b; }),
    op<Spread::Upward>("s_sub_nc_u64", [](u64 a, u64 b) { return a - b; }),
    op<Spread::Upward>("s_mul_u64", [](u64 a, u64 b) { return a * b; }),
    op("s_mul_i32", [](u32 a, u32 b) { return a * b; }),
    op("s_mul_hi_u32", [](u32 a, u32 b) { return static_cast<u32>(static_cast<u64>(a) * b >> 32); }),
    op("s_mul_hi_i32", [](i32 a, i32 b) { return static_cast<i32>(static_cast<i64>(a) * b >> 32); }),
    op("s_min_i32", [](u32 a, u32 b, bool& c) { return chosen(a, b, static_cast<i32>(a) < static_cast<i32>(b), c); }),
    op("s_max_i32", [](u32 a, u32 b, bool& c) { return chosen(a, b, static_cast<i32>(a) > static_cast<i32>(b), c); }),
    op("s_min_u32", [](u32 a, u32 b, bool& c) { return chosen(a, b, a < b, c); }),
    op("s_max_u32", [](u32 a, u32 b, bool& c) { return chosen(a, b, a > b, c); }),
    op("s_abs_i32", [](u32 a, bool& c) { return noted(static_cast<i32>(a) < 0 ? 0u - a : a, c); }),
    op("s_lshl1_add_u32",
       [](u32 a, u32 b, bool& c) {
         const u64 r = (static_cast<u64>(a) << 1) + b;
         c = r >> 32 != 0;
         return static_cast<u32>(r);
       }),
    op("s_lshl2_add_u32",
       [](u32 a, u32 b, bool& c) {
         const u64 r = (static_cast<u64>(a) << 2) + b;
         c = r >> 32 != 0;
         return static_cast<u32>(r);
       }),
    op("s_lshl3_add_u32",
       [](u32 a, u32 b, bool& c) {
         const u64 r = (static_cast<u64>(a) << 3) + b;
         c = r >> 32 != 0;
         return static_cast<u32>(r);
       }),
    op("s_lshl4_add_u32",
       [](u32 a, u32 b, bool& c) {
         const u64 r = (static_cast<u64>(a) << 4) + b;
         c = r >> 32 != 0;
         return static_cast<u32>(r);
       }),
};

const OpEntry kShifts[] = {
    op("s_lshl_b32", [](u32 a, u32 b, bool& c) { return noted(a << (b & 31u), c); }),
    op("s_lshr_b32", [](u32 a, u32 b, bool& c) { return noted(a >> (b & 31u), c); }),
    op("s_ashr_i32", [](i32 a, u32 b, bool& c) { return noted(a >> (b & 31u), c); }),
    op<Spread::Upward>("s_lshl_b64", [](u64 a, u32 b, bool& c) { return noted(a << (b & 63u), c); }),
    op("s_lshr_b64", [](u64 a, u32 b, bool& c) { return noted(a >> (b & 63u), c); }),
    op("s_ashr_i64", [](i64 a, u32 b, bool& c) { return noted(a >> (b & 63u), c); }),
    op("s_bfe_u32",
       [](u32 a, u32 b, bool& c) {
         const u32 bits = std::min(b >> 16 & 127u, 32u);
         return noted(bits == 32 ? a >> (b & 31u) : field(a, b, bits), c);
       }),
    op("s_bfe_i32",
       [](i32 a, u32 b, bool& c) {
         const u32 bits = std::min(b >> 16 & 127u, 32u);
         return noted(bits == 32 ? a >> (b & 31u) : signed_field(a, b, bits), c);
       }),
    op("s_bfe_u64",
       [](u64 a, u32 b, bool& c) {
         const u32 bits = std::min(b >> 16 & 127u, 64u);
         const u64 x = a >> (b & 63u);
         return noted(bits == 64 ? x : x & ((u64{1} << bits) - 1), c);
       }),
    op("s_bfe_i64",
       [](i64 a, u32 b, bool& c) {
         const u32 bits = std::min(b >> 16 & 127u, 64u);
         const i64 x = a >> (b & 63u);
         const i64 r = bits == 0 ? 0 : static_cast<i64>(static_cast<u64>(x) << (64 - bits)) >> (64 - bits);
         return noted(r, c);
       }),
    op("s_bfm_b32", [](u32 a, u32 b) { return ((1u << (a & 31u)) - 1) << (b & 31u); }),
    op("s_bfm_b64", [](u32 a, u32 b) { return ((u64{1} << (a & 63u)) - 1) << (b & 63u); }),
    op("s_brev_b32", [](u32 a) { return reversed(a); }),
    op("s_bcnt1_i32_b32", [](u32 a, bool& c) { return noted(static_cast<u32>(std::popcount(a)), c); }),
    op("s_bcnt1_i32_b64", [](u64 a, bool& c) { return noted(static_cast<u32>(std::popcount(a)), c); }),
    op("s_ff1_i32_b32", [](u32 a) { return trailing_zeros(a); }),
    op("s_ctz_i32_b32", [](u32 a) { return trailing_zeros(a); }),
    op("s_ff1_i32_b64", [](u64 a) { return a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a)); }),
    op("s_ctz_i32_b64", [](u64 a) { return a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a)); }),
    op("s_flbit_i32_b32", [](u32 a) { return leading_zeros(a); }),
    op("s_clz_i32_u32", [](u32 a) { return leading_zeros(a); }),
    op("s_flbit_i32", [](u32 a) { return leading_signs(a); }),
    op("s_cls_i32", [](u32 a) { return leading_signs(a); }),
    op("s_sext_i32_i8", [](u32 a) { return static_cast<u32>(static_cast<int8_t>(static_cast<uint8_t>(a))); }),
    op("s_sext_i32_i16", [](u32 a) { return short_value(a); }),
    op(
        "s_bitset0_b32", [](u32 d, u32 a) { return d & ~(1u << (a & 31u)); }, true),
    op(
        "s_bitset1_b32", [](u32 d, u32 a) { return d | 1u << (a & 31u); }, true),
    op("s_pack_ll_b32_b16", [](u32 a, u32 b) { return (a & 0xffffu) | b << 16; }),
    op("s_pack_lh_b32_b16", [](u32 a, u32 b) { return (a & 0xffffu) | (b & 0xffff0000u); }),
    op("s_pack_hh_b32_b16", [](u32 a, u32 b) { return a >> 16 | (b & 0xffff0000u); }),
    op("s_pack_hl_b32_b16", [](u32 a, u32 b) { return a >> 16 | b << 16; }),
};

const OpEntry kCompares[] = {
    op("s_cmp_eq_i32", [](u32 a, u32 b) { return a == b; }),
    op("s_cmp_lg_i32", [](u32 a, u32 b) { return a != b; }),
    op("s_cmp_gt_i32", [](i32 a, i32 b) { return a > b; }),
    op("s_cmp_ge_i32", [](i32 a, i32 b) { return a >= b; }),
    op("s_cmp_lt_i32", [](i32 a, i32 b) { return a < b; }),
    op("s_cmp_le_i32", [](i32 a, i32 b) { return a <= b; }),
    op("s_cmp_eq_u32", [](u32 a, u32 b) { return a == b; }),
    op("s_cmp_lg_u32", [](u32 a, u32 b) { return a != b; }),
    op("s_cmp_gt_u32", [](u32 a, u32 b) { return a > b; }),
    op("s_cmp_ge_u32", [](u32 a, u32 b) { return a >= b; }),
    op("s_cmp_lt_u32", [](u32 a, u32 b) { return a < b; }),
    op("s_cmp_le_u32", [](u32 a, u32 b) { return a <= b; }),
    op("s_cmp_eq_u64", [](u64 a, u64 b) { return a == b; }),
    op("s_cmp_lg_u64", [](u64 a, u64 b) { return a != b; }),
    op("s_cmpk_eq_i32", [](u32 a, u32 b) { return a == short_value(b); }),
    op("s_cmpk_lg_i32", [](u32 a, u32 b) { return a != short_value(b); }),
    op("s_cmpk_gt_i32", [](i32 a, u32 b) { return a > static_cast<i32>(short_value(b)); }),
    op("s_cmpk_ge_i32", [](i32 a, u32 b) { return a >= static_cast<i32>(short_value(b)); }),
    op("s_cmpk_lt_i32", [](i32 a, u32 b) { return a < static_cast<i32>(short_value(b)); }),
    op("s_cmpk_le_i32", [](i32 a, u32 b) { return a <= static_cast<i32>(short_value(b)); }),
    op("s_cmpk_eq_u32", [](u32 a, u32 b) { return a == (b & 0xffffu); }),
    op("s_cmpk_lg_u32", [](u32 a, u32 b) { return a != (b & 0xffffu); }),
    op("s_cmpk_gt_u32", [](u32 a, u32 b) { return a > (b & 0xffffu); }),
    op("s_cmpk_ge_u32", [](u32 a, u32 b) { return a >= (b & 0xffffu); }),
    op("s_cmpk_lt_u32", [](u32 a, u32 b) { return a < (b & 0xffffu); }),
    op("s_cmpk_le_u32", [](u32 a, u32 b) { return a <= (b & 0xffffu); }),
    op("s_bitcmp0_b32", [](u32 a, u32 b) { return (a >> (b & 31u) & 1u) == 0; }),
    op("s_bitcmp1_b32", [](u32 a, u32 b) { return (a >> (b & 31u) & 1u) != 0; }),
    op("s_bitcmp0_b64", [](u64 a, u32 b) { return (a >> (b & 63u) & 1u) == 0; }),
    op("s_bitcmp1_b64", [](u64 a, u32 b) { return (a >> (b & 63u) & 1u) != 0; }),
};

const OpEntry kFloats[] = {
    // gfx11.5 and gfx12
    op("s_add_f32", [](float a, float b) { return a + b; }),
    op("s_sub_f32", [](float a, float b) { return a - b; }),
    op("s_mul_f32", [](float a, float b) { return a * b; }),
    op("s_fmaak_f32", [](float a, float b, float k) { return std::fma(a, b, k); }),
    op("s_fmamk_f32", [](float a, float k, float b) { return std::fma(a, k, b); }),
    op(
        "s_fmac_f32", [](float d, float a, float b) { return std::fma(a, b, d); }, true),
    op("s_min_f32", [](float a, float b) { return least(a, b); }),
    op("s_max_f32", [](float a, float b) { return largest(a, b); }),
    op("s_min_num_f32", [](float a, float b) { return least(a, b); }),
    op("s_max_num_f32", [](float a, float b) { return largest(a, b); }),
    op("s_trunc_f32", [](float a) { return std::trunc(a); }),
    op("s_floor_f32", [](float a) { return std::floor(a); }),
    op("s_ceil_f32", [](float a) { return std::ceil(a); }),
    op("s_rndne_f32", [](float a) { return std::nearbyint(a); }),
    op("s_cvt_f32_i32", [](i32 a) { return static_cast<float>(a); }),
    op("s_cvt_f32_u32", [](u32 a) { return static_cast<float>(a); }),
    op("s_cvt_i32_f32", [](float a) { return to_whole<i32>(static_cast<double>(a)); }),
    op("s_cvt_u32_f32", [](float a) { return to_whole<u32>(static_cast<double>(a)); }),
    op("s_cvt_f16_f32", [](float a) { return static_cast<u32>(f32_to_f16(a)); }),
    op("s_cvt_f32_f16", [](u32 a) { return f16_to_f32(static_cast<uint16_t>(a)); }),
    op("v_s_rcp_f32", [](float a) { return 1.0f / a; }),
    op("v_s_sqrt_f32", [](float a) { return std::sqrt(a); }),
    op("v_s_rsq_f32", [](float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }),
    op("v_s_exp_f32", [](float a) { return std::exp2(a); }),
    op("v_s_log_f32", [](float a) { return std::log2(a); }),
    op("s_cmp_lt_f32", [](float a, float b) { return a < b; }),
    op("s_cmp_eq_f32", [](float a, float b) { return a == b; }),
    op("s_cmp_le_f32", [](float a, float b) { return a <= b; }),
    op("s_cmp_gt_f32", [](float a, float b) { return a > b; }),
    op("s_cmp_ge_f32", [](float a, float b) { return a >= b; }),
    op("s_cmp_lg_f32", [](float a, float b) { return a < b || a > b; }),
    op("s_cmp_o_f32", [](float a, float b) { return a == a && b == b; }),
    op("s_cmp_u_f32", [](float a, float b) { return a != a || b != b; }),
    op("s_cmp_nlt_f32", [](float a, float b) { return !(a < b); }),
    op("s_cmp_neq_f32", [](float a, float b) { return !(a == b); }),
    op("s_cmp_nle_f32", [](float a, float b) { return !(a <= b); }),
    op("s_cmp_ngt_f32", [](float a, float b) { return !(a > b); }),
    op("s_cmp_nge_f32", [](float a, float b) { return !(a >= b); }),
    op("s_cmp_nlg_f32", [](float a, float b) { return !(a < b || a > b); }),
};

}  // namespace

std::vector<OpEntry> scalar_ops() {
  std::vector<OpEntry> all;
  auto add = [&all](const auto& table) {
    for (const OpEntry& entry : table) all.push_back(entry);
  };
  add(kLogic);
  add(kArithmetic);
  add(kShifts);
  add(kCompares);
  add(kFloats);
  return all;
}

}  // namespace strata::amdsim
