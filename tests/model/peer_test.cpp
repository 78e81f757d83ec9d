// Every family's GGUF file written by another implementation, against log-probabilities in float64 and of a peer
// engine.
#include <gtest/gtest.h>

#include <cstdio>

#include "support/model_run.h"
#include "support/safetensors_file.h"

namespace strata::test {
namespace {

// Largest difference of log-probabilities at any position. f32 sums over at most 100 positions and 320 logits of size
// ~5: the peer's own f32 arithmetic is up to 2e-5 from the float64 reference on these files, so 5e-5 holds both apart
// from any wrong formula (the smallest seen when one is broken on purpose is 1e-3).
constexpr double kTolerance = 5e-5;

TEST(Peer, LogProbabilitiesOfEveryFile) {
  const std::string folder = fixture_folder("gguf-peer");
  const std::vector<std::string> files = entries_of(folder, ".gguf");
  ASSERT_FALSE(files.empty()) << folder;
  std::printf("%-14s %9s %16s %7s\n", "file", "positions", "max |d log p|", "argmax");
  for (const std::string& name : files) {
    SCOPED_TRACE(name);
    const std::string stem = folder + "/" + name.substr(0, name.size() - 5);
    const SafetensorsFile expected(stem + ".expected.safetensors");
    const std::vector<int32_t> ids = as_ids(expected.values("input_ids"));
    const std::vector<double> reference = expected.values("logp_ref_f64");
    ModelRun model(folder + "/" + name);
    const std::vector<float> logits = model.run(ids);
    const size_t vocabulary = static_cast<size_t>(model.vocabulary());
    ASSERT_EQ(reference.size(), ids.size() * vocabulary);
    double worst = 0;
    size_t agreed = 0;
    for (size_t t = 0; t < ids.size(); ++t) {
      const std::span<const float> row(logits.data() + t * vocabulary, vocabulary);
      const double* wanted = reference.data() + t * vocabulary;
      double sum = 0;
      for (float logit : row) sum += std::exp(static_cast<double>(logit));
      for (size_t id = 0; id < vocabulary; ++id)
        worst = std::max(worst, std::fabs(static_cast<double>(row[id]) - std::log(sum) - wanted[id]));
      agreed += ModelRun::argmax(row) == std::max_element(wanted, wanted + vocabulary) - wanted;
    }
    std::printf("%-14s %9zu %16.2e %3zu/%zu\n", name.c_str(), ids.size(), worst, agreed, ids.size());
    EXPECT_LE(worst, kTolerance);
    EXPECT_EQ(agreed, ids.size());
  }
}

}  // namespace
}  // namespace strata::test
