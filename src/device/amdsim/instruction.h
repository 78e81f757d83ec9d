// One instruction in the form that the interpreter runs: text of the disassembler, parsed once per code object.
#pragma once

#include <cstdint>

namespace strata::amdsim {

enum class Target : uint8_t { Gfx942, Gfx1100, Gfx1151, Gfx1201 };
inline bool is_gfx9(Target t) { return t == Target::Gfx942; }
inline bool is_gfx12(Target t) { return t == Target::Gfx1201; }
inline int lanes_of(Target t) { return is_gfx9(t) ? 64 : 32; }

// Scalar registers by number: s0..s105, then names. ttmp0 is kTrap.
enum Scalar : uint16_t { kVcc = 106, kTrap = 108, kM0 = 124, kNull = 125, kExec = 126, kScc = 128, kScalars = 130 };
// Flat addresses from here on are those of shared and of private (scratch) memory; no memory of a host lies there.
inline constexpr uint64_t kSharedBase = uint64_t{1} << 48, kPrivateBase = uint64_t{2} << 48;
inline constexpr int kAccumulators = 256;  // a0 in the file of vector registers

enum class Kind : uint8_t { None, Vector, Scalar, Value };

struct Operand {
  Kind kind = Kind::None;
  uint8_t words = 1;
  uint16_t reg = 0;
  uint64_t value = 0;  // of Kind::Value, as the type of the operand wants it
};

// How an operand's constants are written and how many registers it has.
enum class Type : uint8_t { B16, F16, B32, I32, F32, B64, I64, F64, Pair16, PairF32, Any };

enum class Select : uint8_t { Dword, Byte0, Byte1, Byte2, Byte3, Word0, Word1 };  // SDWA
enum class Dpp : uint8_t { None, QuadPerm, RowShl, RowShr, RowRor, RowMirror, RowHalfMirror, RowShare, RowXmask };

struct Wave;
struct Instruction;
using Handler = void (*)(Wave&, const Instruction&);

// What becomes of undefined values.
enum class Flow : uint8_t {
  Vector,  // lane by lane, from all sources to all destinations
  Upward,  // the same, but the lower word of a result depends on lower words alone
  Pair,    // each of two words from the words that op_sel and op_sel_hi name
  Own,     // the handler sees to it
  Matrix,  // sources must be defined
};

struct Instruction {
  Handler run = nullptr;
  const char* name = nullptr;
  Operand dst, dst2;
  Operand src[4];
  uint32_t address = 0;  // in the code object
  uint32_t next = 0;     // index of the following instruction
  int32_t target = -1;   // index that a branch goes to
  int32_t offset = 0, offset1 = 0;
  uint8_t neg = 0, abs = 0;  // a bit for each source
  uint8_t op_sel = 0, op_sel_hi = 7, neg_lo = 0, neg_hi = 0;
  bool clamp = false;
  uint8_t omod = 0;   // 1: times 2, 2: times 4, 3: halved
  bool plain = true;  // no modifier of sources or result but literals
  bool sdwa = false;
  bool vector_load = false;  // results come in the order of such loads
  Select dst_sel = Select::Dword, src_sel[2] = {Select::Dword, Select::Dword};
  uint8_t sext = 0;
  uint8_t unused = 0;  // SDWA: 0 zeros, 1 sign, 2 preserved
  Dpp dpp = Dpp::None;
  uint8_t dpp_argument = 0, row_mask = 15, bank_mask = 15;
  bool bound_zero = false, fetch_inactive = false;
  Flow flow = Flow::Vector;
  bool keeps = false;  // the destination is a source too
  uint8_t pair = 0;    // VOPD, first half: 1 the second follows; 2 they exchange registers
};

struct OpEntry {
  const char* name;
  Handler run;
  uint8_t destinations;
  Type types[5];  // destination, sources
  Flow flow;
  bool keeps;
};

// The semantics, or null. `name` is without _e32, _e64, _sdwa and _dpp.
const OpEntry* find_op(const char* name);

}  // namespace strata::amdsim
