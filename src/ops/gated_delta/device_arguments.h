// Internal to gated_delta: what both operators' arguments say to kernels of the chunk form.
#pragma once

#include "ops/gated_delta/cpu.h"
#include "ops/gated_delta/gated_delta.h"

namespace strata {

template <class Kernel, class Args>
void take_arguments(Kernel& a, const Args& args) {
  constexpr int64_t kFloat = sizeof(float);
  a.q = args.q.f32(), a.k = args.k.f32(), a.v = args.v.f32(), a.g = args.g.f32(), a.beta = args.beta.f32();
  a.state = args.state.f32(), a.out = args.out.f32();
  a.rows = args.q.extent(0), a.key_heads = args.q.extent(1), a.value_heads = args.v.extent(1);
  a.dk = args.q.extent(2), a.dv = args.v.extent(2);
  a.q_row = args.q.stride(0) / kFloat, a.q_head = args.q.stride(1) / kFloat;
  a.k_row = args.k.stride(0) / kFloat, a.k_head = args.k.stride(1) / kFloat;
  a.v_row = args.v.stride(0) / kFloat, a.v_head = args.v.stride(1) / kFloat;
  a.g_row = args.g.stride(0) / kFloat, a.beta_row = args.beta.stride(0) / kFloat;
  a.state_head = args.state.stride(0) / kFloat, a.state_key = args.state.stride(1) / kFloat;
  a.out_row = args.out.stride(0) / kFloat, a.out_head = args.out.stride(1) / kFloat;
  a.query_factor = query_factor(a.dk);
  a.tiled = args.mapping == HeadMapping::Tiled;
}

}  // namespace strata
