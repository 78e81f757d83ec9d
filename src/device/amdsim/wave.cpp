#include "device/amdsim/wave.h"

#include "base/error.h"
#include "device/amdsim/program.h"

namespace strata::amdsim {
namespace {

// The word of an operand whose operation is under way, or -1. `again`: a load that writes it once more, in order.
int pending_word(const Wave& wave, const Operand& operand, bool again) {
  for (int k = 0; k < operand.words; ++k) {
    const size_t reg = operand.reg + static_cast<size_t>(k);
    if (operand.kind == Kind::Vector) {
      if ((!again && wave.pending[0][reg] > wave.waits.done[kLoad]) || wave.pending[1][reg] > wave.waits.done[kLocal])
        return k;
    } else if (operand.kind == Kind::Scalar && reg < kScalars) {
      if (wave.s_pending[reg] > wave.waits.done[is_gfx12(wave.target) ? kConstant : kLocal]) return k;
    }
  }
  return -1;
}

uint32_t bit_of(const Operand& operand, int word) {
  return static_cast<uint32_t>(operand.reg + word) + (operand.kind == Kind::Scalar ? Wave::kScalarBits : 0);
}
bool any_unsure(const Wave& wave, const Operand& operand) {
  const uint32_t first = bit_of(operand, 0), in_word = first % 64;
  uint64_t bits = wave.unsure[first / 64] >> in_word;
  if (in_word + operand.words > 64) bits |= wave.unsure[first / 64 + 1] << (64 - in_word);
  return (bits & ((uint64_t{1} << operand.words) - 1)) != 0;  // an operand has 32 words at most
}

std::string register_name(const Operand& operand, int word) {
  const int reg = operand.reg + word;
  if (operand.kind == Kind::Scalar) return "s" + std::to_string(reg);
  return reg < kAccumulators ? "v" + std::to_string(reg) : "a" + std::to_string(reg - kAccumulators);
}

}  // namespace

void Wave::exec_changed() {
  exec = lanes == 64 ? s64(kExec) : s[kExec];
  for (int l = 0; l < lanes; ++l) active[l] = 0u - static_cast<uint32_t>(exec >> l & 1u);
}

void Wave::write_scalar(int reg, uint32_t value, uint32_t undefined_bits) {
  if (reg == kNull) return;
  if (reg == kScc) {
    scc = value != 0;
    scc_undefined = undefined_bits != 0;
    return;
  }
  s[reg] = value;
  s_undefined[reg] = undefined_bits;
  if (reg < kExec) return;
  if (undefined_bits != 0) fail("EXEC is set to an undefined value");
  exec_changed();
}

uint64_t Wave::read_mask(const Operand& operand) const {
  if (operand.kind == Kind::Value) return operand.value & full;
  if (operand.reg == kNull) return 0;
  return wide() ? s64(operand.reg) : s[operand.reg];
}

uint64_t Wave::undefined_mask(const Operand& operand) const {
  if (operand.kind != Kind::Scalar || operand.reg == kNull || operand.reg == kScc) return 0;
  uint64_t mask = s_undefined[operand.reg];
  if (wide()) mask |= static_cast<uint64_t>(s_undefined[operand.reg + 1]) << 32;
  return mask;
}

uint64_t Wave::undefined_lanes(const Operand& operand) const {
  uint64_t lanes_undefined = 0;
  if (operand.kind == Kind::Vector) {
    for (int k = 0; k < operand.words; ++k) lanes_undefined |= undefined[operand.reg + static_cast<size_t>(k)];
  } else if (operand.kind == Kind::Scalar) {
    if (operand.reg == kScc) return scc_undefined ? ~uint64_t{0} : 0;
    for (int k = 0; k < operand.words; ++k)
      if (operand.reg != kNull && s_undefined[operand.reg + k] != 0) lanes_undefined = ~uint64_t{0};
  }
  return lanes_undefined;
}

void Wave::need_defined(const Operand& operand, const char* what) const {
  const uint64_t wrong = undefined_lanes(operand) & exec;
  if (wrong == 0) return;
  fail(std::string(what) + " is a register that nothing has written, or comes from one (" + register_name(operand, 0) +
           ")",
       __builtin_ctzll(wrong));
}

void Wave::will_write(const Operand& operand, Counter counter, bool flat) {
  if (operand.kind == Kind::Vector) {
    for (int k = 0; k < operand.words; ++k) {
      const size_t reg = operand.reg + static_cast<size_t>(k);
      if (counter == kLoad || flat) pending[0][reg] = waits.issued[kLoad];
      if (counter == kLocal || flat) pending[1][reg] = waits.issued[kLocal];
    }
  } else {
    for (int k = 0; k < operand.words; ++k) s_pending[operand.reg + k] = waits.issued[counter];
  }
  for (int k = 0; k < operand.words; ++k) unsure[bit_of(operand, k) / 64] |= uint64_t{1} << bit_of(operand, k) % 64;
}

void Wave::fail(const std::string& message, int lane) const {
  std::string where = std::string("kernel ") + kernel;
  if (current != nullptr && program != nullptr) {
    char address[24] = {};
    std::snprintf(address, sizeof(address), "%#x", current->address);
    where += std::string(", address ") + address + ", " + program->text_at(current->address);
  }
  where += ", wave " + std::to_string(id);
  if (lane >= 0) where += ", lane " + std::to_string(lane);
  throw Error(ErrorKind::Device, message, where);
}

void check_pending(Wave& wave, const Instruction& i) {
  if (!wave.waits.any()) return;
  const Operand* const all[] = {&i.src[0], &i.src[1], &i.src[2], &i.src[3], &i.dst2, &i.dst};
  for (const Operand* operand : all) {
    if (operand->kind != Kind::Vector && operand->kind != Kind::Scalar) continue;
    if (!any_unsure(wave, *operand)) continue;
    const bool again = operand == &i.dst && i.vector_load && !i.keeps;
    const int word = pending_word(wave, *operand, again);
    if (word < 0 && !again)
      for (int k = 0; k < operand->words; ++k)
        wave.unsure[bit_of(*operand, k) / 64] &= ~(uint64_t{1} << bit_of(*operand, k) % 64);
    if (word >= 0)
      wave.fail(register_name(*operand, word) +
                " is used while the memory operation that brings it is under way: a wait is missing");
  }
}

void flow_vector(Wave& wave, const Instruction& i) {
  uint64_t lanes_undefined = 0;
  for (const Operand& source : i.src)
    if (source.kind != Kind::None) lanes_undefined |= wave.undefined_lanes(source);
  if (i.dst.kind != Kind::Vector) return;
  if (i.keeps) lanes_undefined |= wave.undefined_lanes(i.dst);
  wave.set_undefined(i.dst, lanes_undefined);
}

void flow_pair(Wave& wave, const Instruction& i) {
  uint64_t unknown[2] = {};
  for (int half = 0; half < 2; ++half)
    for (int n = 0; n < 3; ++n) {
      Operand word = i.src[n];
      if (word.kind == Kind::None || word.kind == Kind::Value) continue;
      const bool high = ((half == 0 ? i.op_sel : i.op_sel_hi) >> n & 1) != 0;
      if (high && word.words == 2) ++word.reg;
      word.words = 1;
      unknown[half] |= wave.undefined_lanes(word);
    }
  Operand word = i.dst;
  word.words = 1;
  wave.set_undefined(word, unknown[0]);
  ++word.reg;
  wave.set_undefined(word, unknown[1]);
}

void flow_upward(Wave& wave, const Instruction& i) {
  uint64_t low = 0, high = 0;
  for (const Operand& source : i.src) {
    Operand word = source;
    word.words = 1;
    if (source.kind != Kind::None) low |= wave.undefined_lanes(word);
    ++word.reg;
    if (source.words == 2 && source.kind != Kind::Value && source.reg != kNull) high |= wave.undefined_lanes(word);
  }
  Operand word = i.dst;
  word.words = 1;
  wave.set_undefined(word, low);
  ++word.reg;
  wave.set_undefined(word, low | high);
}

}  // namespace strata::amdsim
