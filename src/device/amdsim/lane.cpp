// Carries, selection by masks, division helpers, and what crosses lanes.
#include <iterator>

#include "device/amdsim/lanes.h"
#include "device/amdsim/numbers.h"

namespace strata::amdsim {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;

Operand vcc_operand() {
  Operand vcc;
  vcc.kind = Kind::Scalar;
  vcc.reg = kVcc;
  return vcc;
}

// The mask a carry or a condition comes in.
Operand mask_operand(const Instruction& i) { return i.src[2].kind == Kind::None ? vcc_operand() : i.src[2]; }

void select(Wave& wave, const Instruction& i) {
  Source a, b;
  u64 write = wave.exec;
  load<u32>(wave, i, 0, a, write);
  load<u32>(wave, i, 1, b, write);
  const Operand mask = mask_operand(i);
  const u64 bits = wave.read_mask(mask);
  alignas(64) u32 result[kMaxLanes];
  for (int l = 0; l < wave.lanes; ++l) {
    const u32 second = 0u - static_cast<u32>(bits >> l & 1u);
    result[l] = (b.lo[l] & second) | (a.lo[l] & ~second);
  }
  const u64 unknown =
      (wave.undefined_lanes(i.src[0]) & ~bits) | (wave.undefined_lanes(i.src[1]) & bits) | wave.undefined_mask(mask);
  finish<u32>(wave, i, result, nullptr, write);
  wave.set_undefined(i.dst, unknown);
}

// a + b + carry, a - b - carry, b - a - carry; the carry out goes to the second destination.
enum class Sum : uint8_t { Add, Sub, SubReversed };
template <Sum sum, bool carries>
void add_carry(Wave& wave, const Instruction& i) {
  Source a, b;
  u64 write = wave.exec;
  load<u32>(wave, i, 0, a, write);
  load<u32>(wave, i, 1, b, write);
  const Operand mask = mask_operand(i);
  const u64 in = carries ? wave.read_mask(mask) : 0;
  alignas(64) u32 result[kMaxLanes];
  u64 out = 0;
  for (int l = 0; l < wave.lanes; ++l) {
    const u64 x = sum == Sum::SubReversed ? b.lo[l] : a.lo[l], y = sum == Sum::SubReversed ? a.lo[l] : b.lo[l];
    const u64 c = in >> l & 1u;
    const u64 value = sum == Sum::Add ? x + y + c : x - y - c;
    result[l] = static_cast<u32>(value);
    out |= (value >> 32 & 1u) << l;
  }
  u64 unknown = wave.undefined_lanes(i.src[0]) | wave.undefined_lanes(i.src[1]);
  if (carries) unknown |= wave.undefined_mask(mask);
  finish<u32>(wave, i, result, nullptr, write);
  wave.set_undefined(i.dst, unknown);
  wave.write_mask(i.dst2.reg, out & wave.exec, unknown & wave.exec);
}

template <class T, class Wide>
void multiply_add(Wave& wave, const Instruction& i) {
  Source a, b, c;
  load_plain(wave, i.src[0], Width::W32, a);
  load_plain(wave, i.src[1], Width::W32, b);
  load_plain(wave, i.src[2], Width::W64, c);
  alignas(64) u32 lo[kMaxLanes], hi[kMaxLanes];
  u64 out = 0;
  for (int l = 0; l < wave.lanes; ++l) {
    const auto product = static_cast<u64>(static_cast<Wide>(static_cast<T>(a.lo[l])) * static_cast<T>(b.lo[l]));
    const u64 sum = product + make<u64>(c.lo, c.hi, l);
    out |= static_cast<u64>(sum < product) << l;
    put<u64>(sum, lo, hi, l);
  }
  flow_upward(wave, i);
  finish<u64>(wave, i, lo, hi, wave.exec);
  wave.write_mask(i.dst2.reg, out & wave.exec, 0);
}

// v_div_scale(x, b, a), x being a or b: x scaled by a power of two where the quotient's steps a / b would leave the
// range of normal numbers; VCC says where v_div_fmas must scale back.
template <class T>
struct Range;
template <>
struct Range<float> {
  static constexpr int kMantissa = 23, kMost = 96, kScale = 64, kTiny = 23;
  using Bits = u32;
};
template <>
struct Range<double> {
  static constexpr int kMantissa = 52, kMost = 768, kScale = 128, kTiny = 53;
  using Bits = u64;
};
template <class T>
int biased_exponent(T x) {
  constexpr int kBits = sizeof(T) == 4 ? 8 : 11;
  return static_cast<int>(std::bit_cast<typename Range<T>::Bits>(x) >> Range<T>::kMantissa & ((1u << kBits) - 1));
}
template <class T>
bool subnormal(T x) {
  return x != 0 && std::fabs(x) < std::numeric_limits<T>::min();
}
template <class T>
T div_scale(T x, T b, T a, bool& flag) {
  constexpr int kScale = Range<T>::kScale;
  const bool is_b = std::bit_cast<typename Range<T>::Bits>(x) == std::bit_cast<typename Range<T>::Bits>(b);
  flag = false;
  if (b == 0 || a == 0 || a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
  const int difference = biased_exponent(a) - biased_exponent(b);
  if (difference >= Range<T>::kMost) {
    flag = true;
    return is_b ? std::ldexp(x, kScale) : x;
  }
  if (subnormal(b)) return std::ldexp(x, kScale);
  if (subnormal(T{1} / b) && subnormal(a / b)) {
    flag = true;
    return is_b ? std::ldexp(x, -kScale) : x;
  }
  if (subnormal(T{1} / b)) return std::ldexp(x, -kScale);
  if (subnormal(a / b)) {
    flag = true;
    return is_b ? x : std::ldexp(x, kScale);
  }
  if (biased_exponent(a) <= Range<T>::kTiny) return std::ldexp(x, kScale);
  return x;
}
template <class T>
void run_div_scale(Wave& wave, const Instruction& i) {
  Source s[3];
  u64 write = wave.exec, flags = 0;
  for (int n = 0; n < 3; ++n) load<T>(wave, i, n, s[n], write);
  alignas(64) u32 lo[kMaxLanes], hi[kMaxLanes];
  for (int l = 0; l < wave.lanes; ++l) {
    bool flag = false;
    put<T>(div_scale(make<T>(s[0].lo, s[0].hi, l), make<T>(s[1].lo, s[1].hi, l), make<T>(s[2].lo, s[2].hi, l), flag),
           lo, hi, l);
    flags |= static_cast<u64>(flag) << l;
  }
  flow_vector(wave, i);
  finish<T>(wave, i, lo, hi, write);
  wave.write_mask(i.dst2.reg, flags & wave.exec, 0);
}

template <class T>
void run_div_fmas(Wave& wave, const Instruction& i) {
  Source s[3];
  u64 write = wave.exec;
  for (int n = 0; n < 3; ++n) load<T>(wave, i, n, s[n], write);
  const u64 flags = wave.read_mask(vcc_operand());
  alignas(64) u32 lo[kMaxLanes], hi[kMaxLanes];
  for (int l = 0; l < wave.lanes; ++l) {
    const T addend = make<T>(s[2].lo, s[2].hi, l);
    T value = std::fma(make<T>(s[0].lo, s[0].hi, l), make<T>(s[1].lo, s[1].hi, l), addend);
    // The flag undoes the scale of v_div_scale: of the numerator for small quotients, of the denominator for large
    // ones.
    constexpr int kBack = Range<T>::kScale;
    if (flags >> l & 1u) value = std::ldexp(value, std::fabs(addend) >= 2 ? kBack : -kBack);
    put<T>(value, lo, hi, l);
  }
  flow_vector(wave, i);
  finish<T>(wave, i, lo, hi, write);
}

template <class T>
T div_fixup(T quotient, T b, T a) {
  const bool negative = std::signbit(a) != std::signbit(b);
  if (a != a) return a;
  if (b != b) return b;
  if ((a == 0 && b == 0) || (std::isinf(a) && std::isinf(b))) return std::numeric_limits<T>::quiet_NaN();
  const T infinity = std::numeric_limits<T>::infinity();
  if (b == 0 || std::isinf(a)) return negative ? -infinity : infinity;
  if (std::isinf(b) || a == 0) return negative ? -T{0} : T{0};
  // Beyond the range whatever the steps gave.
  const int difference = biased_exponent(a) - biased_exponent(b);
  constexpr int kLow = sizeof(T) == 4 ? -150 : -1075, kHigh = sizeof(T) == 4 ? 129 : 1025;
  if (difference < kLow) return negative ? -T{0} : T{0};
  if (difference >= kHigh && quotient != quotient) return negative ? -infinity : infinity;
  return negative ? -std::fabs(quotient) : std::fabs(quotient);
}

u32 source_word(Wave& wave, const Operand& operand) {
  if (operand.kind == Kind::Vector) wave.fail("a scalar source is expected");
  return wave.read32(operand);
}
u32 undefined_word(const Wave& wave, const Operand& operand) {
  return operand.kind == Kind::Scalar && wave.undefined_lanes(operand) != 0 ? ~0u : 0u;
}
void read_first_lane(Wave& wave, const Instruction& i) {
  if (i.src[0].kind != Kind::Vector) {
    wave.write_scalar(i.dst.reg, wave.read32(i.src[0]), undefined_word(wave, i.src[0]));
    return;
  }
  const int lane = wave.exec == 0 ? 0 : std::countr_zero(wave.exec);
  const bool unknown = (wave.undefined_lanes(i.src[0]) >> lane & 1u) != 0;
  wave.write_scalar(i.dst.reg, wave.row(i.src[0].reg)[lane], unknown ? ~0u : 0u);
}
void read_lane(Wave& wave, const Instruction& i) {
  const u32 lane = source_word(wave, i.src[1]) & static_cast<u32>(wave.lanes - 1);
  const bool unknown = (wave.undefined_lanes(i.src[0]) >> lane & 1u) != 0 || undefined_word(wave, i.src[1]) != 0;
  wave.write_scalar(i.dst.reg, wave.row(i.src[0].reg)[lane], unknown ? ~0u : 0u);
}
void write_lane(Wave& wave, const Instruction& i) {
  const u32 lane = source_word(wave, i.src[1]) & static_cast<u32>(wave.lanes - 1);
  wave.row(i.dst.reg)[lane] = source_word(wave, i.src[0]);
  u64& unknown = wave.undefined[i.dst.reg];
  unknown &= ~(u64{1} << lane);
  if (undefined_word(wave, i.src[0]) != 0) unknown |= u64{1} << lane;
}

// Counts the bits below a lane in a mask: the low or the high half of the wave.
template <bool high>
void count_below(Wave& wave, const Instruction& i) {
  Source a, b;
  load_plain(wave, i.src[0], Width::W32, a);
  load_plain(wave, i.src[1], Width::W32, b);
  alignas(64) u32 result[kMaxLanes];
  for (int l = 0; l < wave.lanes; ++l) {
    const u64 below = (u64{1} << l) - 1;
    const u32 mask = static_cast<u32>(high ? below >> 32 : below);
    result[l] = static_cast<u32>(std::popcount(a.lo[l] & mask)) + b.lo[l];
  }
  flow_vector(wave, i);
  finish<u32>(wave, i, result, nullptr, wave.exec);
}

// The register that M0 counts from the source on.
void move_relative(Wave& wave, const Instruction& i) {
  if (wave.s_undefined[kM0] != 0) wave.fail("M0 is a register that nothing has written");
  Operand from = i.src[0];
  const u32 reg = from.reg + wave.s[kM0];
  if (reg >= kAccumulators) wave.fail("register v" + std::to_string(reg) + " does not exist");
  from.reg = static_cast<uint16_t>(reg);
  Instruction one = i;
  one.src[0] = from;
  check_pending(wave, one);
  Source a;
  load_plain(wave, from, Width::W32, a);
  wave.set_undefined(i.dst, wave.undefined_lanes(from));
  blend(wave, i.dst.reg, a.lo);
}

void swap(Wave& wave, const Instruction& i) {
  u32 *a = wave.row(i.dst.reg), *b = wave.row(i.src[0].reg);
  const u64 unknown_a = wave.undefined[i.dst.reg], unknown_b = wave.undefined[i.src[0].reg];
  for (int l = 0; l < wave.lanes; ++l)
    if (wave.exec >> l & 1u) std::swap(a[l], b[l]);
  wave.set_undefined(i.dst, unknown_b);
  wave.set_undefined(i.src[0], unknown_a);
}

const OpEntry kLane[] = {
    own_op("v_cndmask_b32", select, 1, Type::F32),
    own_op("v_add_co_u32", add_carry<Sum::Add, false>, 2, Type::B32),
    own_op("v_sub_co_u32", add_carry<Sum::Sub, false>, 2, Type::B32),
    own_op("v_subrev_co_u32", add_carry<Sum::SubReversed, false>, 2, Type::B32),
    own_op("v_add_co_ci_u32", add_carry<Sum::Add, true>, 2, Type::B32),
    own_op("v_sub_co_ci_u32", add_carry<Sum::Sub, true>, 2, Type::B32),
    own_op("v_subrev_co_ci_u32", add_carry<Sum::SubReversed, true>, 2, Type::B32),
    own_op("v_addc_co_u32", add_carry<Sum::Add, true>, 2, Type::B32),
    own_op("v_subb_co_u32", add_carry<Sum::Sub, true>, 2, Type::B32),
    own_op("v_subbrev_co_u32", add_carry<Sum::SubReversed, true>, 2, Type::B32),
    {"v_mad_u64_u32", multiply_add<u32, u64>, 2, {Type::Any, Type::B32, Type::B32, Type::B64}, Flow::Own, false},
    {"v_mad_co_u64_u32", multiply_add<u32, u64>, 2, {Type::Any, Type::B32, Type::B32, Type::B64}, Flow::Own, false},
    {"v_mad_i64_i32", multiply_add<int32_t, i64>, 2, {Type::Any, Type::I32, Type::I32, Type::I64}, Flow::Own, false},
    {"v_mad_co_i64_i32", multiply_add<int32_t, i64>, 2, {Type::Any, Type::I32, Type::I32, Type::I64}, Flow::Own, false},
    own_op("v_div_scale_f32", run_div_scale<float>, 2, Type::F32),
    own_op("v_div_scale_f64", run_div_scale<double>, 2, Type::F64),
    own_op("v_div_fmas_f32", run_div_fmas<float>, 1, Type::F32),
    own_op("v_div_fmas_f64", run_div_fmas<double>, 1, Type::F64),
    vector_op("v_div_fixup_f32", [](float q, float b, float a) { return div_fixup(q, b, a); }),
    vector_op("v_div_fixup_f64", [](double q, double b, double a) { return div_fixup(q, b, a); }),
    own_op("v_readfirstlane_b32", read_first_lane, 1, Type::B32),
    own_op("v_readlane_b32", read_lane, 1, Type::B32),
    own_op("v_writelane_b32", write_lane, 1, Type::B32),
    own_op("v_mbcnt_lo_u32_b32", count_below<false>, 1, Type::B32),
    own_op("v_mbcnt_hi_u32_b32", count_below<true>, 1, Type::B32),
    own_op("v_movrels_b32", move_relative, 1, Type::B32),
    own_op("v_swap_b32", swap, 1, Type::B32),
};

}  // namespace

std::vector<OpEntry> vector_lane_ops() { return {std::begin(kLane), std::end(kLane)}; }

}  // namespace strata::amdsim
