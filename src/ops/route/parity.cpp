// Cases of route: from one expert to hundreds, all chosen or few, ties, neighbouring logits, magnitudes at both ends, a
// sum small enough to be clamped, non-finite logits. The choice is made on the logits as given, so that no error stands
// between an arm and the oracle's ids: they must agree everywhere.
#include "ops/route/parity.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "evidence/parity_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<RouteArgs>;

struct Shape {
  int64_t rows, experts, k;
  float magnitude = 6;
  bool normalise = true;
  float scale = 1;
};

std::string label(const Shape& shape) {
  return std::to_string(shape.rows) + " rows, " + std::to_string(shape.k) + " of " + std::to_string(shape.experts) +
         ", logits up to " + std::to_string(shape.magnitude) + (shape.normalise ? ", normalised" : "");
}

void fill_args(Builder& build, const Shape& shape, uint64_t seed) {
  Random random(seed);
  RouteArgs& args = build.args();
  args.logits = build.memory().f32({shape.rows, shape.experts}, random, -shape.magnitude, shape.magnitude, {3});
  args.normalise = shape.normalise;
  args.scale = shape.scale;
  args.ids = build.memory().tensor(DType::I32, {shape.rows, shape.k}, {2});
  args.weights = build.memory().tensor(DType::F32, {shape.rows, shape.k}, {1});
}

float rank_of(const float* logits, int64_t e) { return std::isnan(logits[e]) ? -INFINITY : logits[e]; }

// The k chosen must be experts of the row, each once, falling, ties by index, and none left out may come before the
// last of them. Has force where an expert is left out whose logit differs from that of the last one chosen.
std::string wrong_choice(const RouteArgs& args, int64_t& force) {
  const int64_t experts = args.logits.extent(1), k = args.ids.extent(1);
  for (int64_t t = 0; t < args.logits.extent(0); ++t) {
    const float* logits = args.logits.row<const float>(t);
    const int32_t* ids = args.ids.row<const int32_t>(t);
    const std::string row = "row " + std::to_string(t);
    const std::set<int32_t> chosen(ids, ids + k);
    if (static_cast<int64_t>(chosen.size()) != k || *chosen.begin() < 0 || *chosen.rbegin() >= experts)
      return row + ": not " + std::to_string(k) + " different experts";
    auto before = [&](int64_t a, int64_t b) {
      return rank_of(logits, a) > rank_of(logits, b) || (rank_of(logits, a) == rank_of(logits, b) && a < b);
    };
    for (int64_t i = 1; i < k; ++i)
      if (!before(ids[i - 1], ids[i])) return row + ": slots " + std::to_string(i - 1) + " and " + std::to_string(i);
    float best_left = -INFINITY;
    for (int32_t e = 0; e < experts; ++e) {
      if (chosen.contains(e)) continue;
      if (before(e, ids[k - 1])) return row + ": expert " + std::to_string(e) + " was left out";
      best_left = std::max(best_left, rank_of(logits, e));
    }
    force += k < experts && best_left < rank_of(logits, ids[k - 1]);
  }
  return {};
}

ParityCase finish(Builder& build) {
  const RouteArgs& args = build.args();
  const auto count = static_cast<size_t>(args.ids.elements());
  std::vector<int32_t> ids(count);
  std::vector<double> weights(count), bound(count);
  route_oracle(args, ids.data(), weights.data());
  route_bound(args, bound.data());
  build.input("logits", &RouteArgs::logits);
  build.output("ids", &RouteArgs::ids, {ids.begin(), ids.end()}, std::vector<double>(count, 0.0));
  build.output("weights", &RouteArgs::weights, std::move(weights), std::move(bound));
  build.rows({&RouteArgs::logits, &RouteArgs::ids, &RouteArgs::weights});
  build.check([args](int64_t& force) { return wrong_choice(args, force); });
  return build.build();
}

ParityCase random_case(const Shape& shape, uint64_t seed) {
  Builder build(label(shape), route, route_arms());
  fill_args(build, shape, seed);
  return finish(build);
}

// Logits by a rule of (row, expert).
template <class Logit>
ParityCase ruled_case(const std::string& name, const Shape& shape, Logit logit, uint64_t seed) {
  Builder build(name + ": " + label(shape), route, route_arms());
  fill_args(build, shape, seed);
  Random random(seed + 1);
  for (int64_t t = 0; t < shape.rows; ++t)
    for (int64_t e = 0; e < shape.experts; ++e) build.args().logits.row<float>(t)[e] = logit(t, e, random);
  return finish(build);
}

float few_values(int64_t, int64_t, Random& random) { return static_cast<float>(random.below(3)); }
float all_equal(int64_t t, int64_t, Random&) { return static_cast<float>(t) - 2; }
float signed_zeros(int64_t t, int64_t e, Random&) { return (t + e) % 3 == 0 ? -0.0f : 0.0f; }
float rotated(int64_t t, int64_t e, Random&) { return static_cast<float>((e + 7 * t) % 64) / 4; }
float neighbours(int64_t, int64_t, Random& random) {
  float value = 1;
  for (int64_t steps = random.below(6); steps > 0; --steps) value = std::nextafter(value, 2.0f);
  return value;
}
float one_far_ahead(int64_t t, int64_t e, Random& random) { return e == 3 * t % 20 ? 90.0f : random.uniform(-1, 1); }
float with_nan(int64_t t, int64_t e, Random& random) {
  return t > 0 && (e + t) % 4 == 0 ? (t % 2 == 0 ? NAN : -NAN) : random.uniform(-3, 3);
}
float with_infinity(int64_t t, int64_t e, Random& random) {
  const float odd = t < 3 ? -INFINITY : INFINITY;
  return t == 5 || e < 2 * t ? odd : random.uniform(-3, 3);
}
float only_odd(int64_t t, int64_t, Random&) { return t == 0 ? NAN : -INFINITY; }

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& shape) { list.push_back([=, s = next++] { return random_case(shape, s); }); };
  auto ruled = [&](const char* name, const Shape& shape, float (*logit)(int64_t, int64_t, Random&)) {
    list.push_back([=, s = next++] { return ruled_case(name, shape, logit, s); });
  };
  for (int64_t rows : {1, 33})
    for (auto [experts, k] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 1}, {8, 3}, {8, 8}, {127, 10}, {512, 10}})
      for (float magnitude : {0.01f, 6.0f, 200.0f, 1e30f})
        for (int variant = 0; variant < 4; ++variant)
          add({rows, experts, k, magnitude, (variant & 1) != 0, (variant & 2) != 0 ? 2.5f : 1.0f});
  add({0, 8, 2});
  ruled("few values", {33, 40, 6}, few_values);
  ruled("all equal", {5, 40, 6}, all_equal);
  ruled("signed zeros", {6, 20, 5}, signed_zeros);
  ruled("rotated", {33, 64, 5}, rotated);
  ruled("neighbours", {33, 64, 8}, neighbours);
  for (bool normalise : {true, false}) {
    ruled("one far ahead", {9, 20, 4, 6, normalise}, one_far_ahead);
    ruled("NaN", {6, 12, 10, 6, normalise}, with_nan);
    ruled("infinity", {6, 8, 5, 6, normalise}, with_infinity);
    ruled("nothing finite", {2, 8, 5, 6, normalise}, only_odd);
    // 20000 equal experts: the chosen sum lies at 5e-5, 1e-4 and 1.5e-4, around the clamp of 6.1e-5.
    for (int64_t k : {1, 2, 3}) ruled("clamped", {2, 20000, k, 6, normalise, 1.5f}, all_equal);
  }
  return list;
}

}  // namespace

OperatorEvidence route_evidence() { return {"route", arm_infos(route_arms()), cases, true}; }

}  // namespace strata
