// Cases of qsa_score: the three operand forms; heads, dims and lengths around every tile edge; exact one-hot rows; the
// dead row; magnitudes up to overflow and down to what is flushed; selections that must not change.
#include "ops/qsa_score/parity.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "evidence/parity_case.h"
#include "ops/qsa_score/operands.h"
#include "ops/qsa_select/qsa_select.h"

namespace strata {

std::string qsa_score_selection(const double* expected, const double* bound, const float* scores, int64_t blocks,
                                int64_t best, bool& force) {
  force = false;
  for (int64_t b = 0; b < blocks; ++b)
    if (std::isnan(expected[b])) return {};
  std::vector<int64_t> wanted(static_cast<size_t>(blocks));
  std::iota(wanted.begin(), wanted.end(), int64_t{0});
  std::vector<int64_t> got = wanted;
  std::nth_element(wanted.begin(), wanted.begin() + best, wanted.end(), [&](int64_t a, int64_t b) {
    return expected[a] != expected[b] ? expected[a] > expected[b] : a < b;
  });
  double least_in = INFINITY, most_out = -INFINITY;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t b = wanted[static_cast<size_t>(i)];
    if (i < best)
      least_in = std::min(least_in, expected[b] - bound[b]);
    else
      most_out = std::max(most_out, expected[b] + bound[b]);
  }
  if (!(least_in > most_out)) return {};
  force = true;
  std::nth_element(got.begin(), got.begin() + best, got.end(), [&](int64_t a, int64_t b) {
    const uint32_t left = qsa_order_key(scores[a]), right = qsa_order_key(scores[b]);
    return left != right ? left > right : a < b;
  });
  std::sort(wanted.begin(), wanted.begin() + best);
  std::sort(got.begin(), got.begin() + best);
  const auto differs = std::mismatch(wanted.begin(), wanted.begin() + best, got.begin()).first - wanted.begin();
  if (differs == best) return {};
  return "selects block " + std::to_string(got[static_cast<size_t>(differs)]) + " instead of " +
         std::to_string(wanted[static_cast<size_t>(differs)]);
}

namespace {

using Builder = CaseBuilder<QsaScoreArgs>;

struct Shape {
  DType form = DType::F32;
  std::vector<int32_t> n_kv;
  int64_t heads = 4, d = 128;
  bool dead = true;
  float query = 1, key = 1;  // magnitudes
  int ratio = 4;
  int64_t pad = 5;  // elements between keys
};

std::string label(const Shape& s) {
  const int32_t most = s.n_kv.empty() ? 0 : *std::max_element(s.n_kv.begin(), s.n_kv.end());
  return std::string(to_string(s.form)) + " [" + std::to_string(s.n_kv.size()) + ", " + std::to_string(s.heads) + ", " +
         std::to_string(s.d) + "] to " + std::to_string(most) + " cells" + (s.dead ? ", dead key" : "") +
         (s.query != 1 || s.key != 1 ? ", magnitudes " + std::to_string(s.query) + ", " + std::to_string(s.key) : "");
}

void store_key(DType form, void* key, int64_t i, float value) {
  if (form == DType::F32)
    static_cast<float*>(key)[i] = value;
  else
    static_cast<uint16_t*>(key)[i] = form == DType::BF16 ? f32_to_bf16(value) : f32_to_f16(value);
}

// Arguments with random operands. The three key rows behind the last visible block are loud: nobody may read them.
void fill(Builder& build, const Shape& s, Random& random) {
  const auto rows = static_cast<int64_t>(s.n_kv.size());
  const int64_t blocks = rows == 0 ? 0 : *std::max_element(s.n_kv.begin(), s.n_kv.end()) / s.ratio;
  QsaScoreArgs& args = build.args();
  args.q = build.memory().f32({rows, s.heads, s.d}, random, -s.query, s.query, {4, 3});
  args.pooled = build.memory().tensor(s.form, {blocks + 3, s.d}, {s.pad});
  const float poison[] = {60000, 1e30f, NAN};
  for (int64_t b = 0; b < blocks + 3; ++b)
    for (int64_t i = 0; i < s.d; ++i)
      store_key(s.form, args.pooled.row<void>(b), i, b < blocks ? random.uniform(-s.key, s.key) : poison[b - blocks]);
  if (s.dead) {
    args.dead = build.memory().tensor(s.form, {s.d});
    for (int64_t i = 0; i < s.d; ++i) store_key(s.form, args.dead.data, i, random.uniform(-s.key, s.key));
  }
  args.n_kv = build.memory().i32(s.n_kv);
  args.ratio = s.ratio;
  args.scores = build.memory().tensor(DType::F32, {rows, blocks + 3}, {2});
}

// The best blocks by the arm's scores are the oracle's wherever no error inside the bounds can change them. Only blocks
// compete: the spare row with its 1e9 would hide every gap.
std::function<std::string(int64_t&)> selection_check(const QsaScoreArgs& args, std::vector<double> expected,
                                                     std::vector<double> bound) {
  return [args, expected = std::move(expected), bound = std::move(bound)](int64_t& force) {
    for (int64_t t = 0; t < args.q.extent(0); ++t) {
      const int64_t blocks = args.n_kv.as<int32_t>()[t] / args.ratio, best = blocks > 512 ? 512 : blocks / 2;
      if (best == 0) continue;
      bool forced = false;
      const auto start = static_cast<size_t>(t * args.scores.extent(1));
      const std::string wrong = qsa_score_selection(expected.data() + start, bound.data() + start,
                                                    args.scores.row<const float>(t), blocks, best, forced);
      if (!wrong.empty()) return "row " + std::to_string(t) + " " + wrong;
      force += forced ? best : 0;
    }
    return std::string{};
  };
}

void expect(Builder& build, bool exact = false) {
  const QsaScoreArgs& args = build.args();
  std::vector<double> expected(static_cast<size_t>(args.scores.elements())), bound(expected.size());
  std::vector<uint8_t> written(expected.size(), 0);
  qsa_score_oracle(args, expected.data());
  if (!exact) qsa_score_bound(args, bound.data());
  for (int64_t t = 0; t < args.q.extent(0); ++t)
    std::fill_n(written.begin() + t * args.scores.extent(1),
                args.n_kv.as<int32_t>()[t] / args.ratio + (args.dead.empty() ? 0 : 1), uint8_t{1});
  build.check(selection_check(args, expected, bound));
  build.input("q", &QsaScoreArgs::q);
  build.input("pooled", &QsaScoreArgs::pooled);
  if (!args.dead.empty()) build.input("dead", &QsaScoreArgs::dead);
  build.output("scores", &QsaScoreArgs::scores, std::move(expected), std::move(bound), std::move(written));
  build.rows({&QsaScoreArgs::q, &QsaScoreArgs::n_kv, &QsaScoreArgs::scores});
}

ParityCase random_case(const Shape& s, uint64_t seed) {
  Random random(seed);
  Builder build(label(s), qsa_score, qsa_score_arms());
  fill(build, s, random);
  const QsaScoreArgs& args = build.args();
  if (args.pooled.extent(0) <= 10000)
    build.variant("blocks in pages", [pages = build.memory().paged(args.pooled, 64, random), &args](Queue& queue) {
      QsaScoreArgs paged = args;
      paged.pooled.data = const_cast<void*>(pages.page[0]);
      paged.pages = pages;
      qsa_score(queue, paged);
    });
  expect(build);
  return build.build();
}

// Row t reads dim t of each key, alone and through one head, so every (block, dim) shows exactly. 4096 values that all
// types hold, a quarter of them negative.
ParityCase one_hot_case(DType form, int64_t heads, int64_t d, int64_t pad, uint64_t seed) {
  Random random(seed);
  const Shape s{.form = form,
                .n_kv = std::vector<int32_t>(static_cast<size_t>(d), 4 * 133 + 4),
                .heads = heads,
                .d = d,
                .pad = pad};
  Builder build("one-hot " + label(s), qsa_score, qsa_score_arms());
  fill(build, s, random);
  const QsaScoreArgs& args = build.args();
  auto coded = [](int64_t code) {
    const auto mixed = splitmix64(static_cast<uint64_t>(code));
    const auto value = std::ldexp(static_cast<float>(128 + mixed % 128), static_cast<int>(mixed / 128 % 16) - 14);
    return mixed >> 62 == 0 ? -value : value;
  };
  for (int64_t t = 0; t < d; ++t)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < d; ++i) args.q[t].row<float>(h)[i] = i == t && h == t % heads ? 1.0f : 0.0f;
  for (int64_t b = 0; b < 134; ++b)
    for (int64_t i = 0; i < d; ++i) store_key(form, args.pooled.row<void>(b), i, coded(b * d + i));
  for (int64_t i = 0; i < d; ++i) store_key(form, args.dead.data, i, coded(-1 - i));
  expect(build, true);
  return build.build();
}

// NaN and infinities in keys and queries: NaN passes relu, -inf does not.
ParityCase special_case(DType form, int64_t pad, uint64_t seed) {
  Random random(seed);
  const Shape s{.form = form, .n_kv = {400, 401, 37, 402, 403, 0}, .pad = pad};
  Builder build("special values " + label(s), qsa_score, qsa_score_arms());
  fill(build, s, random);
  const QsaScoreArgs& args = build.args();
  const float values[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f};
  for (int64_t b = 0; b < 100; b += 3)
    store_key(form, args.pooled.row<void>(b), random.below(128), values[static_cast<size_t>(random.below(6))]);
  for (int64_t i = 0; i < 128; ++i) store_key(form, args.pooled.row<void>(50), i, -0.0f);
  args.q[1].row<float>(2)[17] = NAN;
  args.q[3].row<float>(0)[127] = INFINITY;
  for (int64_t h = 0; h < 4; ++h) args.q[4].row<float>(h)[64] = -INFINITY;
  expect(build);
  return build.build();
}

std::vector<int32_t> mixed_lengths(size_t rows) {
  const std::vector<int32_t> lengths{2053, 0, 2051, 1, 3, 4, 5, 2047, 2048, 2049, 2050, 2052, 259, 258, 257, 256, 255};
  std::vector<int32_t> result;
  for (size_t t = 0; t < rows; ++t) result.push_back(lengths[t % lengths.size()]);
  return result;
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& s) { list.push_back([=, n = next++] { return random_case(s, n); }); };
  // Blocks around 16, 32, 64 and 128, with every tail; the last lengths end behind a whole tile and one block.
  const std::vector<int32_t> edges{61, 0, 3, 64, 69, 127, 130, 133, 251, 252, 256, 261, 510, 515, 516};
  for (DType form : {DType::F16, DType::BF16, DType::F32}) {
    for (int64_t d : {64, 128, 256}) {  // keys of whole, aligned pieces of 16 bytes
      for (size_t rows : {3, 20}) add({.form = form, .n_kv = mixed_lengths(rows), .heads = 3, .d = d, .pad = 8});
      // One head: its first two rows are two queries, and swapped they show. Five: more than a tile holds.
      for (int64_t heads : {1, 5}) add({.form = form, .n_kv = mixed_lengths(6), .heads = heads, .d = d, .pad = 8});
    }
    for (int64_t heads : {1, 2, 3, 4, 5, 9})
      for (int64_t d : {1, 2, 15, 16, 17, 33, 128, 320})
        add({.form = form, .n_kv = edges, .heads = heads, .d = d, .dead = (heads + d) % 3 != 0});
    for (size_t rows : {1, 2, 4, 8, 15, 16, 17, 48, 256})
      add({.form = form, .n_kv = mixed_lengths(rows), .dead = rows != 8});
    for (int ratio : {1, 3}) add({.form = form, .n_kv = {100, 101, 102, 64}, .ratio = ratio});
    add({.form = form, .n_kv = {2500, 8195, 131073, 262144, 300002}});
    add({.form = form, .n_kv = {1048576, 1048575, 524288}, .heads = 1, .d = 16});
    add({.form = form, .n_kv = mixed_lengths(17), .query = 8, .key = 8});
    add({.form = form, .n_kv = mixed_lengths(17), .query = 0x1p-12f, .key = 0x1p-12f});
    add({.form = form, .n_kv = mixed_lengths(17), .query = 65504, .key = 65504});
    add({.form = form, .n_kv = mixed_lengths(17), .query = 1e5f});
    if (form != DType::F16) {
      add({.form = form, .n_kv = mixed_lengths(17), .query = 1e17f, .key = 1e17f});
      add({.form = form, .n_kv = mixed_lengths(17), .query = 1e-19f, .key = 1e-19f});  // products of 1e-38
      add({.form = form, .n_kv = mixed_lengths(17), .query = 1e-39f, .key = 1e20f});   // subnormal operands
    }
    add({.form = form, .n_kv = {}});
    for (int64_t heads : {1, 4, 5})
      for (const auto& [d, pad] : {std::pair<int64_t, int64_t>{17, 5}, {48, 5}, {64, 8}})
        list.push_back([=, d = d, pad = pad, n = next++] { return one_hot_case(form, heads, d, pad, n); });
    for (int64_t pad : {5, 8}) list.push_back([=, n = next++] { return special_case(form, pad, n); });
  }
  return list;
}

}  // namespace

OperatorEvidence qsa_score_evidence() {
  return {"qsa_score", arm_infos(qsa_score_arms()), cases, true, qsa_score_shapes};
}

}  // namespace strata
