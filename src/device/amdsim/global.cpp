// FLAT, GLOBAL, SCRATCH and SMEM: memory outside the work-group.
#include <algorithm>
#include <string>

#include "device/amdsim/lanes.h"

namespace strata::amdsim {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

enum class Fill : uint8_t { Zero, Sign, Low, High };
enum class Space : uint8_t { Global, Flat, Scratch };

std::string hex(u64 value) {
  char text[24] = {};
  std::snprintf(text, sizeof(text), "%#llx", static_cast<unsigned long long>(value));
  return text;
}

// Addresses of a lane: a register pair, or a scalar base and 32 bits.
struct Addresses {
  Addresses(const Wave& wave, const Instruction& i, const Operand& vector, const Operand& scalar, Space space) {
    wave.need_defined(vector, "the address");
    wave.need_defined(scalar, "the address");
    base = static_cast<u64>(static_cast<int64_t>(i.offset));
    const bool has_scalar = scalar.kind == Kind::Scalar && scalar.reg != kNull;
    if (has_scalar) base += space == Space::Scratch ? wave.s[scalar.reg] : wave.s64(scalar.reg);
    if (vector.kind != Kind::Vector) return;
    lo = wave.v.data() + static_cast<size_t>(vector.reg) * static_cast<size_t>(wave.lanes);
    if (space != Space::Scratch && !has_scalar) hi = lo + wave.lanes;
    if (hi != nullptr && vector.words != 2) wave.fail("an address of 64 bits is expected");
  }
  u64 operator()(int lane) const {
    return base + (lo == nullptr ? 0 : lo[lane]) + (hi == nullptr ? 0 : static_cast<u64>(hi[lane]) << 32);
  }
  u64 base = 0;
  const u32* lo = nullptr;
  const u32* hi = nullptr;
};

// Where a lane's access goes, checked. The targets are set up to load and store words that lie at any address: clang
// joins accesses to bytes where it may.
[[noreturn]] void fail_race(const Wave& wave, const std::string& access, u64 other, int lane) {
  const bool same = AccessLog::same_group(other, wave.accessor);
  wave.fail(access + " races with " + AccessLog::describe(other, wave.accessor) +
                (same ? ": no barrier is between them" : ": nothing orders accesses of work-groups but atomic ones"),
            lane);
}

unsigned char* global_at(const Wave& wave, u64 address, u32 bytes, AccessKind kind, int lane) {
  auto access = [&] {
    const char* const names[] = {"a load of ", "a store of ", "an atomic operation on "};
    return names[static_cast<int>(kind)] + std::to_string(bytes) + " bytes at " + hex(address);
  };
  if (const char* wrong = wave.regions->check(address, bytes, kind != AccessKind::Read))
    wave.fail(access() + " " + wrong, lane);
  if (wave.accesses != nullptr)
    if (const u64 other = wave.accesses->note(address, bytes, kind, wave.accessor))
      fail_race(wave, access(), other, lane);
  return reinterpret_cast<unsigned char*>(address);
}

u32 scratch_word(const Wave& wave, u64 address, u32 bytes, int lane) {
  const u64 words = wave.scratch_undefined.size();
  if (address % 4 != 0 && (address % 4) + bytes > 4) wave.fail("scratch memory is accessed across words", lane);
  if (address / 4 + (bytes + 3) / 4 > words)
    wave.fail("scratch memory is accessed at " + std::to_string(address) + ", a lane has " + std::to_string(words * 4) +
                  " bytes",
              lane);
  return static_cast<u32>(address / 4);
}

bool is_private(u64 address) { return address >> 48 == kPrivateBase >> 48; }
bool is_shared(u64 address) { return address >> 48 == kSharedBase >> 48; }

// Bytes of one lane, wherever a flat address leads. Undefined bytes exist in scratch memory alone.
void load_bytes(Wave& wave, u64 address, u32 bytes, Space space, int lane, u32* words, bool& undefined) {
  if (space == Space::Scratch || (space == Space::Flat && is_private(address))) {
    const u32 first = scratch_word(wave, address & 0xffffffffu, bytes, lane);
    for (u32 k = 0; k < (bytes + 3) / 4; ++k) {
      words[k] = wave.scratch[(first + k) * static_cast<u32>(wave.lanes) + static_cast<u32>(lane)];
      undefined |= (wave.scratch_undefined[first + k] >> lane & 1u) != 0;
    }
    if (bytes < 4) words[0] >>= 8 * (address % 4);
    return;
  }
  if (space == Space::Flat && is_shared(address)) {
    const auto at = static_cast<u32>(address);
    if (static_cast<u64>(at) + bytes > wave.local->bytes()) wave.fail("shared memory is accessed beyond its end", lane);
    if (const char* wrong = wave.local->read(at, bytes, wave.id))
      wave.fail(std::string("the instruction ") + wrong, lane);
    std::memcpy(words, wave.local->at(at), bytes);
    return;
  }
  std::memcpy(words, global_at(wave, address, bytes, AccessKind::Read, lane), bytes);
}

void store_bytes(Wave& wave, u64 address, u32 bytes, Space space, int lane, const u32* words, bool undefined) {
  if (space == Space::Scratch || (space == Space::Flat && is_private(address))) {
    const u32 first = scratch_word(wave, address & 0xffffffffu, bytes, lane);
    for (u32 k = 0; k < (bytes + 3) / 4; ++k) {
      u32& word = wave.scratch[(first + k) * static_cast<u32>(wave.lanes) + static_cast<u32>(lane)];
      std::memcpy(reinterpret_cast<unsigned char*>(&word) + (bytes < 4 ? address % 4 : 0), words + k,
                  std::min(bytes, 4u));
      u64& mask = wave.scratch_undefined[first + k];
      mask = (mask & ~(u64{1} << lane)) | static_cast<u64>(undefined) << lane;
    }
    return;
  }
  if (undefined) wave.fail("what is stored is a register that nothing has written, or comes from one", lane);
  if (space == Space::Flat && is_shared(address)) {
    const auto at = static_cast<u32>(address);
    if (static_cast<u64>(at) + bytes > wave.local->bytes()) wave.fail("shared memory is accessed beyond its end", lane);
    if (const char* wrong = wave.local->write(at, bytes, wave.id))
      wave.fail(std::string("the instruction ") + wrong, lane);
    std::memcpy(wave.local->at(at), words, bytes);
    return;
  }
  std::memcpy(global_at(wave, address, bytes, AccessKind::Write, lane), words, bytes);
}

void count_load(Wave& wave, const Operand& destination, Space space) {
  wave.issue(kLoad, false);
  if (space == Space::Flat) wave.issue(kLocal, false);
  wave.will_write(destination, kLoad, space == Space::Flat);
}
void count_store(Wave& wave, Space space) {
  const Counter counter = is_gfx9(wave.target) ? kLoad : kStore;
  wave.issue(counter, false);
  if (space == Space::Flat) wave.issue(kLocal, false);
}

template <Space space, u32 bytes, Fill fill>
void load(Wave& wave, const Instruction& i) {
  const Addresses addresses(wave, i, i.src[0], i.src[1], space);
  constexpr int kWords = (bytes + 3) / 4;
  alignas(64) u32 values[kWords][kMaxLanes];
  u64 unknown = 0;
  for (int l = 0; l < wave.lanes; ++l) {
    if (wave.active[l] == 0) continue;
    u32 words[kWords] = {};
    bool undefined = false;
    load_bytes(wave, addresses(l), bytes, space, l, words, undefined);
    if (bytes == 1) words[0] = fill == Fill::Sign ? static_cast<u32>(static_cast<int8_t>(words[0])) : words[0] & 255u;
    if (bytes == 2)
      words[0] = fill == Fill::Sign ? static_cast<u32>(static_cast<int16_t>(words[0])) : words[0] & 0xffffu;
    if (fill == Fill::Low) words[0] |= wave.row(i.dst.reg)[l] & 0xffff0000u;
    if (fill == Fill::High) words[0] = words[0] << 16 | (wave.row(i.dst.reg)[l] & 0xffffu);
    for (int k = 0; k < kWords; ++k) values[k][l] = words[k];
    unknown |= static_cast<u64>(undefined) << l;
  }
  for (int k = 0; k < kWords; ++k) {
    u32* row = wave.row(i.dst.reg + k);
    for (int l = 0; l < wave.lanes; ++l)
      if (wave.active[l] != 0) row[l] = values[k][l];
  }
  count_load(wave, i.dst, space);
  wave.set_undefined(i.dst, unknown);
}

template <Space space, u32 bytes, bool high>
void store(Wave& wave, const Instruction& i) {
  const Addresses addresses(wave, i, i.src[0], i.src[2], space);
  constexpr int kWords = (bytes + 3) / 4;
  const u64 unknown = wave.undefined_lanes(i.src[1]);
  for (int l = 0; l < wave.lanes; ++l) {
    if (wave.active[l] == 0) continue;
    u32 words[kWords];
    for (int k = 0; k < kWords; ++k) words[k] = wave.row(i.src[1].reg + k)[l];
    if (high) words[0] >>= 16;
    store_bytes(wave, addresses(l), bytes, space, l, words, (unknown >> l & 1u) != 0);
  }
  count_store(wave, space);
}

template <class F, Space space, bool returns>
void atomic(Wave& wave, const Instruction& i) {
  const Addresses addresses(wave, i, i.src[0], i.src[2], space);
  wave.need_defined(i.src[1], "what is stored");
  u32 before[kMaxLanes] = {};
  const u32* data = wave.row(i.src[1].reg);
  for (int l = 0; l < wave.lanes; ++l) {
    if (wave.active[l] == 0) continue;
    const u64 address = addresses(l);
    if (space == Space::Flat && (is_private(address) || is_shared(address)))
      wave.fail("a flat atomic operation outside global memory is unknown to the interpreter", l);
    if (address % 4 != 0) wave.fail("address " + hex(address) + " is no multiple of 4", l);
    auto* at = reinterpret_cast<u32*>(global_at(wave, address, 4, AccessKind::Atomic, l));
    u32 old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, F{}(old, data[l]), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    before[l] = old;
  }
  if (!returns) return count_store(wave, space);
  blend(wave, i.dst.reg, before);
  count_load(wave, i.dst, space);
  wave.set_undefined(i.dst, 0);
}

// Names: gfx11 and gfx12, then gfx9.
struct Names {
  const char *newer, *older;
};
class Table {
 public:
  std::vector<OpEntry> entries;

  template <u32 bytes, Fill fill>
  void loads(Names global, Names flat, Names scratch) {
    add(global, load<Space::Global, bytes, fill>, 1, fill >= Fill::Low);
    add(flat, load<Space::Flat, bytes, fill>, 1, fill >= Fill::Low);
    add(scratch, load<Space::Scratch, bytes, fill>, 1, fill >= Fill::Low);
  }
  template <u32 bytes, bool high = false>
  void stores(Names global, Names flat, Names scratch) {
    add(global, store<Space::Global, bytes, high>, 0, false);
    add(flat, store<Space::Flat, bytes, high>, 0, false);
    add(scratch, store<Space::Scratch, bytes, high>, 0, false);
  }
  // Whether a value comes back is in the operands, not in the name (parse.cpp).
  template <class F>
  void atomics(Names global, Names flat, Names global_returns, Names flat_returns, F) {
    add(global, atomic<F, Space::Global, false>, 0, false);
    add(flat, atomic<F, Space::Flat, false>, 0, false);
    add(global_returns, atomic<F, Space::Global, true>, 1, false);
    add(flat_returns, atomic<F, Space::Flat, true>, 1, false);
  }

 private:
  void add(Names names, Handler run, int destinations, bool keeps) {
    for (const char* name : {names.newer, names.older}) {
      entries.push_back(own_op(name, run, destinations, Type::B32));
      entries.back().keeps = keeps;
    }
  }
};

#define STRATA_NAMES(newer, older) \
  {"global_" newer, "global_" older}, {"flat_" newer, "flat_" older}, { "scratch_" newer, "scratch_" older }
#define STRATA_ATOMIC_NAMES(newer, older)                             \
  {"global_" newer, "global_" older}, {"flat_" newer, "flat_" older}, \
      {"global_" newer " returning", "global_" older " returning"}, { \
    "flat_" newer " returning", "flat_" older " returning"            \
  }

// Constants of a wave. `bytes` below 4: gfx12.
template <u32 bytes, bool sign>
void scalar_load(Wave& wave, const Instruction& i) {
  wave.need_defined(i.src[0], "the address");
  if (wave.undefined_lanes(i.src[0]) != 0 || wave.undefined_lanes(i.src[1]) != 0)
    wave.fail("the address is a register that nothing has written");
  u64 address = wave.s64(i.src[0].reg) + static_cast<u64>(static_cast<int64_t>(i.offset));
  if (i.src[1].kind == Kind::Value)
    address += static_cast<u64>(static_cast<int64_t>(static_cast<int32_t>(i.src[1].value)));
  else if (i.src[1].kind == Kind::Scalar)
    address += wave.read_scalar(i.src[1].reg);
  constexpr u32 kWords = (bytes + 3) / 4;
  if (address % std::min(bytes, 4u) != 0) wave.fail("address " + hex(address) + " is no multiple of 4");
  u32 words[kWords] = {};
  std::memcpy(words, global_at(wave, address, bytes, AccessKind::Read, -1), bytes);
  if (sign)
    words[0] =
        bytes == 1 ? static_cast<u32>(static_cast<int8_t>(words[0])) : static_cast<u32>(static_cast<int16_t>(words[0]));
  for (u32 k = 0; k < kWords; ++k) wave.write_scalar(i.dst.reg + static_cast<int>(k), words[k]);
  const Counter counter = is_gfx12(wave.target) ? kConstant : kLocal;
  wave.issue(counter, true);
  Operand destination = i.dst;
  destination.words = kWords;
  wave.will_write(destination, counter, false);
}
template <u32 bytes, bool sign = false>
OpEntry scalar_load_op(const char* name) {
  return own_op(name, scalar_load<bytes, sign>, 1, Type::B32);
}
void nothing(Wave&, const Instruction&) {}

}  // namespace

std::vector<OpEntry> global_ops() {
  Table t;
  t.loads<1, Fill::Zero>(STRATA_NAMES("load_u8", "load_ubyte"));
  t.loads<1, Fill::Sign>(STRATA_NAMES("load_i8", "load_sbyte"));
  t.loads<2, Fill::Zero>(STRATA_NAMES("load_u16", "load_ushort"));
  t.loads<2, Fill::Sign>(STRATA_NAMES("load_i16", "load_sshort"));
  t.loads<2, Fill::Low>(STRATA_NAMES("load_d16_b16", "load_short_d16"));
  t.loads<2, Fill::High>(STRATA_NAMES("load_d16_hi_b16", "load_short_d16_hi"));
  t.loads<4, Fill::Zero>(STRATA_NAMES("load_b32", "load_dword"));
  t.loads<8, Fill::Zero>(STRATA_NAMES("load_b64", "load_dwordx2"));
  t.loads<12, Fill::Zero>(STRATA_NAMES("load_b96", "load_dwordx3"));
  t.loads<16, Fill::Zero>(STRATA_NAMES("load_b128", "load_dwordx4"));
  t.stores<1>(STRATA_NAMES("store_b8", "store_byte"));
  t.stores<2>(STRATA_NAMES("store_b16", "store_short"));
  t.stores<1, true>(STRATA_NAMES("store_d16_hi_b8", "store_byte_d16_hi"));
  t.stores<2, true>(STRATA_NAMES("store_d16_hi_b16", "store_short_d16_hi"));
  t.stores<4>(STRATA_NAMES("store_b32", "store_dword"));
  t.stores<8>(STRATA_NAMES("store_b64", "store_dwordx2"));
  t.stores<12>(STRATA_NAMES("store_b96", "store_dwordx3"));
  t.stores<16>(STRATA_NAMES("store_b128", "store_dwordx4"));
  t.atomics(STRATA_ATOMIC_NAMES("atomic_add_u32", "atomic_add"), [](u32 a, u32 b) { return a + b; });
  t.atomics(STRATA_ATOMIC_NAMES("atomic_max_u32", "atomic_umax"), [](u32 a, u32 b) { return std::max(a, b); });
  t.atomics(STRATA_ATOMIC_NAMES("atomic_min_u32", "atomic_umin"), [](u32 a, u32 b) { return std::min(a, b); });
  t.atomics(STRATA_ATOMIC_NAMES("atomic_or_b32", "atomic_or"), [](u32 a, u32 b) { return a | b; });
  t.atomics(STRATA_ATOMIC_NAMES("atomic_and_b32", "atomic_and"), [](u32 a, u32 b) { return a & b; });
  t.atomics(STRATA_ATOMIC_NAMES("atomic_swap_b32", "atomic_swap"), [](u32, u32 b) { return b; });
  t.atomics(STRATA_ATOMIC_NAMES("atomic_add_f32", "atomic_add_f32"),
            [](u32 a, u32 b) { return std::bit_cast<u32>(std::bit_cast<float>(a) + std::bit_cast<float>(b)); });
  return t.entries;
}

std::vector<OpEntry> scalar_memory_ops() {
  return {
      scalar_load_op<4>("s_load_b32"),
      scalar_load_op<4>("s_load_dword"),
      scalar_load_op<8>("s_load_b64"),
      scalar_load_op<8>("s_load_dwordx2"),
      scalar_load_op<12>("s_load_b96"),
      scalar_load_op<16>("s_load_b128"),
      scalar_load_op<16>("s_load_dwordx4"),
      scalar_load_op<32>("s_load_b256"),
      scalar_load_op<32>("s_load_dwordx8"),
      scalar_load_op<64>("s_load_b512"),
      scalar_load_op<64>("s_load_dwordx16"),
      scalar_load_op<1>("s_load_u8"),
      scalar_load_op<1, true>("s_load_i8"),
      scalar_load_op<2>("s_load_u16"),
      scalar_load_op<2, true>("s_load_i16"),
      own_op("s_dcache_inv", nothing, 0, Type::Any),
      own_op("s_icache_inv", nothing, 0, Type::Any),
  };
}

}  // namespace strata::amdsim
