// Far into a context: a model of block-selected attention reads what it selected and nothing else, at a million
// positions as at eight thousand, and a token costs the same but for the scores of the blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>

#include "base/half.h"
#include "base/profile.h"
#include "evidence/statistics.h"
#include "measure/synthetic_depth.h"
#include "measure/token_trace.h"
#include "model/synth.h"
#include "support/append.h"
#include "support/model_run.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

// A few layers with every part of qwen4exp: three delta nets, one QSA layer, an n-gram table and an MTP block.
SynthShape tiny_shape() {
  SynthShape shape = small_synth_shape("qwen4exp");
  shape.layers = 4;
  shape.hidden = 64;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.head_dim = 32;
  shape.rotary = 16;
  shape.expert_inner = shape.shared_inner = 64;
  shape.value_heads = 2;
  shape.key_heads = 1;
  shape.index_dim = 32;
  shape.context = 1 << 18;
  shape.mtp = 1;
  return shape;
}

std::string write_model(const TempFolder& folder, const SynthShape& shape) {
  SynthOptions options;
  options.shape = shape;
  options.scheme = *gguf::quant_scheme("F32");
  options.tokenizer = source_path("models/strata-mini-q8_0.gguf");
  options.threads = 2;
  const std::string path = folder.file("deep.gguf");
  write_synth(path, options);
  return path;
}

// What one QSA layer selected in a call: the cells of each row.
struct Selected {
  std::vector<std::vector<int32_t>> rows;
  Tensor ids;

  void observe(const char* name, const Tensor& value) {
    if (std::strcmp(name, "qsa_ids") == 0) ids = value;
    if (std::strcmp(name, "qsa_counts") != 0) return;
    for (int64_t t = 0; t < value.extent(0); ++t) {
      const int32_t* row = ids.row<const int32_t>(t);
      rows.emplace_back(row, row + value.as<int32_t>()[t]);
    }
  }
  std::set<int64_t> cells() const {
    std::set<int64_t> all;
    for (const auto& row : rows) all.insert(row.begin(), row.end());
    return all;
  }
};

// A copy (of one kv head) whose keys or values are NaN in every cell that is not `kept`.
PagedRows poisoned(const PagedRows& rows, PagePool& pool, int64_t width, const std::set<int64_t>& kept) {
  PagedRows copy(pool, DType::F16, {1, width});
  std::vector<float> values(static_cast<size_t>(width));
  copy.prepare(rows.length());
  for (int64_t cell = 0; cell < rows.length(); ++cell) {
    std::fill(values.begin(), values.end(), NAN);
    if (kept.contains(cell))
      for (int64_t i = 0; i < width; ++i)
        values[static_cast<size_t>(i)] = f16_to_f32(static_cast<const uint16_t*>(rows.row(cell))[i]);
    append_rows(test_queue(), copy, make_f32(values.data(), {1, width}));
  }
  return copy;
}

// Calls that cross position 2^20, which YaRN reaches from 2^18. Selected cells are the budget and the tail, from all
// over the context; with NaN in all the others every bit of logits, taps and drafts is the same: nothing else was read.
TEST(Depth, AMillionPositionsReadTheSelectedCellsAlone) {
  const TempFolder folder;
  const SynthShape shape = tiny_shape();
  Selected selected;
  ForwardOptions options;
  options.observe = [&](const char* name, int, const Tensor& value) { selected.observe(name, value); };
  RopeOverride yarn;
  yarn.scaling = "yarn";
  yarn.factor = 4;
  ModelRun model(write_model(folder, shape), 2, options, yarn);
  const ModelSpec& spec = model.spec();
  ASSERT_EQ(spec.context, 1 << 20);
  constexpr int64_t kDepth = (1 << 20) - 3, kRows = 6, kQsa = 3;
  const std::vector<int32_t> tokens = token_trace(spec.vocabulary, kRows + 1, 5);
  const std::span<const int32_t> run(tokens.data(), kRows), next(tokens.data() + 1, kRows);
  PagePool pool;
  Sequence deep(spec, kDepth + 16, {}, pool);
  fill_synthetic(test_queue(), deep, spec, kDepth);

  auto pass = [&](Sequence& sequence, int64_t step, std::vector<float>& logits, std::vector<float>& drafts) {
    std::vector<float> taps;
    logits = model.run(run, sequence, step, &taps);
    drafts.resize(static_cast<size_t>(kRows * spec.vocabulary));
    model.forward().draft(make_f32(taps.data(), {kRows, spec.residual_width()}), next, kDepth, sequence,
                          make_f32(drafts.data(), {kRows, spec.vocabulary}));
    return taps;
  };
  Sequence plain = deep;
  std::vector<float> logits, drafts;
  const std::vector<float> taps = pass(plain, kRows, logits, drafts);
  EXPECT_TRUE(std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }));
  EXPECT_TRUE(std::all_of(drafts.begin(), drafts.end(), [](float x) { return std::isfinite(x); }));
  ASSERT_EQ(selected.rows.size(), static_cast<size_t>(kRows));  // the MTP block reads every cell
  for (int64_t t = 0; t < kRows; ++t) {
    const std::vector<int32_t>& row = selected.rows[static_cast<size_t>(t)];
    const int64_t cells = kDepth + t + 1;
    EXPECT_EQ(static_cast<int64_t>(row.size()), shape.index_budget + cells % shape.index_ratio);
    EXPECT_TRUE(std::is_sorted(row.begin(), row.end()));
    EXPECT_LT(row.back(), cells);
    EXPECT_TRUE(row.front() < kDepth / 4 && row[row.size() - 5] > kDepth * 3 / 4) << "from one end alone";
  }

  const std::set<int64_t> kept = selected.cells();
  const int64_t width = int64_t{shape.kv_heads} * shape.head_dim;
  for (const int64_t step : {kRows, int64_t{1}}) {
    Sequence other = deep;
    LayerCaches& caches = other.layers[kQsa];
    caches.k = poisoned(caches.k, pool, width, kept);
    caches.v = poisoned(caches.v, pool, width, kept);
    std::vector<float> other_logits, other_drafts;
    EXPECT_EQ(pass(other, step, other_logits, other_drafts), taps) << step << " rows at a time";
    EXPECT_EQ(other_logits, logits) << step << " rows at a time";
    EXPECT_EQ(other_drafts, drafts) << step << " rows at a time";
  }
  // The comparison has force: without one of the cells that were selected nothing is finite.
  std::set<int64_t> fewer = kept;
  fewer.erase(fewer.begin());
  LayerCaches& caches = deep.layers[kQsa];
  caches.v = poisoned(caches.v, pool, width, fewer);
  std::vector<float> spoiled;
  pass(deep, kRows, spoiled, drafts);
  EXPECT_TRUE(std::any_of(spoiled.begin(), spoiled.end(), [](float x) { return std::isnan(x); }));
}

TEST(Depth, AContextBeyondThePositionsThatF32HoldsIsRefused) {
  const Model model = Model::load(source_path("models/strata-mini-q8_0.gguf"));
  EXPECT_NO_THROW(Sequence(model.spec(), kMaxContext));
  EXPECT_THROW(Sequence(model.spec(), kMaxContext + 1), Error);
  EXPECT_THROW(Sequence(model.spec(), -1), Error);
  Sequence sequence(model.spec(), 10);
  EXPECT_THROW(sequence.set_capacity(int64_t{1} << 33), Error);
}

// Decodes token by token and counts.
class Decoder {
 public:
  Decoder(const std::string& path, int64_t depth, int threads)
      : log_(LogLevel::Error),
        model_(Model::load(path)),
        queue_(threads, log_),
        forward_(model_, queue_, options()),
        sequence_(model_.spec(), depth + 4096, {}, pool_),
        tokens_(token_trace(model_.spec().vocabulary, 4096, 9)),
        logits_(static_cast<size_t>(model_.spec().vocabulary)) {
    fill_synthetic(test_queue(), sequence_, model_.spec(), depth);
  }
  void step() {
    const ProfileSpan span(queue_.profiler, Stage::Decode, 1);
    const int32_t* token = &tokens_[static_cast<size_t>(done_++)];
    forward_.run({token, 1}, sequence_, make_f32(logits_.data(), {1, static_cast<int64_t>(logits_.size())}));
  }
  // Nanoseconds of a step: of all, and of the operators named.
  struct Times {
    double whole = 0, score = 0, select = 0;
  };
  Times timed_step() {
    Profiler profiler;
    queue_.profiler = &profiler;
    step();
    queue_.profiler = nullptr;
    const ProfileReport report = profiler.report();
    const StageReport& decode = *report.find(Stage::Decode);
    Times times;
    times.whole = static_cast<double>(decode.whole.value());
    for (const ProfilePart& part : decode.parts) {
      if (part.name == "qsa_score") times.score = static_cast<double>(part.totals.total().value());
      if (part.name == "qsa_select") times.select = static_cast<double>(part.totals.total().value());
    }
    return times;
  }
  // Operators and how often they ran.
  std::map<std::string, int64_t> counted(int steps) {
    Profiler profiler;
    queue_.profiler = &profiler;
    for (int i = 0; i < steps; ++i) step();
    queue_.profiler = nullptr;
    std::map<std::string, int64_t> calls;
    const ProfileReport report = profiler.report();
    for (const ProfilePart& part : report.find(Stage::Decode)->parts)
      calls[part.name + "/" + part.arm] = part.totals.calls;
    return calls;
  }
  int64_t selected() const { return selected_; }  // cells read by sparse attention so far
  const PagePool& pool() const { return pool_; }
  uint64_t scratch() const { return forward_.scratch_bytes(); }

 private:
  ForwardOptions options() {
    ForwardOptions options;
    options.observe = [this](const char* name, int, const Tensor& value) {
      if (std::strcmp(name, "qsa_counts") == 0) selected_ += value.as<int32_t>()[0];
    };
    return options;
  }
  Log log_;
  Model model_;
  Queue queue_;
  int64_t selected_ = 0;
  Forward forward_;
  PagePool pool_;
  Sequence sequence_;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
  int64_t done_ = 0;
};

constexpr int64_t kNear = 8192, kFar = 131072;

// Work instead of time: the same operators as often, the same cells read, the same memory taken, and scratch that grows
// by the scores alone.
TEST(Depth, AStepDoesTheSameWorkAtAnyDepth) {
  const TempFolder folder;
  const SynthShape shape = tiny_shape();
  const std::string path = write_model(folder, shape);
  Decoder near(path, kNear, 2), far(path, kFar, 2);
  const uint64_t near_before = near.pool().used(), far_before = far.pool().used();
  EXPECT_EQ(near.counted(64), far.counted(64));
  EXPECT_EQ(near.selected(), far.selected());
  EXPECT_EQ(near.selected(), 64 * shape.index_budget + 16 * (0 + 1 + 2 + 3));
  EXPECT_EQ(near.pool().used() - near_before, far.pool().used() - far_before);
  const uint64_t scores = (kFar - kNear) / static_cast<uint64_t>(shape.index_ratio) * sizeof(float);
  // The arena takes memory in steps: up to twice what is asked for, and a megabyte.
  EXPECT_LE(far.scratch(), near.scratch() + 2 * scores + (1 << 20));
}

// Medians of interleaved steps. Not by default: a busy machine makes times meaningless.
TEST(Depth, AStepTakesTheSameTimeButForTheScores) {
  if (!test_all()) GTEST_SKIP() << "needs TEST_ALL=1";
  const TempFolder folder;
  const std::pair<const char*, SynthShape> shapes[] = {{"tiny", tiny_shape()},
                                                       {"qwen4exp-mini", *named_synth_shape("qwen4exp-mini")}};
  for (const auto& [name, shape] : shapes) {
    const std::string path = write_model(folder, shape);
    Decoder near(path, kNear, 1), far(path, kFar, 1);  // nobody waits for a thread that has no processor
    for (int i = 0; i < 20; ++i) near.step(), far.step();
    std::vector<double> values[2][4];
    for (int i = 0; i < 300; ++i)
      for (int which = 0; which < 2; ++which) {
        const Decoder::Times times = (which == 0 ? near : far).timed_step();
        const double rest = times.whole - times.score;
        const double each[] = {times.whole, times.score, times.select, rest};
        for (int k = 0; k < 4; ++k) values[which][k].push_back(each[k] / 1e3);
      }
    double medians[2][4];
    for (int which = 0; which < 2; ++which)
      for (int k = 0; k < 4; ++k) medians[which][k] = median(values[which][k]);
    const char* names[] = {"whole", "qsa_score", "qsa_select", "without qsa_score"};
    for (int k = 0; k < 4; ++k)
      std::printf("%-14s %-18s %9.1f us at %lld, %9.1f us at %lld: %.2f\n", name, names[k], medians[0][k],
                  static_cast<long long>(kNear), medians[1][k], static_cast<long long>(kFar),
                  medians[1][k] / medians[0][k]);
    EXPECT_LE(medians[1][3], 1.3 * medians[0][3]) << name;
  }
}

}  // namespace
}  // namespace strata::test
