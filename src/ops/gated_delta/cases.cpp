#include "ops/gated_delta/cases.h"

#include <limits>

namespace strata {

const char* name_of(GateKind kind) {
  constexpr const char* kNames[] = {"mild",    "moderate", "strong",      "resets", "no decay",
                                    "all -30", "all -88",  "edge values", "clears"};
  return kNames[static_cast<int>(kind)];
}

float random_gate(GateKind kind, int64_t t, Random& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kEdges[] = {0, -0.01f, -87.3f, -87.4f, -88, -88.8f, -1e4f, -kInfinity};
  switch (kind) {
    case GateKind::Mild: return random.uniform(-0.05f, -1e-4f);
    case GateKind::Moderate: return random.uniform(-2, -0.05f);
    case GateKind::Strong: return random.uniform(-30, 0);
    case GateKind::Reset: return t % 45 == 20 ? -1e4f : random.uniform(-0.2f, -1e-3f);
    case GateKind::NoDecay: return 0;
    case GateKind::Minus30: return -30;
    case GateKind::Minus88: return -88;
    case GateKind::Edge: return kEdges[random.below(8)];
    case GateKind::Clear: return t % 50 == 5 ? -kInfinity : random.uniform(-0.1f, 0);
    case GateKind::Count: break;
  }
  return 0;
}

float random_beta(GateKind kind, Random& random) {
  if (kind == GateKind::NoDecay) return random.below(2) == 0 ? 0.0f : 1.0f;
  if (kind == GateKind::Edge && random.below(2) == 0) return random.below(2) == 0 ? 1e-30f : 1.0f;
  return random.uniform(0.02f, 0.98f);
}

Tensor heads_view(const Tensor& packed, int64_t first, int64_t heads, int64_t width) {
  Tensor part = packed;
  part.data = part.row<float>(0) + first;
  part.rank = 3;
  part.extents = {packed.extent(0), heads, width, 0};
  part.strides = {packed.stride(0), width * 4, 4, 0};
  return part;
}

void fill_key(const Tensor& row, Random& random) {
  constexpr float kSizes[] = {1, 1, 1e-4f, 50};
  const float limit = random.below(40) == 0 ? 0 : kSizes[random.below(4)];
  for (int64_t i = 0; i < row.extent(0); ++i) row.f32()[i] = random.uniform(-limit, limit);
}

}  // namespace strata
