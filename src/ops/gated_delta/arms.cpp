#include "evidence/arm.h"
#include "evidence/run_each.h"
#include "ops/gated_delta/cpu.h"
#include "ops/gated_delta/device_wy_kernel.h"
#include "ops/gated_delta/parity.h"
#include "ops/gated_delta/sequences.h"

namespace strata {

std::string gated_delta_device_refusal(const GatedDeltaArgs& args);                    // device.cpp
void gated_delta_device(Queue& queue, const GatedDeltaArgs& args);                     // device.cpp
void gated_delta_gates_device(Queue& queue, const GatedDeltaGatesArgs& args);          // device.cpp
std::string gated_delta_chunk_refusal(const GatedDeltaAnchoredArgs& args);             // device_chunk.cpp
void gated_delta_anchored_columns(Queue& queue, const GatedDeltaAnchoredArgs& args);   // device_chunk.cpp
void gated_delta_wy_device(Queue& queue, const GatedDeltaArgs& args);                  // device_chunks.cpp
void gated_delta_anchored_device(Queue& queue, const GatedDeltaAnchoredArgs& args);    // device_chunks.cpp
void gated_delta_wy_fma(Queue& queue, const GatedDeltaArgs& args);                     // device_wy.cpp
void gated_delta_wy_wmma(Queue& queue, const GatedDeltaArgs& args);                    // device_wy.cpp
std::string chunk_device_refusal(int64_t dk, int64_t key_heads, int64_t value_heads);  // device_chunks.cpp
extern const KernelImage kernel_image_gated_delta_serial, kernel_image_gated_delta_chunk, kernel_image_delta_chunks;
extern const KernelImage kernel_image_delta_wy, kernel_image_delta_wy_wmma_gfx;

namespace {

// The wy arms start their chunks at the call's first row: a row's bits depend on how many came before it in the call.
std::string stores_at_the_end(const GatedDeltaArgs& args) {
  if (stored_rows(args) == args.q.extent(0)) return {};
  return "the chunk form stores the state after all " + std::to_string(args.q.extent(0)) + " rows, not after " +
         std::to_string(args.stored);
}

std::string wy_device_refusal(const GatedDeltaArgs& args) {
  const std::string reason = stores_at_the_end(args);
  return reason.empty() ? chunk_device_refusal(args.q.extent(2), args.q.extent(1), args.v.extent(1)) : reason;
}
std::string wy_fma_refusal(const GatedDeltaArgs& args) {
  if (const int64_t repeat = args.v.extent(1) / args.q.extent(1); repeat > kWyHeads)
    return std::to_string(repeat) + " value heads a key head; up to " + std::to_string(kWyHeads);
  const std::string reason = stores_at_the_end(args);
  return reason.empty() ? gated_delta_device_refusal(args) : reason;
}
// Of fewer keys the words and cuts of matrix units take more than the bound has (README.md, Roundings of `wy-wmma`).
std::string wy_wmma_refusal(const GatedDeltaArgs& args) {
  const int64_t dk = args.q.extent(2);
  if (dk < 16 || (dk > 16 && dk < 20)) return "keys of " + std::to_string(dk) + " values; 16, or 20 and more";
  return wy_fma_refusal(args);
}
std::string anchored_device_refusal(const GatedDeltaAnchoredArgs& args) {
  return chunk_device_refusal(args.q.extent(2), args.q.extent(1), args.v.extent(1));
}

constexpr Arm<GatedDeltaArgs> kArms[] = {
    {"columns", gated_delta_device_refusal, gated_delta_device, true, false, CpuIsa::Portable,
     &kernel_image_gated_delta_serial},
    {"wy-mma", wy_device_refusal, gated_delta_wy_device, false, true, CpuIsa::Portable, &kernel_image_delta_chunks, 90},
    {"wy-fma", wy_fma_refusal, gated_delta_wy_fma, false, true, CpuIsa::Portable, &kernel_image_delta_wy},
    {"wy-wmma", wy_wmma_refusal, gated_delta_wy_wmma, false, true, CpuIsa::Portable, &kernel_image_delta_wy_wmma_gfx},
    {"avx512", always_runs<GatedDeltaArgs>, gated_delta_avx512, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<GatedDeltaArgs>, gated_delta_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<GatedDeltaArgs>, gated_delta_portable},
    {"wy", stores_at_the_end, gated_delta_wy_avx512, false, true, CpuIsa::Avx512},
    {"wy-avx2", stores_at_the_end, gated_delta_wy_avx2, false, true, CpuIsa::Avx2},
    {"wy-portable", stores_at_the_end, gated_delta_wy_portable, false, true}};
constexpr Arm<GatedDeltaAnchoredArgs> kAnchoredArms[] = {
    {"mma", anchored_device_refusal, gated_delta_anchored_device, true, false, CpuIsa::Portable,
     &kernel_image_delta_chunks, 90},
    {"columns", gated_delta_chunk_refusal, gated_delta_anchored_columns, true, false, CpuIsa::Portable,
     &kernel_image_gated_delta_chunk},
    {"avx512", always_runs<GatedDeltaAnchoredArgs>, gated_delta_anchored_avx512, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<GatedDeltaAnchoredArgs>, gated_delta_anchored_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<GatedDeltaAnchoredArgs>, gated_delta_anchored_portable}};
constexpr Arm<GatedDeltaGatesArgs> kGatesArms[] = {
    {"thread", always_runs<GatedDeltaGatesArgs>, gated_delta_gates_device, true, false, CpuIsa::Portable,
     &kernel_image_gated_delta_serial},
    {"portable", always_runs<GatedDeltaGatesArgs>, gated_delta_gates_portable}};

// What both operators have in common.
template <class Args>
void check_common(const char* op, const Args& args) {
  check_tensor(op, "q", args.q, DType::F32, {-1, -1, -1});
  const int64_t rows = args.q.extent(0), key_heads = args.q.extent(1), dk = args.q.extent(2);
  check_tensor(op, "k", args.k, DType::F32, {rows, key_heads, dk});
  check_tensor(op, "v", args.v, DType::F32, {rows, -1, -1});
  const int64_t value_heads = args.v.extent(1), dv = args.v.extent(2);
  check_tensor(op, "g", args.g, DType::F32, {rows, value_heads});
  check_tensor(op, "beta", args.beta, DType::F32, {rows, value_heads});
  check_tensor(op, "state", args.state, DType::F32, {value_heads, dk, dv});
  check_tensor(op, "out", args.out, DType::F32, {rows, value_heads, dv});
  if (key_heads < 1 || value_heads % key_heads != 0)
    argument_error(op, std::to_string(value_heads) + " value heads do not divide among " + std::to_string(key_heads) +
                           " key heads");
}

void check_serial(const GatedDeltaArgs& args) {
  check_common("gated_delta", args);
  if (args.stored < -1 || args.stored > args.q.extent(0))
    argument_error("gated_delta",
                   "stored is " + std::to_string(args.stored) + " of " + std::to_string(args.q.extent(0)) + " rows");
}

int64_t operations_of(const GatedDeltaArgs& args) { return args.q.extent(0) * args.state.elements() / 4; }

}  // namespace

void gated_delta(Queue& queue, const GatedDeltaArgs& args) {
  check_serial(args);
  choose_arm<GatedDeltaArgs>(queue, "gated_delta", kArms, args).run(queue, args);
}

void gated_delta_each(const SideBySide& beside, std::span<const GatedDeltaArgs> calls) {
  for (const GatedDeltaArgs& args : calls) check_serial(args);
  run_each<GatedDeltaArgs>(beside, "gated_delta", kArms, calls, operations_of);
}

void gated_delta_anchored(Queue& queue, const GatedDeltaAnchoredArgs& args) {
  constexpr const char* kOp = "gated_delta_anchored";
  check_common(kOp, args);
  const int64_t key_heads = args.q.extent(1), dk = args.q.extent(2);
  const int64_t value_heads = args.v.extent(1), dv = args.v.extent(2);
  check_tensor(kOp, "ring_k", args.ring_k, DType::F32, {key_heads, kDeltaChunk, dk});
  check_tensor(kOp, "ring_u", args.ring_u, DType::F32, {value_heads, kDeltaChunk, dv});
  check_tensor(kOp, "ring_g", args.ring_g, DType::F32, {value_heads, kDeltaChunk});
  if (args.first < 0) argument_error(kOp, "first is " + std::to_string(args.first));
  choose_arm<GatedDeltaAnchoredArgs>(queue, kOp, kAnchoredArms, args).run(queue, args);
}

void gated_delta_gates(Queue& queue, const GatedDeltaGatesArgs& args) {
  // The heads of alpha and b may be strided, so only their shapes are compared.
  check_shape("gated_delta_gates", "alpha", args.alpha, {-1, -1});
  if (args.alpha.dtype != DType::F32)
    argument_error("gated_delta_gates", "alpha is " + describe(args.alpha) + ", needs F32");
  const int64_t rows = args.alpha.extent(0), heads = args.alpha.extent(1);
  check_shape("gated_delta_gates", "b", args.b, {rows, heads});
  if (args.b.dtype != DType::F32) argument_error("gated_delta_gates", "b is " + describe(args.b) + ", needs F32");
  check_tensor("gated_delta_gates", "dt_bias", args.dt_bias, DType::F32, {heads});
  check_tensor("gated_delta_gates", "a", args.a, DType::F32, {heads});
  check_tensor("gated_delta_gates", "g", args.g, DType::F32, {rows, heads});
  check_tensor("gated_delta_gates", "beta", args.beta, DType::F32, {rows, heads});
  choose_arm<GatedDeltaGatesArgs>(queue, "gated_delta_gates", kGatesArms, args).run(queue, args);
}

std::span<const Arm<GatedDeltaArgs>> gated_delta_arms() { return kArms; }
std::span<const Arm<GatedDeltaAnchoredArgs>> gated_delta_anchored_arms() { return kAnchoredArms; }
std::span<const Arm<GatedDeltaGatesArgs>> gated_delta_gates_arms() { return kGatesArms; }

}  // namespace strata
