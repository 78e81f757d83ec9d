// Cases of qsa_select, all exact: lengths around the budget and far beyond, every tail, ties, special values, one
// million blocks, and guesses of every kind.
#include "ops/qsa_select/parity.h"

#include <algorithm>
#include <cmath>

#include "evidence/parity_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<QsaSelectArgs>;
using ScoreKind = float (*)(Random&, int64_t row, int64_t block);

// No ties, relu-like ties, only ties, NaN, special values, sorted both ways, one value but for a few, heavy tails.
struct NamedKind {
  const char* name;
  ScoreKind score;
};
const NamedKind kKinds[] = {
    {"random", [](Random& random, int64_t, int64_t) { return random.uniform(0, 10); }},
    {"ties", [](Random& random, int64_t, int64_t) { return std::fmax(0.0f, static_cast<float>(random.below(7) - 3)); }},
    {"zeros", [](Random&, int64_t, int64_t) { return 0.0f; }},
    {"mostly zeros",
     [](Random& random, int64_t, int64_t) { return random.below(100) == 0 ? random.uniform(0, 1) : 0.0f; }},
    {"NaN", [](Random&, int64_t, int64_t) { return NAN; }},
    {"some NaN", [](Random& random, int64_t, int64_t) { return random.below(4) == 0 ? NAN : random.uniform(-1, 1); }},
    {"mostly NaN", [](Random& random, int64_t, int64_t) { return random.below(9) > 0 ? NAN : random.uniform(-1, 1); }},
    {"special",
     [](Random& random, int64_t, int64_t) {
       const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, NAN, -NAN, INFINITY, -INFINITY, 0x1p-149f, -0x1p-149f};
       return values[static_cast<size_t>(random.below(10))];
     }},
    {"infinities", [](Random& random, int64_t, int64_t) { return random.below(3) == 0 ? INFINITY : -INFINITY; }},
    {"ascending", [](Random&, int64_t, int64_t b) { return static_cast<float>(b); }},
    {"descending", [](Random&, int64_t t, int64_t b) { return static_cast<float>(t - b); }},
    {"equal", [](Random&, int64_t, int64_t) { return -2.5f; }},
    {"heavy tails",
     [](Random& random, int64_t, int64_t) { return static_cast<float>(std::exp(20 * random.uniform() - 10)); }},
    // The sample sees the low half only: the pivot keeps far too many.
    {"periodic",
     [](Random& random, int64_t, int64_t b) { return static_cast<float>(b / 32 % 2) + random.uniform(0, 1); }},
};

enum class Guess { None, Zero, Random, Exact, Hostile };

struct Shape {
  std::vector<int32_t> n_kv{};
  QsaSemantics semantics = QsaSemantics::Blocks;
  int ratio = 4, budget = 2048;
  size_t kind = 0;
  Guess guess = Guess::None;
};

int32_t guess_for(Guess guess, Random& random, int64_t row, uint32_t exact) {
  const uint32_t hostile[] = {0xffffffffu, 0x00000001u, 0x007ffffeu, 0x007fffffu, 0x7fffffffu,
                              0x80000000u, 0x80000001u, 0xff800000u, 0xff800001u, 0x80000000u};
  switch (guess) {
    case Guess::Random: return static_cast<int32_t>(random.next());
    case Guess::Exact: return static_cast<int32_t>(exact);
    case Guess::Hostile: return static_cast<int32_t>(hostile[static_cast<size_t>(row) % std::size(hostile)]);
    default: return 0;
  }
}

void fill(Builder& build, const Shape& s, Random& random) {
  const auto rows = static_cast<int64_t>(s.n_kv.size());
  const int64_t most = rows == 0 ? 0 : *std::max_element(s.n_kv.begin(), s.n_kv.end());
  QsaSelectArgs& args = build.args();
  args.scores = build.memory().tensor(DType::F32, {rows, most / s.ratio + 2}, {1});
  for (int64_t t = 0; t < rows; ++t) {
    float* scores = args.scores.row<float>(t);
    const int64_t blocks = s.n_kv[static_cast<size_t>(t)] / s.ratio;
    for (int64_t b = 0; b < blocks; ++b) scores[b] = kKinds[s.kind].score(random, t, b);
    std::fill(scores + blocks, scores + args.scores.extent(1), 1e9f);  // rows that hold no block may not be read
  }
  args.n_kv = build.memory().i32(s.n_kv);
  args.ratio = s.ratio;
  args.budget = s.budget;
  args.semantics = s.semantics;
  args.ids = build.memory().tensor(DType::I32, {rows, std::min<int64_t>(most, s.budget + s.ratio - 1) + 2}, {3});
  args.counts = build.memory().tensor(DType::I32, {rows});
}

std::vector<double> as_doubles(const std::vector<int32_t>& values) { return {values.begin(), values.end()}; }

ParityCase select_case(const Shape& s, uint64_t seed) {
  Random random(seed);
  const int32_t most = s.n_kv.empty() ? 0 : *std::max_element(s.n_kv.begin(), s.n_kv.end());
  Builder build(std::string(kKinds[s.kind].name) + (s.semantics == QsaSemantics::Blocks ? "" : ", fixed width") + ", " +
                    std::to_string(s.n_kv.size()) + " rows to " + std::to_string(most) + " cells, ratio " +
                    std::to_string(s.ratio) + ", budget " + std::to_string(s.budget) + ", guess " +
                    std::to_string(static_cast<int>(s.guess)),
                qsa_select, qsa_select_arms());
  fill(build, s, random);
  QsaSelectArgs& args = build.args();
  const auto rows = s.n_kv.size();
  const int64_t width = args.ids.extent(1);
  std::vector<int32_t> ids(rows * static_cast<size_t>(width)), counts(rows), thresholds(rows);
  qsa_select_oracle(args, ids.data(), counts.data(), thresholds.data());
  std::vector<uint8_t> written(ids.size(), 0);
  for (size_t t = 0; t < rows; ++t)
    std::fill_n(written.begin() + static_cast<int64_t>(t) * width, counts[t], uint8_t{1});
  build.input("scores", &QsaSelectArgs::scores);
  build.output("ids", &QsaSelectArgs::ids, as_doubles(ids), std::vector<double>(ids.size(), 0), std::move(written));
  build.output("counts", &QsaSelectArgs::counts, as_doubles(counts), std::vector<double>(rows, 0));
  if (s.guess == Guess::None) {
    build.rows({&QsaSelectArgs::scores, &QsaSelectArgs::n_kv, &QsaSelectArgs::ids, &QsaSelectArgs::counts});
    return build.build();
  }
  std::vector<int32_t> guesses;
  for (size_t t = 0; t < rows; ++t) {
    guesses.push_back(guess_for(s.guess, random, static_cast<int64_t>(t), static_cast<uint32_t>(thresholds[t])));
    if (s.n_kv[t] / s.ratio <= s.budget / s.ratio) thresholds[t] = guesses[t];
  }
  args.thresholds = build.memory().i32(guesses);
  build.output("thresholds", &QsaSelectArgs::thresholds, as_doubles(thresholds), std::vector<double>(rows, 0));
  build.restored(&QsaSelectArgs::thresholds);
  build.rows({&QsaSelectArgs::scores, &QsaSelectArgs::n_kv, &QsaSelectArgs::ids, &QsaSelectArgs::counts,
              &QsaSelectArgs::thresholds});
  return build.build();
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& s) { list.push_back([=, n = next++] { return select_case(s, n); }); };
  for (QsaSemantics semantics : {QsaSemantics::Blocks, QsaSemantics::FixedWidth})
    for (size_t kind = 0; kind < std::size(kKinds); ++kind) {
      for (int ratio : {1, 2, 4, 8})
        for (int blocks : {1, 2, 5, 16}) {
          Shape s{.semantics = semantics, .ratio = ratio, .budget = blocks * ratio, .kind = kind};
          for (int n : {-2 * ratio - 1, -ratio, -1, 0, 1, ratio - 1, ratio, ratio + 1, 2 * ratio + 1})
            s.n_kv.push_back(std::max(0, s.budget + n));
          s.n_kv.insert(s.n_kv.end(), {0, 1, 97, 98, 99, 100, 257});
          s.guess = blocks == 2 ? Guess::Random : Guess::None;
          add(s);
        }
      add({.n_kv = {0, 1, 3, 4, 5, 2047, 2048, 2049, 2050, 2051, 2052, 2053, 2054, 2500, 8192, 8193, 32770, 32771},
           .semantics = semantics,
           .kind = kind,
           .guess = static_cast<Guess>(kind % 5)});
      add({.n_kv = {131072, 131073, 40002, 131075, 131072, 131073, 131074, 131075, 50000, 131072},
           .semantics = semantics,
           .kind = kind,
           .guess = kind % 2 == 0 ? Guess::Exact : Guess::Hostile});
      add({.n_kv = {262144, 300003}, .semantics = semantics, .kind = kind});
    }
  for (size_t kind : {size_t{0}, size_t{1}}) add({.n_kv = {4000003}, .kind = kind, .guess = Guess::Zero});
  // Ties of one value that are more than the device's sieve keeps, in rows that its threads hold.
  add({.n_kv = {24003, 32000}, .kind = 3});
  add({.n_kv = {24003, 32000}, .kind = 11});
  Shape batch{.budget = 512};
  for (int32_t t = 0; t < 256; ++t) batch.n_kv.push_back(t % 7 == 0 ? t : 500 + 11 * t);
  add(batch);
  add({.n_kv = {}});
  return list;
}

}  // namespace

OperatorEvidence qsa_select_evidence() {
  return {"qsa_select", arm_infos(qsa_select_arms()), cases, false, qsa_select_shapes};
}

}  // namespace strata
