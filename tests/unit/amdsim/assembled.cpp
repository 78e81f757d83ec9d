#include "unit/amdsim/assembled.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "device/amdsim/machine.h"

extern char** environ;

namespace strata::amdsim {
namespace {

std::string file_name(const std::string& end) {
  return (std::filesystem::temp_directory_path() / ("strata_amdsim_" + std::to_string(getpid()) + end)).string();
}

void write_descriptor(std::ostream& out, const SmallKernel& k, bool gfx9) {
  out << ".section .rodata,\"a\"\n.p2align 6\n.amdhsa_kernel " << k.name << "\n"
      << ".amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_user_sgpr_count 2\n.amdhsa_system_sgpr_workgroup_id_x 1\n"
      << ".amdhsa_next_free_vgpr 128\n.amdhsa_next_free_sgpr 60\n.amdhsa_kernarg_size 16\n"
      << ".amdhsa_float_denorm_mode_32 3\n.amdhsa_group_segment_fixed_size " << k.shared
      << "\n.amdhsa_private_segment_fixed_size " << k.scratch << "\n.amdhsa_enable_private_segment " << (k.scratch > 0)
      << "\n"
      << (gfx9 ? ".amdhsa_accum_offset 64\n" : ".amdhsa_wavefront_size32 1\n") << ".end_amdhsa_kernel\n";
}

void write_metadata(std::ostream& out, const std::string& target, const std::vector<SmallKernel>& kernels) {
  out << ".amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.target: amdgcn-amd-amdhsa--" << target
      << "\namdhsa.kernels:\n";
  for (const SmallKernel& k : kernels)
    out << "  - .name: " << k.name << "\n    .symbol: " << k.name
        << ".kd\n    .kernarg_segment_size: 16\n    .kernarg_segment_align: 8\n    .group_segment_fixed_size: "
        << k.shared << "\n    .private_segment_fixed_size: " << k.scratch
        << "\n    .wavefront_size: " << (target == "gfx942" ? 64 : 32)
        << "\n    .sgpr_count: 60\n    .vgpr_count: 128\n    .max_flat_workgroup_size: 1024\n"
        << "    .args: [{.offset: 0, .size: 16, .value_kind: by_value}]\n";
  out << "...\n.end_amdgpu_metadata\n";
}

}  // namespace

bool run_tool(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return false;
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool have_assembler() {
  for (const char* name : {"/usr/bin/clang-19", "/usr/bin/ld.lld-19"})
    if (!std::filesystem::exists(name)) return false;
  return true;
}

std::vector<unsigned char> assemble(const std::string& target, const std::vector<SmallKernel>& kernels) {
  const std::string source = file_name(".s"), object = file_name(".co");
  {
    std::ofstream out(source);
    out << ".amdgcn_target \"amdgcn-amd-amdhsa--" << target << "\"\n.amdhsa_code_object_version 5\n";
    for (const SmallKernel& k : kernels)
      out << ".text\n.globl " << k.name << "\n.p2align 8\n.type " << k.name << ",@function\n"
          << k.name << ":\n"
          << k.body << "\ns_endpgm\n.size " << k.name << ", .-" << k.name << "\n";
    for (const SmallKernel& k : kernels) write_descriptor(out, k, target == "gfx942");
    write_metadata(out, target, kernels);
  }
  const bool done = run_tool({"clang-19", "-target", "amdgcn-amd-amdhsa", "-mcpu=" + target, "-o", object, source});
  std::ifstream in(object, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  std::filesystem::remove(source);
  std::filesystem::remove(object);
  if (!done) throw Error(ErrorKind::Argument, "the kernels are not assembled");
  return {bytes.begin(), bytes.end()};
}

Ran run_small(const Program& program, const std::string& kernel, int64_t groups, int64_t threads, uint64_t seed,
              uint64_t limit, int pool_threads) {
  Ran ran;
  ran.out.assign(1024, 0);
  std::vector<uint32_t> in(1024);
  for (size_t n = 0; n < in.size(); ++n) in[n] = static_cast<uint32_t>(3 * n + 1);
  Regions regions;
  regions.add(ran.out.data(), ran.out.size() * 4, true);
  regions.add(in.data(), in.size() * 4, true);
  const void* pointers[2] = {ran.out.data(), in.data()};
  Launch launch;
  launch.what = "test";
  launch.program = &program;
  launch.kernel = program.object().find(kernel);
  launch.shape.grid.x = groups;
  launch.shape.block.x = threads;
  launch.arguments = pointers;
  launch.argument_bytes = sizeof(pointers);
  launch.seed = seed;
  launch.instruction_limit = limit;
  ThreadPool pool(pool_threads);
  try {
    ran.instructions = run_launch(launch, regions, pool);
  } catch (const Error& error) {
    ran.error = error.what();
  }
  return ran;
}

}  // namespace strata::amdsim
