// Cases of attention: lengths around blocks and splits, groups, head sizes, dtypes of k and v, scores that f32 holds
// exactly, non-finite values. Cells that no row sees stay canaries: NaN as f32, and in half of the places as f16, bf16
// or the scale of a block.
#include "ops/attention/parity.h"

#include <algorithm>

#include "ops/attention/softmax_case.h"
#include "ops/attention/softmax_kernel_types.h"

namespace strata {
namespace {

using Builder = CaseBuilder<AttentionArgs>;
using Lengths = std::vector<int32_t>;

struct Plan {
  HeadShape shape;
  Lengths n_kv;
  DType k = DType::F32, v = DType::F32;
  float range = 1;  // of q
  float v_range = 1;
  bool lse = true;
  bool aligned = false;  // cells and heads are whole, aligned pieces of 16 bytes, else at odd places
};

std::string name_of(const Plan& plan) {
  std::string name = std::to_string(plan.n_kv.size()) + " rows, " + label(plan.shape) + ", cells";
  for (size_t t = 0; t < std::min<size_t>(plan.n_kv.size(), 4); ++t) name += " " + std::to_string(plan.n_kv[t]);
  return name + ", k " + std::string(to_string(plan.k)) + ", v " + std::string(to_string(plan.v));
}

std::vector<int64_t> aligned_or(const Plan& plan, int64_t cell, int64_t head) {
  return plan.aligned ? std::vector<int64_t>{8, 8} : std::vector<int64_t>{cell, head};
}

// Strided tensors with random values; cells behind the longest row stay as they are.
void fill(Builder& build, const Plan& plan, Random& random) {
  AttentionArgs& args = build.args();
  const auto rows = static_cast<int64_t>(plan.n_kv.size());
  const auto [heads, kv_heads, dim] = plan.shape;
  const int64_t cells = rows == 0 ? 0 : *std::max_element(plan.n_kv.begin(), plan.n_kv.end());
  args.q = build.memory().f32({rows, heads, dim}, random, -plan.range, plan.range, {4, 3});
  args.k = build.memory().tensor(plan.k, {cells + 3, kv_heads, dim}, aligned_or(plan, 5, 2));
  args.v = build.memory().tensor(plan.v, {cells + 3, kv_heads, dim}, aligned_or(plan, 3, 4));
  fill_rows(args.k.slice(0, cells), random, -1, 1);
  fill_rows(args.v.slice(0, cells), random, -plan.v_range, plan.v_range);
  args.n_kv = build.memory().i32(plan.n_kv);
  args.scale = 1 / std::sqrt(static_cast<float>(dim));
  args.out = build.memory().tensor(DType::F32, {rows, heads, dim}, {2, 1});
  if (plan.lse) args.lse = build.memory().tensor(DType::F32, {rows, heads}, {3});
}

ParityCase finish(Builder& build, Tolerance tolerance = Tolerance::Bound) {
  expect_softmax(build, attention_oracle, attention_bound, tolerance);
  build.rows({&AttentionArgs::q, &AttentionArgs::n_kv, &AttentionArgs::out, &AttentionArgs::lse});
  return build.build();
}

ParityCase random_case(const Plan& plan, uint64_t seed) {
  Random random(seed);
  Builder build(name_of(plan), attention, attention_arms());
  fill(build, plan, random);
  add_paged_variant(build, attention, random);
  return finish(build);
}

// Products near the ends of the f32 range, scores of ordinary size.
ParityCase magnitude_case(float size, float v_size, uint64_t seed) {
  Random random(seed);
  const Plan plan{{4, 2, 64}, {300, 7}, DType::F32, DType::F32, size, v_size};
  Builder build("q of size " + std::to_string(size) + ", v of size " + std::to_string(v_size), attention,
                attention_arms());
  fill(build, plan, random);
  fill_rows(build.args().k.slice(0, 300), random, -1e18f, 1e18f);
  build.args().scale = 1e-18f / size;
  return finish(build);
}

// q reads channel `row` of k alone and the scale is 1: the scores are the f32 values written there.
void one_hot_scores(const AttentionArgs& args) {
  for (int64_t t = 0; t < args.q.extent(0); ++t)
    for (int64_t h = 0; h < args.q.extent(1); ++h)
      for (int64_t c = 0; c < args.q.extent(2); ++c) at(args.q, t, h, c) = c == t ? 1.0f : 0.0f;
}

template <class Score>
void write_scores(const AttentionArgs& args, Score score) {
  for (int64_t t = 0; t < args.q.extent(0); ++t)
    for (int64_t cell = 0; cell < args.k.extent(0) - 3; ++cell)
      for (int64_t x = 0; x < args.k.extent(1); ++x) at(args.k, cell, x, t) = score(t, cell);
}

// Values that name cell, kv head and channel.
void coordinate_values(const AttentionArgs& args) {
  const int64_t kv_heads = args.v.extent(1), dim = args.v.extent(2);
  for (int64_t cell = 0; cell < args.v.extent(0) - 3; ++cell)
    for (int64_t x = 0; x < kv_heads; ++x)
      for (int64_t c = 0; c < dim; ++c)
        at(args.v, cell, x, c) = static_cast<float>((cell * kv_heads + x) * dim + c + 1);
}

// A cell whose score is 200 above all others leaves them weights below the f32 range: its values are copied. Row t has
// it in split t, at the start, at the end or inside.
ParityCase dominant_case(const HeadShape& shape, uint64_t seed) {
  Random random(seed);
  const int64_t splits = 6;
  const Plan plan{shape, Lengths(static_cast<size_t>(splits), static_cast<int32_t>((splits - 1) * kSplit + 19))};
  Builder build("one dominant cell in each split, " + label(shape), attention, attention_arms());
  fill(build, plan, random);
  one_hot_scores(build.args());
  coordinate_values(build.args());
  const std::vector<int64_t> inside{0, kSplit - 1, 17, 100, kSplit - 16, 18};
  write_scores(build.args(), [&](int64_t t, int64_t cell) {
    return cell == t * kSplit + inside[static_cast<size_t>(t)] ? 200.0f : 0.0f;
  });
  build.args().scale = 1;
  return finish(build, Tolerance::Zero);
}

// The same with keys and values in blocks: the decoder's values, copied.
ParityCase dominant_block_case(DType k, DType v, int64_t dim, uint64_t seed) {
  Random random(seed);
  const std::vector<int32_t> chosen{0, 15, 16, kSplit - 1, kSplit, 2 * kSplit + 18};
  Builder build("one dominant cell, k " + std::string(to_string(k)) + ", v " + std::string(to_string(v)), attention,
                attention_arms());
  fill(build, {{6, 2, dim}, Lengths(chosen.size(), 2 * kSplit + 19), k, v}, random);
  dominate(build.args().q, build.args().k.slice(0, 2 * kSplit + 19), chosen);
  build.args().scale = 1;
  return finish(build, Tolerance::Zero);
}

// Equal scores: exact means of small whole numbers, over powers of two of cells.
ParityCase ties_case(uint64_t seed) {
  Random random(seed);
  Builder build("equal scores", attention, attention_arms());
  fill(build, {{4, 2, 48}, {1, 2, 16, 256, 512, 1024}}, random);
  one_hot_scores(build.args());
  write_scores(build.args(), [](int64_t, int64_t) { return 3.0f; });
  for_each_row(build.args().v.slice(0, 1024), [&](void* row) {
    for (int64_t c = 0; c < 48; ++c) static_cast<float*>(row)[c] = static_cast<float>(random.below(33) - 16);
  });
  build.args().scale = 1;
  return finish(build, Tolerance::Zero);
}

// Scores low + step · (a whole number below `range`), all of them exact.
ParityCase exact_scores_case(const std::string& name, float low, float step, int64_t range, uint64_t seed) {
  Random random(seed);
  Builder build(name, attention, attention_arms());
  fill(build, {{6, 2, 40}, {600, 0, 257, 16, 1}}, random);
  one_hot_scores(build.args());
  write_scores(build.args(), [&](int64_t, int64_t) { return low + step * static_cast<float>(random.below(range)); });
  build.args().scale = 1;
  return finish(build);
}

// Scores that rise or fall from split to split, so that every merge scales the sums or none does.
ParityCase slope_case(float slope, uint64_t seed) {
  Random random(seed);
  Builder build("scores with slope " + std::to_string(slope), attention, attention_arms());
  fill(build, {{2, 1, 20}, {1300, 1281}}, random);
  one_hot_scores(build.args());
  write_scores(build.args(), [&](int64_t t, int64_t cell) { return slope * static_cast<float>(cell + 3 * t); });
  build.args().scale = 1;
  return finish(build);
}

// Cells whose score is minus infinity have no weight, whole splits of them neither.
ParityCase masked_case(const std::string& name, const std::function<bool(int64_t cell)>& masked, uint64_t seed) {
  Random random(seed);
  Builder build("minus infinity: " + name, attention, attention_arms());
  fill(build, {{4, 2, 24}, {700, 300, 1, 0, 513}}, random);
  const AttentionArgs& args = build.args();
  for (int64_t t = 0; t < 5; ++t)
    for (int64_t h = 0; h < 4; ++h) at(args.q, t, h, 7) = 1;
  for (int64_t cell = 0; cell < 700; ++cell)
    for (int64_t x = 0; x < 2; ++x)
      if (masked(cell)) at(args.k, cell, x, 7) = -INFINITY;
  return finish(build);
}

enum class Bad { Q, K, V };

ParityCase bad_value_case(Bad where, int64_t cell, float value, uint64_t seed) {
  Random random(seed);
  Builder build(std::to_string(value) + " in " + (where == Bad::Q ? "q" : (where == Bad::K ? "k" : "v")) + ", cell " +
                    std::to_string(cell),
                attention, attention_arms());
  fill(build, {{6, 2, 33}, {3, 600, static_cast<int32_t>(cell), static_cast<int32_t>(cell + 1), 0}}, random);
  const AttentionArgs& args = build.args();
  if (where == Bad::Q) at(args.q, 1, 4, 32) = value;
  if (where == Bad::K) at(args.k, cell, 1, 32) = value;
  if (where == Bad::V) at(args.v, cell, 0, 17) = value;
  return finish(build);
}

// A NaN as the scale of a block reaches the rows that see its cell: their heads (k), the channels of the block (v).
ParityCase bad_block_case(Bad where, DType type, uint64_t seed) {
  Random random(seed);
  Builder build("NaN as scale in " + std::string(where == Bad::K ? "k " : "v ") + std::string(to_string(type)),
                attention, attention_arms());
  fill(build, {{6, 2, 96}, {3, 600, 256, 257, 0}, type, type}, random);
  spoil_block(where == Bad::K ? build.args().k : build.args().v, 256, 1, 2);
  return finish(build);
}

// The same for 16-bit cells, in one channel: NaN, or infinities in k, which make a score infinite.
ParityCase bad_half_case(Bad where, DType type, uint16_t bits, uint64_t seed) {
  Random random(seed);
  Builder build(
      "bits " + std::to_string(bits) + " in " + (where == Bad::K ? "k " : "v ") + std::string(to_string(type)),
      attention, attention_arms());
  fill(build, {{6, 2, 64}, {3, 400, 256, 257, 0}, type, type}, random);
  const Tensor& tensor = where == Bad::K ? build.args().k : build.args().v;
  tensor[256].row<uint16_t>(1)[33] = bits;
  tensor[7].row<uint16_t>(0)[1] = bits;
  return finish(build);
}

class List {
 public:
  explicit List(uint64_t seed) : next_(seed * 1000003) {}
  void plan(const Plan& plan) {
    cases.push_back([plan, s = next_++] { return random_case(plan, s); });
  }
  template <class Make>
  void add(Make make) {
    cases.push_back([make, s = next_++] { return make(s); });
  }
  std::vector<std::function<ParityCase()>> cases;

 private:
  uint64_t next_;
};

// Row t sees one cell more than row t - 1, as in a prompt or a verify window.
Lengths window(int64_t rows, int32_t first) {
  Lengths lengths;
  for (int32_t t = 0; t < rows; ++t) lengths.push_back(first + t);
  return lengths;
}

void add_shapes(List& list) {
  list.plan({{4, 2, 64}, {0, 1, 63, 64, 65, 255, 256, 257, 511, 512, 513, 2047, 2048, 2049}});
  list.plan({{4, 2, 64}, {2049, 0, 257, 15, 16, 17, 0, 33}, DType::BF16, DType::F16});
  int64_t rows = 1;
  for (int64_t group : {1, 2, 4, 6, 8, 12, 16}) {
    list.plan({{2 * group, 2, 80}, window(rows++, 250), DType::F32, DType::F32, 3});
    list.plan({{group, 1, 32}, window(9 - rows, 510), DType::BF16, DType::BF16, 3});
  }
  list.plan({{8, 2, 64}, window(48, 230)});
  list.plan({{6, 3, 96}, window(70, 480), DType::F16, DType::F16});
  for (int64_t dim : {1, 15, 16, 17, 60, 64, 80, 96, 126, 128, 256, 320})
    list.plan({{4, 2, dim}, {300, 37}, DType::F32, DType::F32, 1, 1, dim % 3 != 0});
  for (DType k : kKvTypes)
    for (DType v : kKvTypes)
      for (int64_t dim : {60, 64})
        if (dim % 32 == 0 || !(info(k).quantised || info(v).quantised)) list.plan({{6, 2, dim}, {270, 5, 0}, k, v, 2});
  for (DType kv : {DType::Q8_0, DType::Q4_0}) {
    list.plan({{4, 2, 32}, {513, 0, 1, 15, 16, 17, 255, 256, 257}, kv, kv});
    list.plan({{8, 2, 64}, window(48, 230), kv, kv});
    list.plan({{12, 1, 96}, window(3, 510), kv, kv, 3});
    list.plan({{2, 2, 256}, {300, 37}, kv, kv, 1, 1, false});
  }
  list.plan({{4, 2, 16}, {}});
  list.plan({{4, 2, 16}, {0, 0}});
}

// 16-bit cells of the sizes that matrix units take: windows and groups around their tiles.
void add_halves(List& list) {
  for (DType kv : {DType::BF16, DType::F16})
    for (int64_t dim : {64, 128, 256}) {
      list.plan({{12, 2, dim}, window(5, 253), kv, kv, 3, 1, true, true});
      list.plan({{5, 1, dim}, {513, 0, 1, 15, 16, 17, 255, 256, 257, 33, 65}, kv, kv, 1, 1, true, true});
      list.plan({{16, 1, dim}, {300, 37}, kv, kv, 1, 1, dim == 64, true});
      list.plan({{16, 1, dim}, {300, 37}, kv, kv, 1, 1, dim == 64, false});
      list.plan({{1, 1, dim}, {700}, kv, kv, 8, 4, true, true});
    }
}

void add_long(List& list) {
  list.plan({{12, 1, 256}, {4864}});
  list.plan({{16, 1, 320}, window(6, 2200)});  // more splits than one round takes
  list.plan({{2, 1, 128}, {32768}, DType::BF16, DType::BF16});
  list.plan({{1, 1, 64}, {131072}, DType::F16, DType::F16});
  list.plan({{1, 1, 8}, {1048576}, DType::BF16, DType::F16});
  list.plan({{4, 1, 128}, {5000}, DType::Q8_0, DType::Q8_0});
}

void add_values(List& list) {
  list.add([](uint64_t s) { return magnitude_case(1e18f, 1e36f, s); });
  list.add([](uint64_t s) { return magnitude_case(1e-18f, 1e-38f, s); });
  for (const HeadShape& shape : {HeadShape{4, 2, 64}, HeadShape{12, 1, 20}, HeadShape{3, 3, 16}})
    list.add([=](uint64_t s) { return dominant_case(shape, s); });
  for (DType k : {DType::Q8_0, DType::Q4_0})
    for (DType v : {DType::Q8_0, DType::Q4_0}) list.add([=](uint64_t s) { return dominant_block_case(k, v, 96, s); });
  for (DType kv : {DType::BF16, DType::F16})
    for (int64_t dim : {64, 128, 256}) list.add([=](uint64_t s) { return dominant_block_case(kv, kv, dim, s); });
  list.add(ties_case);
  list.add([](uint64_t s) { return exact_scores_case("scores near -1e6", -1e6f, 0.0625f, 64, s); });
  list.add([](uint64_t s) { return exact_scores_case("scores in 0 .. 88.7", 0, 0.125f, 710, s); });
  list.add([](uint64_t s) { return exact_scores_case("scores in -110 .. 110", -110, 0.25f, 880, s); });
  list.add([](uint64_t s) { return exact_scores_case("scores of 3e38", 3e38f, 0, 1, s); });
  for (float slope : {0.01f, -0.01f, 0.125f, -0.125f}) list.add([=](uint64_t s) { return slope_case(slope, s); });
}

void add_non_finite(List& list) {
  for (int64_t cell : {0, 15, 16, 255, 256, 599})
    for (Bad where : {Bad::K, Bad::V}) list.add([=](uint64_t s) { return bad_value_case(where, cell, NAN, s); });
  list.add([](uint64_t s) { return bad_value_case(Bad::Q, 1, NAN, s); });
  for (DType type : {DType::Q8_0, DType::Q4_0})
    for (Bad where : {Bad::K, Bad::V}) list.add([=](uint64_t s) { return bad_block_case(where, type, s); });
  for (DType type : {DType::BF16, DType::F16}) {
    const uint16_t infinity = type == DType::BF16 ? 0x7f80 : 0x7c00, nan = type == DType::BF16 ? 0x7fc0 : 0x7e00;
    for (Bad where : {Bad::K, Bad::V}) list.add([=](uint64_t s) { return bad_half_case(where, type, nan, s); });
    for (int sign : {0, 0x8000})
      list.add([=](uint64_t s) { return bad_half_case(Bad::K, type, static_cast<uint16_t>(infinity | sign), s); });
  }
  const std::vector<std::pair<std::string, std::function<bool(int64_t)>>> masks{
      {"every third cell", [](int64_t cell) { return cell % 3 == 1; }},
      {"all but the last cell of a split", [](int64_t cell) { return cell % kSplit != kSplit - 1; }},
      {"the first split", [](int64_t cell) { return cell < kSplit; }},
      {"the second split", [](int64_t cell) { return cell / kSplit == 1; }},
      {"all but the last split", [](int64_t cell) { return cell < 2 * kSplit; }},
      {"everything", [](int64_t) { return true; }}};
  for (const auto& [name, masked] : masks)
    list.add([n = name, m = masked](uint64_t s) { return masked_case(n, m, s); });
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  List list(seed);
  add_shapes(list);
  add_values(list);
  add_non_finite(list);
  add_long(list);
  add_halves(list);
  return std::move(list.cases);
}

}  // namespace

OperatorEvidence attention_evidence() {
  return {"attention", arm_infos(attention_arms()), cases, false, attention_shapes};
}

}  // namespace strata
