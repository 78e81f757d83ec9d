// The checks of the interpreter, each on a small kernel that breaks one rule, and control flow.
#include <gtest/gtest.h>

#include "base/error.h"
#include "device/amdsim/decoder.h"
#include "unit/amdsim/assembled.h"

namespace strata::amdsim {
namespace {

// Pointers of the arguments: s[4:5] out, s[6:7] in; v1: four times the thread.
const std::string kStart11 = "s_load_b128 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n";
const std::string kStart12 = "s_load_b128 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\ns_wait_kmcnt 0x0\n";
const std::string kStart9 = "s_load_dwordx4 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n";
// A pass through LDS: every thread writes its word and reads that of 32 threads on.
const std::string kPass11 =
    "ds_store_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nv_xor_b32 v2, 0x80, v1\nds_load_b32 v3, v2\n"
    "s_waitcnt lgkmcnt(0)\nglobal_store_b32 v1, v3, s[4:5]\n";
const std::string kMatrix11 =
    "v_and_b32 v2, 15, v0\nv_mov_b32 v3, v2\nv_mov_b32 v4, v2\nv_mov_b32 v5, v2\nv_mov_b32 v6, v2\nv_mov_b32 v7, v2\n"
    "v_mov_b32 v8, v2\nv_mov_b32 v9, v2\n";
const std::string kWmma11 = "v_wmma_f32_16x16x16_f16 v[16:23], v[2:9], v[2:9], 0\nglobal_store_b32 v1, v16, s[4:5]\n";

const std::vector<SmallKernel>& kernels11() {
  static const std::vector<SmallKernel> kernels = {
      {"good", kStart11 + kPass11, 256},
      {"no_barrier",
       kStart11 + "ds_store_b32 v1, v0\ns_waitcnt lgkmcnt(0)\nv_xor_b32 v2, 0x80, v1\nds_load_b32 v3, v2\n", 256},
      {"two_writers", kStart11 + "v_and_b32 v2, 0x7c, v1\nds_store_b32 v2, v0\n", 256},
      {"two_byte_writers", kStart11 + "v_and_b32 v2, 31, v0\nds_store_b8 v2, v0\n", 256},
      {"bytes_apart", kStart11 + "ds_store_b8 v0, v0\n", 256},
      {"overwritten",
       kStart11 + "ds_store_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nv_xor_b32 v2, 0x80, v1\nds_load_b32 v3, v2\n"
                  "s_waitcnt lgkmcnt(0)\nds_store_b32 v1, v0\n",
       256},
      {"unwritten", kStart11 + "ds_load_b32 v3, v1\n", 256},
      {"local_end", kStart11 + "ds_store_b32 v1, v0 offset:4\n", 256},
      {"local_odd", kStart11 + "ds_store_b32 v1, v0 offset:2\n", 1024},
      {"no_register", kStart11 + "global_store_b32 v1, v9, s[4:5]\n"},
      {"some_lanes",
       kStart11 + "v_cmpx_gt_u32 7, v0\nv_mov_b32 v9, 1\ns_mov_b32 exec_lo, -1\nglobal_store_b32 v1, v9, s[4:5]\n"},
      {"no_scalar", kStart11 + "v_mov_b32 v9, s30\nv_add_nc_u32 v9, v9, v0\nglobal_store_b32 v1, v9, s[4:5]\n"},
      {"no_condition", kStart11 + "s_cmp_eq_u32 s30, 0\ns_cbranch_scc1 1f\ns_nop 0\n1:\n"},
      {"no_address", kStart11 + "global_store_b32 v9, v0, s[4:5]\n"},
      {"unused_register", kStart11 + "v_add_nc_u32 v9, v9, v0\nv_mov_b32 v9, 5\nglobal_store_b32 v1, v9, s[4:5]\n"},
      {"beyond", kStart11 + "global_store_b32 v1, v0, s[4:5] offset:4092\n"},
      {"outside", kStart11 + "v_mov_b32 v2, 0x7fffffff\nv_and_b32 v2, -4, v2\nglobal_load_b32 v3, v2, s[4:5]\n"},
      {"constant", kStart11 + "global_store_b32 v1, v0, s[0:1]\n"},
      {"odd", kStart11 + "s_load_b32 s8, s[6:7], 0x2\n"},
      {"odd_atomic", kStart11 + "global_atomic_add_u32 v1, v0, s[4:5] offset:2\n"},
      {"no_load_wait", kStart11 + "global_load_b32 v3, v1, s[6:7]\nv_add_nc_u32 v3, v3, v0\n"},
      {"early_load_wait",
       kStart11 +
           "global_load_b32 v3, v1, s[6:7]\nglobal_load_b32 v4, v1, s[6:7]\ns_waitcnt vmcnt(1)\nv_mov_b32 v5, v3\n"
           "v_mov_b32 v6, v4\n"},
      {"overwrites_load", kStart11 + "global_load_b32 v3, v1, s[6:7]\nv_mov_b32 v3, 0\n"},
      {"no_constant_wait", "s_load_b64 s[4:5], s[0:1], 0x0\ns_add_u32 s6, s4, 4\n"},
      {"no_local_wait", kStart11 + "ds_store_b32 v1, v0\nds_load_b32 v3, v1\nv_mov_b32 v4, v3\n", 256},
      {"no_exchange_wait", kStart11 + "ds_bpermute_b32 v3, v1, v0\nv_mov_b32 v4, v3\n"},
      {"no_wait_at_barrier", kStart11 + "ds_store_b32 v1, v0\ns_barrier\n", 256},
      {"unknown", kStart11 + "v_sad_u8 v3, v0, v0, v0\n"},
      {"one_leaves", kStart11 + "v_readfirstlane_b32 s8, v0\ns_cmp_eq_u32 s8, 0\ns_cbranch_scc1 1f\ns_barrier\n1:\n"},
      {"endless", "1: s_branch 1b\n"},
      {"scratch_end", kStart11 + "scratch_store_b32 off, v0, off offset:16\n", 0, 16},
      {"scratch_unwritten",
       kStart11 + "scratch_load_b32 v3, off, off\ns_waitcnt vmcnt(0)\nglobal_store_b32 v1, v3, s[4:5]\n", 0, 16},
      {"matrix", kStart11 + kMatrix11 + kWmma11},
      {"matrix_uneven", kStart11 + kMatrix11 + "v_mov_b32 v5, v0\n" + kWmma11},
      {"matrix_lanes", kStart11 + kMatrix11 + "v_cmpx_gt_u32 31, v0\n" + kWmma11},
      {"matrix_unwritten", kStart11 + "v_wmma_f32_16x16x16_f16 v[16:23], v[2:9], v[2:9], 0\n"},
      {"flow",  // out[thread] = 1 + 2 + ... + 5, by a loop, a call and branches of every kind
       kStart11 + "s_mov_b32 s8, 0\ns_mov_b32 s9, 5\n1: s_add_i32 s8, s8, s9\ns_sub_i32 s9, s9, 1\ns_cmp_lg_u32 s9, 0\n"
                  "s_cbranch_scc1 1b\ns_getpc_b64 s[10:11]\n2: s_add_u32 s10, s10, 4f-2b\ns_addc_u32 s11, s11, 0\n"
                  "s_swappc_b64 s[12:13], s[10:11]\ns_branch 5f\n4: s_add_i32 s8, s8, 100\ns_setpc_b64 s[12:13]\n"
                  "5: v_cmp_gt_u32 vcc_lo, 0, v0\ns_cbranch_vccnz 6f\ns_cbranch_vccz 7f\n6: s_mov_b32 s8, 0\n"
                  "7: s_cmp_eq_u32 s9, 0\ns_cbranch_scc0 6b\ns_mov_b32 s14, exec_lo\ns_mov_b32 exec_lo, "
                  "0\ns_cbranch_execnz 6b\n"
                  "s_cbranch_execz 8f\ns_branch 6b\n8: s_mov_b32 exec_lo, s14\nv_mov_b32 v2, s8\nglobal_store_b32 v1, "
                  "v2, s[4:5]\n"
                  "s_waitcnt_vscnt null, 0x0\n"},
  };
  return kernels;
}

class AmdSimKernel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!decoder_missing().empty()) GTEST_SKIP() << decoder_missing();
    if (!have_assembler()) GTEST_SKIP() << "clang-19 and lld-19 are not there";
  }
  static const Program& program11() {
    static const Program program(assemble("gfx1100", kernels11()));
    return program;
  }
  static Ran run11(const std::string& kernel, uint64_t seed = 1) { return run_small(program11(), kernel, 1, 64, seed); }
};

TEST_F(AmdSimKernel, GoodKernelsRun) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Ran good = run11("good", seed);
    EXPECT_EQ(good.error, "");
    for (uint32_t n = 0; n < 64; ++n) EXPECT_EQ(good.out[n], n ^ 32u);
    EXPECT_EQ(good.instructions, 2u * 11);
  }
  const Ran flow = run11("flow");
  EXPECT_EQ(flow.error, "");
  for (uint32_t n = 0; n < 64; ++n) EXPECT_EQ(flow.out[n], 115u);
  EXPECT_EQ(run_small(program11(), "matrix", 1, 32).error, "");
  EXPECT_EQ(run11("bytes_apart").error, "");
  EXPECT_EQ(run11("unused_register").error, "");
}

struct Broken {
  const char* kernel;
  const char* message;
  const char* instruction;
  int64_t threads = 32;
};
constexpr Broken kBroken[] = {
    {"no_barrier", "another wave has written since the last barrier|that nothing has written", "ds_load_b32", 64},
    {"two_writers", "another wave has written since the last barrier", "ds_store_b32", 64},
    {"two_byte_writers", "another wave has written since the last barrier", "ds_store_b8", 64},
    {"overwritten", "another wave has read since the last barrier|another wave has written since the last", "ds_", 64},
    {"unwritten", "that nothing has written", "ds_load_b32"},
    {"local_end", "the work-group has 256 bytes", "ds_store_b32", 64},
    {"local_odd", "no multiple of 4", "ds_store_b32"},
    {"no_register", "a register that nothing has written", "global_store_b32"},
    {"some_lanes", "a register that nothing has written", "lane 7"},
    {"no_scalar", "a register that nothing has written", "global_store_b32"},
    {"no_condition", "depends on a register that nothing has written", "s_cbranch_scc1"},
    {"no_address", "the address is a register that nothing has written", "global_store_b32"},
    {"beyond", "reaches beyond the end of a buffer|is outside every buffer", "lane 1"},
    {"outside", "is outside every buffer", "global_load_b32"},
    {"constant", "may only be read", "global_store_b32"},
    {"odd", "no multiple of 4", "s_load_b32"},
    {"odd_atomic", "no multiple of 4", "global_atomic_add_u32"},
    {"no_load_wait", "a wait is missing", "v_add_nc_u32"},
    {"early_load_wait", "v4 is used while", "v_mov_b32_e32 v6, v4"},
    {"overwrites_load", "a wait is missing", "v_mov_b32"},
    {"no_constant_wait", "a wait is missing", "s_add_u32"},
    {"no_local_wait", "a wait is missing", "v_mov_b32"},
    {"no_exchange_wait", "a wait is missing", "v_mov_b32"},
    {"no_wait_at_barrier", "a wait is missing", "s_barrier"},
    {"unknown", "opcode is unknown", "v_sad_u8"},
    {"one_leaves", "has ended without coming to it", "s_barrier", 64},
    {"endless", "has run 100000 instructions", "s_branch"},
    {"scratch_end", "a lane has 16 bytes", "scratch_store_b32"},
    {"scratch_unwritten", "a register that nothing has written", "global_store_b32"},
    {"matrix_uneven", "lanes 16 to 31 of a matrix operand", "lane 16"},
    {"matrix_lanes", "with lanes off", "lane 31"},
    {"matrix_unwritten", "operand A is a register that nothing has written", "v_wmma"},
};

TEST_F(AmdSimKernel, EachRuleThatIsBrokenIsNamed) {
  for (const Broken& one : kBroken) {
    const Ran ran = run_small(program11(), one.kernel, 1, one.threads);
    const std::string message = one.message;
    const size_t bar = message.find('|');
    const bool named = ran.error.find(message.substr(0, bar)) != std::string::npos ||
                       (bar != std::string::npos && ran.error.find(message.substr(bar + 1)) != std::string::npos);
    EXPECT_TRUE(named) << one.kernel << ": " << ran.error;
    EXPECT_NE(ran.error.find(one.instruction), std::string::npos) << one.kernel << ": " << ran.error;
    EXPECT_NE(ran.error.find(std::string("kernel ") + one.kernel + ", address 0x"), std::string::npos) << ran.error;
  }
}

TEST_F(AmdSimKernel, WaitsOfGfx12) {
  const std::string load = kStart12 + "global_load_b32 v3, v1, s[6:7]\n", use = "v_mov_b32 v4, v3\n";
  const std::string local = kStart12 + "ds_store_b32 v1, v0\nds_load_b32 v3, v1\n";
  const Program program(assemble(
      "gfx1201",
      {{"good",
        kStart12 + "ds_store_b32 v1, v0\ns_wait_dscnt 0x0\ns_barrier_signal -1\ns_barrier_wait 0xffff\n"
                   "v_xor_b32 v2, 0x80, v1\nds_load_b32 v3, v2\ns_wait_dscnt 0x0\nglobal_store_b32 v1, v3, s[4:5]\n"
                   "s_wait_storecnt 0x0\n",
        256},
       {"load", load + "s_wait_loadcnt 0x0\n" + use},
       {"load_with_local", load + "s_wait_loadcnt_dscnt 0x0\n" + use},
       {"load_wrong", load + "s_wait_storecnt_dscnt 0x0\n" + use},
       {"local", local + "s_wait_storecnt_dscnt 0x0\n" + use, 256},
       {"local_wrong", local + "s_wait_loadcnt 0x0\n" + use, 256},
       {"constant_wrong", "s_load_b64 s[4:5], s[0:1], 0x0\ns_wait_dscnt 0x0\ns_add_co_u32 s6, s4, 4\n"},
       {"signal_only", kStart12 + "s_barrier_signal -1\n"},
       {"wait_only", kStart12 + "s_barrier_wait 0xffff\n"},
       {"no_wait_at_signal", kStart12 + "ds_store_b32 v1, v0\ns_barrier_signal -1\ns_barrier_wait 0xffff\n", 256}}));
  const Ran good = run_small(program, "good", 1, 64);
  EXPECT_EQ(good.error, "");
  for (uint32_t n = 0; n < 64; ++n) EXPECT_EQ(good.out[n], n ^ 32u);
  for (const char* name : {"load", "load_with_local", "local"})
    EXPECT_EQ(run_small(program, name, 1, 64).error, "") << name;
  for (const char* name : {"load_wrong", "local_wrong", "constant_wrong", "no_wait_at_signal"})
    EXPECT_NE(run_small(program, name, 1, 64).error.find("a wait is missing"), std::string::npos) << name;
  EXPECT_NE(run_small(program, "signal_only", 1, 64).error.find("between the signal"), std::string::npos);
  EXPECT_NE(run_small(program, "wait_only", 1, 64).error.find("has not signalled"), std::string::npos);
}

TEST_F(AmdSimKernel, WaitsAndFlowOfGfx9) {
  const std::string load = kStart9 + "global_load_dword v3, v1, s[6:7]\n", use = "v_mov_b32 v4, v3\n";
  const Program program(assemble(
      "gfx942",
      {{"good",
        kStart9 + "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nv_xor_b32 v2, 0x100, v1\nds_read_b32 v3, v2\n"
                  "s_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v3, s[4:5]\n",
        512},
       {"load", load + "global_store_dword v1, v0, s[4:5]\ns_waitcnt vmcnt(1)\n" + use},
       {"load_wrong", load + "s_waitcnt vmcnt(1)\n" + use},
       {"flow",
        kStart9 +
            "s_getpc_b64 s[10:11]\n2: s_add_u32 s10, s10, 4f-2b\ns_addc_u32 s11, s11, 0\n"
            "s_swappc_b64 s[12:13], s[10:11]\ns_branch 5f\n4: s_mov_b32 s8, 7\ns_setpc_b64 s[12:13]\n"
            "5: v_cmp_gt_u32 vcc, 0, v0\ns_cbranch_vccnz 6f\ns_cbranch_vccz 7f\n6: s_mov_b32 s8, 0\n"
            "7: s_cmp_eq_u32 s8, 7\ns_cbranch_scc0 6b\ns_cbranch_scc1 8f\n8: s_mov_b64 s[14:15], exec\n"
            "s_mov_b64 exec, 0\ns_cbranch_execnz 6b\ns_cbranch_execz 9f\ns_branch 6b\n9: s_mov_b64 exec, s[14:15]\n"
            "v_mov_b32 v2, s8\nglobal_store_dword v1, v2, s[4:5]\n"}}));
  const Ran good = run_small(program, "good", 1, 128);
  EXPECT_EQ(good.error, "");
  for (uint32_t n = 0; n < 128; ++n) EXPECT_EQ(good.out[n], n ^ 64u);
  EXPECT_EQ(run_small(program, "load", 1, 64).error, "");
  EXPECT_NE(run_small(program, "load_wrong", 1, 64).error.find("a wait is missing"), std::string::npos);
  const Ran flow = run_small(program, "flow", 1, 64);
  EXPECT_EQ(flow.error, "");
  EXPECT_EQ(flow.out[63], 7u);
}

TEST_F(AmdSimKernel, MoreSharedMemoryThanThereIs) {
  const Program program(assemble("gfx1100", {{"much", kStart11, 65536}}));
  EXPECT_EQ(run_small(program, "much", 1, 32).error, "");
  // Anything on top is refused before it starts.
}

TEST_F(AmdSimKernel, MalformedCodeObjectsAreOneError) {
  const std::vector<unsigned char> whole = assemble("gfx1100", {{"good", kStart11, 256}});
  size_t refused = 0;
  for (size_t n = 0; n < whole.size(); n += 7) {
    for (int form = 0; form < 2; ++form) {
      std::vector<unsigned char> bytes = whole;
      if (form == 0)
        bytes.resize(n);
      else
        bytes[n] ^= 0xa5;
      try {
        (void)load_code_object(bytes);
      } catch (const Error& error) {
        EXPECT_TRUE(error.kind() == ErrorKind::Format || error.kind() == ErrorKind::Memory) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, whole.size() / 14);
}

}  // namespace
}  // namespace strata::amdsim
