// Statistics of two models: by hand, and as an independent program in other formulas computes them.
#include "measure/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "support/test_files.h"
#include "unit/measure/logits_bytes.h"

namespace strata::test {
namespace {

constexpr double kEverything = -std::numeric_limits<double>::infinity();

std::vector<double> logs(std::vector<double> p) {
  for (double& one : p) one = std::log(one);
  return p;
}

TEST(Divergence, OnePositionByHand) {
  const auto base = logs({0.5, 0.25, 0.25}), q = logs({0.25, 0.25, 0.5});
  const PositionDivergence position = compare_position(q, base, 2, kEverything);
  EXPECT_NEAR(position.kld, 0.25 * std::log(2.0), 1e-15);  // 0.5 ln 2 + 0 + 0.25 ln 0.5
  EXPECT_NEAR(position.nll, std::log(2.0), 1e-15);
  EXPECT_NEAR(position.nll_base, std::log(4.0), 1e-15);
  EXPECT_NEAR(position.difference, 0.25, 1e-15);
  EXPECT_FALSE(position.same_top);
  EXPECT_TRUE(compare_position(base, base, 0, kEverything).same_top);
  EXPECT_EQ(compare_position(base, base, 0, kEverything).kld, 0);
  // Equal tops: the lower token.
  EXPECT_TRUE(compare_position(logs({0.4, 0.4, 0.2}), logs({0.5, 0.3, 0.2}), 0, kEverything).same_top);
  EXPECT_FALSE(compare_position(logs({0.4, 0.4, 0.2}), logs({0.3, 0.5, 0.2}), 0, kEverything).same_top);
}

TEST(Divergence, WhatTheBaseDoesNotKnowIsLeftOut) {
  const std::vector<double> base{std::log(0.5), -16, -20}, q{std::log(0.5), -1, -1};
  EXPECT_EQ(compare_position(q, base, 0, -16).kld, 0);
  EXPECT_NE(compare_position(q, base, 0, kEverything).kld, 0);
  // A token that is impossible to the base counts nothing, to the other model everything.
  const double none = kEverything;
  EXPECT_EQ(compare_position(logs({0.5, 0.5}), std::vector<double>{0, none}, 0, kEverything).kld, std::log(2.0));
  EXPECT_EQ(compare_position(std::vector<double>{0, none}, logs({0.5, 0.5}), 0, kEverything).kld, INFINITY);
}

TEST(Divergence, PerplexityByHand) {
  const std::vector<double> nll{1, 2, 3, 6};  // mean 3, squares of deviations 14
  const Estimate ppl = perplexity_of(nll);
  EXPECT_NEAR(ppl.value, std::exp(3.0), 1e-13);
  EXPECT_NEAR(*ppl.error, std::exp(3.0) * std::sqrt(14.0 / 3 / 4), 1e-12);
  EXPECT_FALSE(perplexity_of(std::vector<double>{1}).error);
}

// The formulas that llama-perplexity uses: sums of values, squares and products, in long double.
struct Sums {
  long double a = 0, aa = 0, b = 0, bb = 0, ab = 0, n = 0;
  void add(long double x, long double y) { a += x, aa += x * x, b += y, bb += y * y, ab += x * y, n += 1; }
  static long double error(long double sum, long double squares, long double n) {
    return std::sqrt((squares / n - sum / n * (sum / n)) / (n - 1));
  }
  long double error_a() const { return error(a, aa, n); }
  long double error_b() const { return error(b, bb, n); }
  long double covariance() const { return (ab / n - a / n * (b / n)) / (n - 1); }
};

TEST(Divergence, EstimatesAsAnIndependentProgramComputesThem) {
  Random random(5);
  const auto uniform = [&] { return static_cast<double>(random.below(1 << 30)) / (1 << 30); };
  DivergenceSamples samples;
  Sums nll, kld, difference, squares;
  int same = 0;
  for (int i = 0; i < 1000; ++i) {
    const double base = 5 * uniform() + 0.1;
    const PositionDivergence one{base + 0.3 * (uniform() - 0.4), base, uniform() * uniform(), uniform() - 0.5,
                                 uniform() < 0.9};
    samples.add(one);
    nll.add(one.nll, one.nll_base);
    kld.add(one.kld, 0);
    difference.add(one.difference, 0);
    squares.add(one.difference * one.difference, 0);
    same += one.same_top;
  }
  const DivergenceSummary s = samples.summary();
  // Doubles against long doubles over 1,000 values of the same size: rounding stays far below 1e-10 of a value.
  const auto near = [](double value, long double wanted) {
    EXPECT_NEAR(value, static_cast<double>(wanted), 1e-10 * (1 + std::fabs(static_cast<double>(wanted))));
  };
  const long double n = 1000, p = std::exp(nll.a / n), p_base = std::exp(nll.b / n);
  near(s.ppl.value, p);
  near(*s.ppl.error, p * nll.error_a());
  near(s.ppl_base.value, p_base);
  near(*s.ppl_base.error, p_base * nll.error_b());
  near(*s.correlation, nll.covariance() / (nll.error_a() * nll.error_b()));
  const long double ratio_error =
      std::sqrt(nll.error_a() * nll.error_a() + nll.error_b() * nll.error_b() - 2 * nll.covariance());
  near(s.log_ratio.value, nll.a / n - nll.b / n);
  near(*s.log_ratio.error, ratio_error);
  near(s.ratio.value, std::exp(nll.a / n - nll.b / n));
  near(*s.ratio.error, std::exp(nll.a / n - nll.b / n) * ratio_error);
  near(s.ppl_difference.value, p - p_base);
  const long double e = p * nll.error_a(), e_base = p_base * nll.error_b();
  near(*s.ppl_difference.error, std::sqrt(e * e + e_base * e_base - 2 * p * p_base * nll.covariance()));
  near(s.kld.value, kld.a / n);
  near(*s.kld.error, kld.error_a());
  near(s.difference.value, difference.a / n);
  near(*s.difference.error, difference.error_a());
  const long double rms = std::sqrt(squares.a / n);
  near(s.rms_difference.value, rms);
  near(*s.rms_difference.error, squares.error_a() / (2 * rms));
  const long double share = same / n;
  near(s.same_top.value, share);
  near(*s.same_top.error, std::sqrt(share * (1 - share) / (n - 1)));
}

TEST(Divergence, QuantilesAreLinearBetweenSamples) {
  DivergenceSamples samples;
  for (int i = 0; i <= 100; ++i) samples.add({.kld = (i * 37 % 101) / 10.0, .difference = -i / 100.0});
  const DivergenceSummary s = samples.summary();
  EXPECT_EQ(s.kld_spread.maximum, 10);
  EXPECT_EQ(s.kld_spread.minimum, 0);
  EXPECT_NEAR(s.kld_spread.median, 5, 1e-12);
  const double wanted[] = {9.99, 9.9, 9.5, 9, 1, 0.5, 0.1, 0.01};
  for (size_t i = 0; i < kTailShares.size(); ++i) EXPECT_NEAR(s.kld_spread.tails[i], wanted[i], 1e-12) << i;
  EXPECT_NEAR(s.difference_spread.quarter, -0.75, 1e-12);
  EXPECT_NEAR(s.difference_spread.three_quarters, -0.25, 1e-12);
}

TEST(Divergence, OneOrNoPositionHasNoErrors) {
  DivergenceSamples samples;
  EXPECT_EQ(samples.summary().positions, 0);
  samples.add({.nll = 1, .nll_base = 1, .same_top = true});
  const DivergenceSummary s = samples.summary();
  EXPECT_FALSE(s.ppl.error || s.log_ratio.error || s.ratio.error || s.ppl_difference.error || s.kld.error ||
               s.rms_difference.error || s.same_top.error || s.correlation);
}

// ---- files

LogitsDifference compare(const std::string& a, const std::string& b) {
  const MemoryFile left(a), right(b);
  const LogitsFile file_a = LogitsFile::open(left.path()), file_b = LogitsFile::open(right.path());
  ThreadPool pool(2);
  const std::atomic<bool> no{false};
  return compare_files(file_a, file_b, pool, no);
}

// 2 chunks of 4 tokens: 2 rows.
FullFile two_rows() {
  FullFile made;
  made.chunks = 2;
  made.tokens = {0, 1, 2, 1, 0, 2, 2, 1};
  made.logits = {1, 2, 3, 4, 5, 6};
  made.rows = 2;
  return made;
}

TEST(LogitsDifference, FindsTheFirstAndTheLargest) {
  FullFile a = two_rows(), b = a;
  EXPECT_TRUE(compare(a.bytes(), b.bytes()).equal());
  b.settings = "a: c\n";
  EXPECT_TRUE(compare(a.bytes(), b.bytes()).equal());  // the logits are
  b.logits[4] = 5.5f;
  b.logits[5] = 4;
  const LogitsDifference d = compare(a.bytes(), b.bytes());
  EXPECT_FALSE(d.equal());
  EXPECT_EQ(d.differing, 1);
  EXPECT_EQ(d.positions, 2);
  EXPECT_EQ(d.first->chunk, 1);
  EXPECT_EQ(d.first->position, 2);
  EXPECT_EQ(d.first->token, 1);
  EXPECT_EQ(d.first->a, 5);
  EXPECT_EQ(d.first->b, 5.5);
  EXPECT_EQ(d.largest.token, 2);
  EXPECT_EQ(d.largest.difference(), 2);
  EXPECT_EQ(d.same_top, 1);
  double sum_a = 0, sum_b = 0, kld = 0;
  const double la[] = {4, 5, 6}, lb[] = {4, 5.5, 4};
  for (int i = 0; i < 3; ++i) sum_a += std::exp(la[i]), sum_b += std::exp(lb[i]);
  for (int i = 0; i < 3; ++i)
    kld += std::exp(la[i]) / sum_a * (std::log(std::exp(la[i]) / sum_a) - std::log(std::exp(lb[i]) / sum_b));
  EXPECT_NEAR(d.max_kld, kld, 1e-14);  // sums of 3 terms below 2
  EXPECT_NEAR(d.mean_kld, kld / 2, 1e-14);
}

TEST(LogitsDifference, ASignOfZeroIsADifference) {
  FullFile a = two_rows(), b = a;
  a.logits[0] = 0.f;
  b.logits[0] = -0.f;
  const LogitsDifference d = compare(a.bytes(), b.bytes());
  EXPECT_EQ(d.differing, 1);
  EXPECT_EQ(d.largest.difference(), 0);
}

TEST(LogitsDifference, AnInterruptedFileIsComparedAsFarAsItGoes) {
  FullFile a = two_rows(), b = a;
  b.logits.resize(3);
  b.rows = 1;
  const LogitsDifference d = compare(a.bytes(), b.bytes());
  EXPECT_EQ(d.positions, 1);
  EXPECT_EQ(d.differing, 0);
  EXPECT_FALSE(d.equal());
}

TEST(LogitsDifference, CodesAndMixedForms) {
  CodedFile a, b;
  EXPECT_TRUE(compare(a.bytes(), b.bytes()).equal());
  b.codes[1] = 3;
  LogitsDifference d = compare(a.bytes(), b.bytes());
  EXPECT_EQ(d.differing, 1);
  EXPECT_EQ(d.first->token, 1);
  EXPECT_EQ(d.first->a, -2);
  EXPECT_EQ(d.first->b, -1.5);
  FullFile full;
  full.logits = {-3, -2, -0.5};
  d = compare(a.bytes(), full.bytes());
  EXPECT_NEAR(d.largest.a - d.largest.b, std::log(std::exp(-3.0) + std::exp(-2.0) + std::exp(-0.5)), 1e-14);
}

TEST(LogitsDifference, RefusesOtherTextsByName) {
  const auto refused = [](const FullFile& b, const std::string& part) {
    try {
      compare(FullFile{}.bytes(), b.bytes());
      FAIL() << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Usage);
      EXPECT_NE(error.message().find(part), std::string::npos) << error.what();
    }
  };
  FullFile tokens, vocabulary, context;
  tokens.tokens[1] = 2;
  refused(tokens, "token 1 is 1 here, 2 there");
  vocabulary.vocabulary = 4;
  vocabulary.logits.push_back(1);
  refused(vocabulary, "vocabulary");
  context.context = 3;
  context.tokens.pop_back();
  refused(context, "n_ctx 4 here, 3 there");
}

TEST(LogitsDifference, StopsWhenInterrupted) {
  const MemoryFile memory(FullFile{}.bytes());
  const LogitsFile file = LogitsFile::open(memory.path());
  ThreadPool pool(1);
  const std::atomic<bool> yes{true};
  EXPECT_THROW(compare_files(file, file, pool, yes), Error);
}

}  // namespace
}  // namespace strata::test
