#include "evidence/arm.h"
#include "ops/hyper_connection/hyper_connection.h"
#include "ops/hyper_connection/parity.h"

namespace strata {

void hyper_read_portable(Queue& queue, const HyperReadArgs& args);  // cpu.cpp, as the next five
void hyper_read_avx2(Queue& queue, const HyperReadArgs& args);
void hyper_read_avx512(Queue& queue, const HyperReadArgs& args);
void hyper_write_portable(Queue& queue, const HyperWriteArgs& args);
void hyper_write_avx2(Queue& queue, const HyperWriteArgs& args);
void hyper_write_avx512(Queue& queue, const HyperWriteArgs& args);

void hyper_read_device(Queue& queue, const HyperReadArgs& args);    // device.cpp
void hyper_write_device(Queue& queue, const HyperWriteArgs& args);  // device.cpp
extern const KernelImage kernel_image_hyper_connection;

namespace {
constexpr Arm<HyperReadArgs> kReadArms[] = {
    {"thread", always_runs<HyperReadArgs>, hyper_read_device, true, false, CpuIsa::Portable,
     &kernel_image_hyper_connection},
    {"avx512", always_runs<HyperReadArgs>, hyper_read_avx512, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<HyperReadArgs>, hyper_read_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<HyperReadArgs>, hyper_read_portable}};
constexpr Arm<HyperWriteArgs> kWriteArms[] = {
    {"thread", always_runs<HyperWriteArgs>, hyper_write_device, true, false, CpuIsa::Portable,
     &kernel_image_hyper_connection},
    {"avx512", always_runs<HyperWriteArgs>, hyper_write_avx512, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<HyperWriteArgs>, hyper_write_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<HyperWriteArgs>, hyper_write_portable}};
}  // namespace

void hyper_read(Queue& queue, const HyperReadArgs& args) {
  check_tensor("hyper_read", "normed", args.normed, DType::F32, {-1, -1, -1});
  const int64_t rows = args.normed.extent(0), streams = args.normed.extent(1), hidden = args.normed.extent(2);
  check_tensor("hyper_read", "mix", args.mix, DType::F32, {rows, streams, hidden});
  check_tensor("hyper_read", "u", args.u, DType::F32, {rows, hidden});
  choose_arm<HyperReadArgs>(queue, "hyper_read", kReadArms, args).run(queue, args);
}

void hyper_write(Queue& queue, const HyperWriteArgs& args) {
  check_tensor("hyper_write", "x", args.x, DType::F32, {-1, -1, -1});
  const int64_t rows = args.x.extent(0), streams = args.x.extent(1), hidden = args.x.extent(2);
  check_tensor("hyper_write", "inject", args.inject, DType::F32, {rows, streams});
  check_tensor("hyper_write", "block", args.block, DType::F32, {rows, hidden});
  choose_arm<HyperWriteArgs>(queue, "hyper_write", kWriteArms, args).run(queue, args);
}

std::span<const Arm<HyperReadArgs>> hyper_read_arms() { return kReadArms; }
std::span<const Arm<HyperWriteArgs>> hyper_write_arms() { return kWriteArms; }

}  // namespace strata
