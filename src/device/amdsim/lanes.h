// Vector instructions as loops over lanes: a function of plain values becomes a handler. The types of its parameters
// say how registers are read: half, float and double; whole numbers of 16, 32 and 64 bits.
#pragma once

#include <bit>
#include <cmath>
#include <type_traits>

#include "base/half.h"
#include "device/amdsim/fused.h"
#include "device/amdsim/wave.h"

namespace strata::amdsim {

// A number of 16 bits, computed with in f32.
struct Half {
  float value;
};

// A source in all lanes: words of its registers or copies of them, with modifiers applied.
struct Source {
  const uint32_t* lo = nullptr;
  const uint32_t* hi = nullptr;
  alignas(64) uint32_t own_lo[kMaxLanes];
  alignas(64) uint32_t own_hi[kMaxLanes];
};

enum class Width : uint8_t { W16, W32, W64 };

void load_plain(Wave& wave, const Operand& operand, Width width, Source& source);
// With SDWA, DPP, halves, magnitude and sign; lanes that DPP leaves out are taken from `write`.
void load_modified(Wave& wave, const Instruction& i, int n, Width width, Source& source, uint64_t& write);
// Scales and clamps a float result in place.
void modify_result(const Instruction& i, Width width, bool number, uint32_t* lo, uint32_t* hi, int lanes);
void store_modified(Wave& wave, const Instruction& i, const uint32_t* lo, uint64_t write, Width width);

template <class T>
constexpr Width width_of() {
  if constexpr (std::is_same_v<T, Half> || sizeof(T) == 2)
    return Width::W16;
  else
    return sizeof(T) == 8 ? Width::W64 : Width::W32;
}
template <class T>
constexpr bool is_number() {
  return std::is_same_v<T, Half> || std::is_floating_point_v<T>;
}
template <class T>
constexpr Type type_of() {
  if (std::is_same_v<T, Half>) return Type::F16;
  if (std::is_same_v<T, float>) return Type::F32;
  if (std::is_same_v<T, double>) return Type::F64;
  if (sizeof(T) == 2) return Type::B16;
  if (sizeof(T) == 8) return std::is_signed_v<T> ? Type::I64 : Type::B64;
  return std::is_signed_v<T> ? Type::I32 : Type::B32;
}

template <class T>
inline T make(const uint32_t* lo, [[maybe_unused]] const uint32_t* hi, int l) {
  if constexpr (std::is_same_v<T, Half>)
    return {f16_to_f32(static_cast<uint16_t>(lo[l]))};
  else if constexpr (sizeof(T) == 2)
    return static_cast<T>(static_cast<uint16_t>(lo[l]));
  else if constexpr (sizeof(T) == 8)
    return std::bit_cast<T>(lo[l] | static_cast<uint64_t>(hi[l]) << 32);
  else
    return std::bit_cast<T>(lo[l]);
}
template <class T>
inline void put(T value, uint32_t* lo, [[maybe_unused]] uint32_t* hi, int l) {
  if constexpr (std::is_same_v<T, Half>)
    lo[l] = f32_to_f16(value.value);
  else if constexpr (sizeof(T) == 2)
    lo[l] = static_cast<uint16_t>(value);
  else if constexpr (sizeof(T) == 8) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    lo[l] = static_cast<uint32_t>(bits);
    hi[l] = static_cast<uint32_t>(bits >> 32);
  } else
    lo[l] = std::bit_cast<uint32_t>(value);
}

template <class T>
struct Signature;
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> {
  using Result = R;
  static constexpr int kCount = sizeof...(A);
  template <int N>
  using Parameter = std::tuple_element_t<N, std::tuple<A...>>;
};

inline void blend(Wave& wave, int reg, const uint32_t* values) {
  uint32_t* row = wave.row(reg);
  const uint32_t* active = wave.active;
  for (int l = 0; l < wave.lanes; ++l) row[l] = (values[l] & active[l]) | (row[l] & ~active[l]);
}

template <class T>
inline void load(Wave& wave, const Instruction& i, int n, Source& source, uint64_t& write) {
  if (i.plain)
    load_plain(wave, i.src[n], width_of<T>(), source);
  else
    load_modified(wave, i, n, width_of<T>(), source, write);
}

// Writes values computed in all lanes to the destination of the instruction.
template <class T>
inline void finish(Wave& wave, const Instruction& i, uint32_t* lo, uint32_t* hi, uint64_t write) {
  if (i.omod != 0 || i.clamp) modify_result(i, width_of<T>(), is_number<T>(), lo, hi, wave.lanes);
  if (width_of<T>() == Width::W16 || i.sdwa || write != wave.exec) {
    store_modified(wave, i, lo, write, width_of<T>());
    return;
  }
  blend(wave, i.dst.reg, lo);
  if (width_of<T>() == Width::W64) blend(wave, i.dst.reg + 1, hi);
}

uint64_t pack_bits(const unsigned char* bytes, int lanes);  // bytes of 0 and 1
void finish_compare(Wave& wave, const Instruction& i, uint64_t bits);

template <class F>
void run_vector(Wave& wave, const Instruction& i) {
  using S = Signature<decltype(&F::operator())>;
  using R = typename S::Result;
  uint64_t write = wave.exec;
  const int lanes = wave.lanes;
  alignas(64) uint32_t lo[kMaxLanes], hi[kMaxLanes];
  alignas(64) unsigned char truth[kMaxLanes];
  auto each = [&](auto compute) {
    if constexpr (std::is_same_v<R, bool>) {
      for (int l = 0; l < lanes; ++l) truth[l] = static_cast<unsigned char>(compute(l));
    } else {
      for (int l = 0; l < lanes; ++l) put<R>(compute(l), lo, hi, l);
    }
  };
  using A = typename S::template Parameter<0>;
  Source a, b, c;
  load<A>(wave, i, 0, a, write);
  const uint32_t *alo = a.lo, *ahi = a.hi;
  if constexpr (S::kCount == 1) {
    each([=](int l) { return F{}(make<A>(alo, ahi, l)); });
  } else {
    using B = typename S::template Parameter<1>;
    load<B>(wave, i, 1, b, write);
    const uint32_t *blo = b.lo, *bhi = b.hi;
    if constexpr (S::kCount == 2) {
      each([=](int l) { return F{}(make<A>(alo, ahi, l), make<B>(blo, bhi, l)); });
    } else {
      using C = typename S::template Parameter<2>;
      load<C>(wave, i, 2, c, write);
      const uint32_t *clo = c.lo, *chi = c.hi;
      if constexpr (std::is_same_v<F, Fused>)
        fuse_lanes()(alo, blo, clo, lo, lanes);
      else
        each([=](int l) { return F{}(make<A>(alo, ahi, l), make<B>(blo, bhi, l), make<C>(clo, chi, l)); });
    }
  }
  if constexpr (std::is_same_v<R, bool>)
    finish_compare(wave, i, pack_bits(truth, lanes));
  else
    finish<R>(wave, i, lo, hi, write);
}

// The third source is the destination: v_fmac.
template <class F>
void run_accumulate(Wave& wave, const Instruction& i) {
  Instruction three = i;
  three.src[2] = i.dst;
  run_vector<F>(wave, three);
}

template <class F>
constexpr OpEntry vector_op(const char* name, F) {
  using S = Signature<decltype(&F::operator())>;
  constexpr bool compare = std::is_same_v<typename S::Result, bool>;
  OpEntry entry{name, &run_vector<F>, 1, {}, compare ? Flow::Own : Flow::Vector, false};
  entry.types[0] = type_of<typename S::Result>();
  entry.types[1] = type_of<typename S::template Parameter<0>>();
  if constexpr (S::kCount > 1) entry.types[2] = type_of<typename S::template Parameter<1>>();
  if constexpr (S::kCount > 2) entry.types[3] = type_of<typename S::template Parameter<2>>();
  return entry;
}

template <class F>
constexpr OpEntry upward_op(const char* name, F f) {
  OpEntry entry = vector_op(name, f);
  entry.flow = Flow::Upward;
  return entry;
}

template <class F>
constexpr OpEntry pair_words_op(const char* name, F f) {
  OpEntry entry = vector_op(name, f);
  entry.flow = Flow::Pair;
  return entry;
}

template <class F>
constexpr OpEntry accumulate_op(const char* name, F f) {
  OpEntry entry = vector_op(name, f);
  entry.run = &run_accumulate<F>;
  entry.keeps = true;
  return entry;
}

constexpr OpEntry own_op(const char* name, Handler run, int destinations, Type type, Flow flow = Flow::Own) {
  return {name, run, static_cast<uint8_t>(destinations), {type, type, type, type, type}, flow, false};
}

// Tables of opcodes by encoding.
std::vector<OpEntry> scalar_ops();
std::vector<OpEntry> scalar_control_ops();
std::vector<OpEntry> vector_ops();
std::vector<OpEntry> vector_compare_ops();
std::vector<OpEntry> vector_half_ops();
std::vector<OpEntry> vector_lane_ops();
std::vector<OpEntry> packed_ops();
std::vector<OpEntry> matrix_ops();
std::vector<OpEntry> local_ops();
std::vector<OpEntry> global_ops();
std::vector<OpEntry> scalar_memory_ops();

}  // namespace strata::amdsim
