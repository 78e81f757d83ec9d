#include "evidence/arm.h"
#include "ops/gated_delta/cpu.h"
#include "ops/gated_delta/parity.h"

namespace strata {

namespace {
constexpr Arm<GatedDeltaArgs> kArms[] = {
    {"avx512", always_runs<GatedDeltaArgs>, gated_delta_avx512, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<GatedDeltaArgs>, gated_delta_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<GatedDeltaArgs>, gated_delta_portable}};
constexpr Arm<GatedDeltaGatesArgs> kGatesArms[] = {
    {"portable", always_runs<GatedDeltaGatesArgs>, gated_delta_gates_portable}};
}  // namespace

void gated_delta(Queue& queue, const GatedDeltaArgs& args) {
  check_tensor("gated_delta", "q", args.q, DType::F32, {-1, -1, -1});
  const int64_t rows = args.q.extent(0), key_heads = args.q.extent(1), dk = args.q.extent(2);
  check_tensor("gated_delta", "k", args.k, DType::F32, {rows, key_heads, dk});
  check_tensor("gated_delta", "v", args.v, DType::F32, {rows, -1, -1});
  const int64_t value_heads = args.v.extent(1), dv = args.v.extent(2);
  check_tensor("gated_delta", "g", args.g, DType::F32, {rows, value_heads});
  check_tensor("gated_delta", "beta", args.beta, DType::F32, {rows, value_heads});
  check_tensor("gated_delta", "state", args.state, DType::F32, {value_heads, dk, dv});
  check_tensor("gated_delta", "out", args.out, DType::F32, {rows, value_heads, dv});
  if (key_heads < 1 || value_heads % key_heads != 0)
    argument_error("gated_delta", std::to_string(value_heads) + " value heads do not divide among " +
                                      std::to_string(key_heads) + " key heads");
  choose_arm<GatedDeltaArgs>(queue, "gated_delta", kArms, args).run(queue, args);
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
std::span<const Arm<GatedDeltaGatesArgs>> gated_delta_gates_arms() { return kGatesArms; }

}  // namespace strata
