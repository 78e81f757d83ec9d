// State of a wave and of its work-group.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "device/amdsim/access_log.h"
#include "device/amdsim/instruction.h"
#include "device/amdsim/local_memory.h"
#include "device/amdsim/regions.h"

namespace strata::amdsim {

class Program;

inline constexpr int kMaxLanes = 64;
inline constexpr int kCounters = 4;
enum Counter : uint8_t { kLoad, kStore, kLocal, kConstant };  // vmcnt, vscnt, lgkmcnt (dscnt), kmcnt

// Memory operations under way. Numbers count operations of a counter from 1.
struct Waits {
  uint32_t issued[kCounters] = {}, done[kCounters] = {};
  uint32_t unordered[kCounters] = {};  // the last operation that may overtake others
  uint32_t last_local = 0;             // of shared memory, in the counter kLocal
  bool any() const {
    bool result = false;
    for (int c = 0; c < kCounters; ++c) result |= issued[c] != done[c];
    return result;
  }
  void wait(Counter c, uint32_t left) {
    const uint32_t under_way = issued[c] - done[c];
    if (left >= under_way) return;
    if (left > 0 && unordered[c] > done[c]) return;
    done[c] = issued[c] - left;
  }
};

enum class WaveState : uint8_t { Running, Barrier, Ended };

struct Wave {
  Target target = Target::Gfx1100;
  int lanes = 32;
  uint64_t full = 0xffffffffu;  // every lane
  uint64_t exec = 0;
  bool scc = false, scc_undefined = true;
  WaveState state = WaveState::Running;
  bool signalled = false;  // gfx12: between s_barrier_signal and s_barrier_wait
  uint8_t id = 0;
  uint32_t pc = 0;  // index of the instruction after the one that runs
  uint64_t instructions = 0;
  alignas(64) uint32_t active[kMaxLanes] = {};  // all ones where EXEC is set
  uint32_t s[kScalars] = {};
  uint32_t s_undefined[kScalars] = {};  // by bit
  std::vector<uint32_t> v;              // [register, lane]
  std::vector<uint64_t> undefined;      // [register], a bit for each lane
  Waits waits;
  std::vector<uint32_t> pending[2];  // [register]: the operation of kLoad, of kLocal that brings it
  uint32_t s_pending[kScalars] = {};
  // A bit for each register, of vectors from 0 on and of scalars from kScalarBits on: an operation may still be under
  // way that brings it.
  uint64_t unsure[(2 * kAccumulators + 192) / 64] = {};
  static constexpr uint32_t kScalarBits = 2 * kAccumulators;
  std::vector<uint32_t> scratch;            // [word, lane]
  std::vector<uint64_t> scratch_undefined;  // [word]

  LocalMemory* local = nullptr;
  RegionCache* regions = nullptr;
  AccessView* accesses = nullptr;  // of global memory; null: no other wave is there
  uint64_t accessor = 0;           // who the wave is in the log of accesses
  const Program* program = nullptr;
  const char* kernel = "";
  const Instruction* current = nullptr;

  uint32_t* row(int reg) { return v.data() + static_cast<size_t>(reg) * static_cast<size_t>(lanes); }
  uint64_t s64(int reg) const { return s[reg] | static_cast<uint64_t>(s[reg + 1]) << 32; }
  bool wide() const { return lanes == 64; }

  // Scalars that mean more than their number.
  uint32_t read_scalar(int reg) const {
    if (reg == kNull) return 0;
    return reg == kScc ? static_cast<uint32_t>(scc) : s[reg];
  }
  void write_scalar(int reg, uint32_t value, uint32_t undefined_bits = 0);
  void write_scalar64(int reg, uint64_t value, uint64_t undefined_bits = 0) {
    write_scalar(reg, static_cast<uint32_t>(value), static_cast<uint32_t>(undefined_bits));
    if (reg != kNull)
      write_scalar(reg + 1, static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(undefined_bits >> 32));
  }
  // A mask of lanes: one or two registers by the size of the wave.
  uint64_t read_mask(const Operand& operand) const;
  uint64_t undefined_mask(const Operand& operand) const;
  void write_mask(int reg, uint64_t value, uint64_t undefined_bits) {
    if (wide())
      write_scalar64(reg, value, undefined_bits);
    else
      write_scalar(reg, static_cast<uint32_t>(value), static_cast<uint32_t>(undefined_bits));
  }
  void exec_changed();

  uint64_t read64(const Operand& operand) const {
    if (operand.kind == Kind::Value) return operand.value;
    if (operand.reg == kNull) return 0;
    return operand.words == 1 ? read_scalar(operand.reg) : s64(operand.reg);
  }
  uint32_t read32(const Operand& operand) const {
    return operand.kind == Kind::Value ? static_cast<uint32_t>(operand.value) : read_scalar(operand.reg);
  }

  // Lanes whose value is undefined, of all registers of an operand.
  uint64_t undefined_lanes(const Operand& operand) const;
  void set_undefined(const Operand& operand, uint64_t lanes_undefined) {
    for (int k = 0; k < operand.words; ++k) {
      uint64_t& mask = undefined[operand.reg + static_cast<size_t>(k)];
      mask = (mask & ~exec) | (lanes_undefined & exec);
    }
  }
  void need_defined(const Operand& operand, const char* what) const;

  // The operation just issued brings these registers. `other`: flat accesses count in two counters.
  void will_write(const Operand& operand, Counter counter, bool flat);
  void issue(Counter counter, bool unordered) {
    ++waits.issued[counter];
    if (unordered) waits.unordered[counter] = waits.issued[counter];
  }

  [[noreturn]] void fail(const std::string& message, int lane = -1) const;
};

// Undefined values and operations under way of the registers that an instruction names, before it runs; what becomes of
// its destinations.
void check_pending(Wave& wave, const Instruction& i);
void flow_vector(Wave& wave, const Instruction& i);
void flow_upward(Wave& wave, const Instruction& i);
void flow_pair(Wave& wave, const Instruction& i);
inline void flow(Wave& wave, const Instruction& i) {
  if (i.flow == Flow::Vector) flow_vector(wave, i);
  if (i.flow == Flow::Upward) flow_upward(wave, i);
  if (i.flow == Flow::Pair) flow_pair(wave, i);
}

}  // namespace strata::amdsim
