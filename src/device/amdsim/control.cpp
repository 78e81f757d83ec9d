// SOPP and what steers a wave: branches, calls, EXEC, barriers, waits.
#include <iterator>

#include "device/amdsim/lanes.h"
#include "device/amdsim/program.h"

namespace strata::amdsim {
namespace {

void nothing(Wave&, const Instruction&) {}

void jump(Wave& wave, const Instruction& i) {
  if (i.target < 0) wave.fail("the branch leads to no instruction");
  wave.pc = static_cast<uint32_t>(i.target);
}
void need_condition(const Wave& wave, bool undefined) {
  if (undefined) wave.fail("the branch depends on a register that nothing has written");
}

template <bool wanted>
void branch_scc(Wave& wave, const Instruction& i) {
  need_condition(wave, wave.scc_undefined);
  if (wave.scc == wanted) jump(wave, i);
}
template <bool wanted>
void branch_vcc(Wave& wave, const Instruction& i) {
  Operand vcc;
  vcc.kind = Kind::Scalar;
  vcc.reg = kVcc;
  need_condition(wave, wave.undefined_mask(vcc) != 0);
  if ((wave.read_mask(vcc) == 0) == wanted) jump(wave, i);
}
template <bool wanted>
void branch_exec(Wave& wave, const Instruction& i) {
  if ((wave.exec == 0) == wanted) jump(wave, i);
}

void jump_to(Wave& wave, uint64_t address) {
  const uint64_t base = reinterpret_cast<uint64_t>(wave.program->object().memory.data());
  const int32_t index = address >= base ? wave.program->index_at(address - base) : -1;
  if (index < 0) wave.fail("the jump leads to no instruction");
  wave.pc = static_cast<uint32_t>(index);
}
uint64_t next_address(const Wave& wave, const Instruction& i) {
  return reinterpret_cast<uint64_t>(wave.program->object().memory.data()) + (*wave.program)[i.next].address;
}
void getpc(Wave& wave, const Instruction& i) { wave.write_scalar64(i.dst.reg, next_address(wave, i)); }
void setpc(Wave& wave, const Instruction& i) {
  need_condition(wave, wave.undefined_lanes(i.src[0]) != 0);
  jump_to(wave, wave.read64(i.src[0]));
}
void swappc(Wave& wave, const Instruction& i) {
  need_condition(wave, wave.undefined_lanes(i.src[0]) != 0);
  const uint64_t to = wave.read64(i.src[0]);
  wave.write_scalar64(i.dst.reg, next_address(wave, i));
  jump_to(wave, to);
}

// dst = EXEC; EXEC = what the function makes of the source and EXEC.
template <class F>
void saveexec(Wave& wave, const Instruction& i) {
  const uint64_t mask = wave.read_mask(i.src[0]), before = wave.exec;
  uint64_t unknown = wave.undefined_mask(i.src[0]);
  if (F{}(unknown, before) == F{}(0, before)) unknown = 0;  // outside of what EXEC lets through
  wave.write_mask(i.dst.reg, before, 0);
  const uint64_t after = F{}(mask, before) & wave.full;
  wave.write_mask(kExec, after, unknown);
  wave.scc = after != 0;
  wave.scc_undefined = false;
}
template <class F>
OpEntry saveexec_op(const char* name, F) {
  return own_op(name, &saveexec<F>, 1, Type::B64);
}

// Shared memory operations must have ended where others are let at it. LLVM's memory model has those of gfx9 executed
// in one order for all waves of a work-group, and leaves waits out there.
void need_local_done(const Wave& wave) {
  if (!is_gfx9(wave.target) && wave.waits.last_local > wave.waits.done[kLocal])
    wave.fail("a barrier is reached while an operation on shared memory is under way: a wait is missing");
}
void barrier(Wave& wave, const Instruction&) {
  need_local_done(wave);
  wave.state = WaveState::Barrier;
}
void barrier_signal(Wave& wave, const Instruction&) {
  need_local_done(wave);
  if (wave.signalled) wave.fail("a wave signals a barrier twice");
  wave.signalled = true;
}
void barrier_wait(Wave& wave, const Instruction&) {
  if (!wave.signalled) wave.fail("a wave waits at a barrier that it has not signalled");
  wave.signalled = false;
  wave.state = WaveState::Barrier;
}
void end_program(Wave& wave, const Instruction&) {
  if (wave.signalled) wave.fail("a wave ends between the signal of a barrier and its wait");
  wave.state = WaveState::Ended;
}

void code_end(Wave& wave, const Instruction&) { wave.fail("the wave runs beyond the end of the code"); }

void waitcnt(Wave& wave, const Instruction& i) {
  wave.waits.wait(kLoad, i.src[0].value & 255u);
  wave.waits.wait(kLocal, i.src[0].value >> 8 & 255u);
}
template <Counter counter, int source>
void wait_one(Wave& wave, const Instruction& i) {
  wave.waits.wait(counter, static_cast<uint32_t>(i.src[source].value));
}
template <Counter counter>
void wait_with_local(Wave& wave, const Instruction& i) {
  wave.waits.wait(counter, i.src[0].value >> 8 & 63u);
  wave.waits.wait(kLocal, i.src[0].value & 63u);
}

const OpEntry kControl[] = {
    own_op("s_nop", nothing, 0, Type::Any),
    own_op("s_delay_alu", nothing, 0, Type::Any),
    own_op("s_code_end", code_end, 0, Type::Any),
    own_op("s_clause", nothing, 0, Type::Any),
    own_op("s_sendmsg", nothing, 0, Type::Any),
    own_op("s_setprio", nothing, 0, Type::Any),
    own_op("s_sleep", nothing, 0, Type::Any),
    own_op("s_set_inst_prefetch_distance", nothing, 0, Type::Any),
    own_op("s_waitcnt_depctr", nothing, 0, Type::Any),
    own_op("buffer_gl0_inv", nothing, 0, Type::Any),
    own_op("buffer_gl1_inv", nothing, 0, Type::Any),
    own_op("buffer_inv", nothing, 0, Type::Any),
    own_op("buffer_wbl2", nothing, 0, Type::Any),
    own_op("global_inv", nothing, 0, Type::Any),
    own_op("global_wb", nothing, 0, Type::Any),
    own_op("global_wbinv", nothing, 0, Type::Any),
    own_op("s_wait_bvhcnt", nothing, 0, Type::Any),
    own_op("s_wait_samplecnt", nothing, 0, Type::Any),
    own_op("s_wait_expcnt", nothing, 0, Type::Any),
    own_op("s_wait_alu", nothing, 0, Type::Any),
    own_op("s_waitcnt", waitcnt, 0, Type::Any),
    own_op("s_waitcnt_vscnt", wait_one<kStore, 1>, 0, Type::Any),
    own_op("s_wait_loadcnt", wait_one<kLoad, 0>, 0, Type::Any),
    own_op("s_wait_storecnt", wait_one<kStore, 0>, 0, Type::Any),
    own_op("s_wait_dscnt", wait_one<kLocal, 0>, 0, Type::Any),
    own_op("s_wait_kmcnt", wait_one<kConstant, 0>, 0, Type::Any),
    own_op("s_wait_loadcnt_dscnt", wait_with_local<kLoad>, 0, Type::Any),
    own_op("s_wait_storecnt_dscnt", wait_with_local<kStore>, 0, Type::Any),
    own_op("s_branch", jump, 0, Type::Any),
    own_op("s_cbranch_scc0", branch_scc<false>, 0, Type::Any),
    own_op("s_cbranch_scc1", branch_scc<true>, 0, Type::Any),
    own_op("s_cbranch_vccz", branch_vcc<true>, 0, Type::Any),
    own_op("s_cbranch_vccnz", branch_vcc<false>, 0, Type::Any),
    own_op("s_cbranch_execz", branch_exec<true>, 0, Type::Any),
    own_op("s_cbranch_execnz", branch_exec<false>, 0, Type::Any),
    own_op("s_getpc_b64", getpc, 1, Type::B64),
    own_op("s_setpc_b64", setpc, 0, Type::B64),
    own_op("s_swappc_b64", swappc, 1, Type::B64),
    own_op("s_barrier", barrier, 0, Type::Any),
    own_op("s_barrier_signal", barrier_signal, 0, Type::Any),
    own_op("s_barrier_wait", barrier_wait, 0, Type::Any),
    own_op("s_endpgm", end_program, 0, Type::Any),
};

template <class F>
void add_saveexec(std::vector<OpEntry>& all, const char* narrow, const char* wide, F f) {
  all.push_back(saveexec_op(narrow, f));
  all.push_back(saveexec_op(wide, f));
}

}  // namespace

std::vector<OpEntry> scalar_control_ops() {
  std::vector<OpEntry> all(std::begin(kControl), std::end(kControl));
  using M = uint64_t;
  add_saveexec(all, "s_and_saveexec_b32", "s_and_saveexec_b64", [](M a, M e) { return a & e; });
  add_saveexec(all, "s_or_saveexec_b32", "s_or_saveexec_b64", [](M a, M e) { return a | e; });
  add_saveexec(all, "s_xor_saveexec_b32", "s_xor_saveexec_b64", [](M a, M e) { return a ^ e; });
  add_saveexec(all, "s_and_not1_saveexec_b32", "s_and_not1_saveexec_b64", [](M a, M e) { return a & ~e; });
  add_saveexec(all, "s_andn2_saveexec_b32", "s_andn2_saveexec_b64", [](M a, M e) { return a & ~e; });
  add_saveexec(all, "s_and_not0_saveexec_b32", "s_and_not0_saveexec_b64", [](M a, M e) { return ~a & e; });
  add_saveexec(all, "s_andn1_saveexec_b32", "s_andn1_saveexec_b64", [](M a, M e) { return ~a & e; });
  add_saveexec(all, "s_or_not1_saveexec_b32", "s_or_not1_saveexec_b64", [](M a, M e) { return a | ~e; });
  add_saveexec(all, "s_orn2_saveexec_b32", "s_orn2_saveexec_b64", [](M a, M e) { return a | ~e; });
  return all;
}

}  // namespace strata::amdsim
