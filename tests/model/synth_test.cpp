// Synthetic models of every architecture and type load, run, and give logits that mean something to a benchmark:
// finite, spread, different for different prompts.
#include "model/synth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include "base/error.h"
#include "gguf/quant.h"
#include "model/spec.h"
#include "runtime/engine.h"
#include "support/model_run.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

const std::string kTokenizer = source_path("models/strata-mini-q8_0.gguf");

SynthOptions options_for(const SynthShape& shape, std::string_view scheme, int threads = 1) {
  SynthOptions options;
  options.shape = shape;
  options.scheme = *gguf::quant_scheme(scheme);
  options.tokenizer = kTokenizer;
  options.seed = 5;
  options.threads = threads;
  return options;
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool has_mtp(const std::string& arch) {
  return arch == "qwen3next" || arch.starts_with("qwen35") || arch == "qwen4exp";
}

// Mean over rows of the standard deviation of the logits of a row; NaN when one is not finite.
double spread_of(const std::vector<float>& logits, int64_t vocabulary) {
  double total = 0;
  const size_t rows = logits.size() / static_cast<size_t>(vocabulary);
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0, power = 0;
    for (int64_t i = 0; i < vocabulary; ++i) {
      const double value = logits[r * static_cast<size_t>(vocabulary) + static_cast<size_t>(i)];
      sum += value;
      power += value * value;
    }
    const double n = static_cast<double>(vocabulary);
    total += std::sqrt(power / n - (sum / n) * (sum / n));
  }
  return total / static_cast<double>(rows);
}

// The head draws logits with a deviation of 3 from a vector of rms 1; the mixer of qwen4exp delivers a third of that.
TEST(Synth, EveryArchitectureGivesSpreadLogits) {
  const TempFolder folder;
  for (const std::string& arch : known_architectures()) {
    SCOPED_TRACE(arch);
    SynthShape shape = small_synth_shape(arch);
    shape.mtp = has_mtp(arch) ? 1 : 0;
    const std::string path = folder.file(arch + ".gguf");
    const SynthSummary summary = write_synth(path, options_for(shape, "F32"));
    ModelRun model(path);
    EXPECT_EQ(model.spec().mtp_layers, shape.mtp);
    EXPECT_EQ(model.model().file().data_bytes(), summary.bytes);
    std::vector<int32_t> prompt;
    for (int i = 0; i < 100; ++i) prompt.push_back((i * 7919 + 13) % 8000);
    const std::vector<float> logits = model.run(prompt);
    const double spread = spread_of(logits, model.vocabulary());
    std::set<int32_t> likely;
    for (size_t r = 0; r < prompt.size(); ++r) likely.insert(ModelRun::argmax({logits.data() + r * 8192, 8192}));
    std::printf("%-10s logits deviate by %.2f, %zu different tokens of 100 are most likely\n", arch.c_str(), spread,
                likely.size());
    EXPECT_GT(spread, 0.5);
    EXPECT_LT(spread, 6);
    EXPECT_GT(likely.size(), 30u);  // what is most likely depends on the input
  }
}

// The observed parts: routers differ between tokens, decays vary, index scores are not zero.
TEST(Synth, RoutersDecaysAndIndexAreAlive) {
  const TempFolder folder;
  const std::string path = folder.file("m.gguf");
  write_synth(path, options_for(small_synth_shape("qwen4exp"), "Q4_K"));
  std::set<std::vector<int32_t>> selections;
  ForwardOptions options;
  Tensor ids;
  int row = 0;
  options.observe = [&](const char* what, int, const Tensor& value) {
    if (std::string(what) == "qsa_ids") ids = value;
    if (std::string(what) != "qsa_counts") return;
    for (int64_t t = 0; t < value.elements(); ++t)
      if (row++ >= 80)
        selections.insert({ids.row<const int32_t>(t), ids.row<const int32_t>(t) + value.as<int32_t>()[t]});
  };
  ModelRun model(path, 1, options);
  std::vector<int32_t> prompt;
  for (int i = 0; i < 120; ++i) prompt.push_back((i * 7919 + 13) % 8000);
  Sequence state(model.spec(), 120, exact_caches());
  model.run(prompt, state);
  EXPECT_GT(selections.size(), 35u);  // of 40 rows beyond the budget of 64: hardly two select the same cells
  const Tensor& a = model.model().weights().layers[0].delta.a;
  const Tensor& dt = model.model().weights().layers[0].delta.dt_bias;
  for (int64_t h = 0; h < a.elements(); ++h) {
    const double decay = std::exp(a.f32()[h] * std::log1p(std::exp(dt.f32()[h])));
    EXPECT_GT(decay, 0.1);
    EXPECT_LT(decay, 0.9999);
  }
}

TEST(Synth, EveryArchitectureAndTypeGenerates) {
  const TempFolder folder;
  const std::string path = folder.file("m.gguf");
  Log log(LogLevel::Error);
  for (const std::string& arch : known_architectures()) {
    SynthShape shape = small_synth_shape(arch);
    for (const gguf::QuantScheme& scheme : gguf::quant_schemes()) {
      SCOPED_TRACE(arch + " " + std::string(scheme.name));
      write_synth(path, options_for(shape, scheme.name));
      EngineOptions engine_options;
      engine_options.model = path;
      engine_options.threads = 1;
      Engine engine(engine_options, log);
      Sequence state(engine.model().spec(), 100);
      engine.forward().run(std::vector<int32_t>(70, 5), state, {});
      EXPECT_EQ(state_bytes(engine.model().spec(), 70).total() - state_bytes(engine.model().spec(), 0).total(),
                state.bytes().total() - Sequence(engine.model().spec(), 100).bytes().total());
      GenerateRequest request;
      request.prompt = {450, 7584, 536};
      request.max_tokens = 3;
      request.ignore_end = true;
      EXPECT_EQ(engine.generate(request).tokens.size(), 3u);
      const gguf::TensorInfo* matrix = engine.model().file().find_tensor("blk.3.attn_q.weight");
      EXPECT_EQ(matrix->type, scheme.base);
    }
  }
}

TEST(Synth, SeedAloneDecidesTheBytes) {
  const TempFolder folder;
  const SynthShape shape = small_synth_shape("qwen35");
  const std::string a = folder.file("a.gguf"), b = folder.file("b.gguf");
  write_synth(a, options_for(shape, "Q4_K_M", 1));
  write_synth(b, options_for(shape, "Q4_K_M", 5));
  EXPECT_EQ(contents(a), contents(b));
  SynthOptions other = options_for(shape, "Q4_K_M");
  other.seed = 6;
  write_synth(b, other);
  EXPECT_NE(contents(a), contents(b));
}

TEST(Synth, VocabularyIsPadded) {
  const TempFolder folder;
  SynthShape shape = small_synth_shape("qwen3");
  shape.vocabulary = 8200;
  const std::string path = folder.file("m.gguf");
  write_synth(path, options_for(shape, "Q8_0"));
  const gguf::File file = gguf::File::open(path);
  const auto& tokens = *file.get_strings("tokenizer.ggml.tokens");
  EXPECT_EQ(tokens.size(), 8200u);
  EXPECT_EQ(tokens.back(), "[PAD8199]");
  EXPECT_EQ(file.get_ints("tokenizer.ggml.token_type", 0, 255)->back(), 5);
  EXPECT_EQ(file.find_tensor("token_embd.weight")->ne[1], 8200u);
}

// Parameters as published; totals of tensors that a plan counts, nothing is written.
TEST(Synth, NamedShapesHaveTheirPublishedSizes) {
  struct Case {
    const char* name;
    double least, most;  // billions
  };
  for (const Case& c :
       {Case{"qwen3-0.6b", 0.59, 0.60}, Case{"qwen35-0.8b", 0.74, 0.77}, Case{"qwen3-30b-a3b", 30.5, 30.6},
        Case{"qwen4exp-mini", 0.022, 0.027}, Case{"qwen4exp-flash", 175, 178}}) {
    const SynthSummary summary = plan_synth(options_for(*named_synth_shape(c.name), "Q4_K_M"));
    EXPECT_GT(static_cast<double>(summary.parameters), c.least * 1e9) << c.name;
    EXPECT_LT(static_cast<double>(summary.parameters), c.most * 1e9) << c.name;
  }
  EXPECT_FALSE(named_synth_shape("qwen9"));
}

TEST(Synth, ImpossibleShapesAreRefused) {
  const TempFolder folder;
  const std::string out = folder.file("out.gguf");
  auto fails = [&](const char* arch, const std::function<void(SynthShape&)>& change, const std::string& part) {
    SynthShape shape = small_synth_shape(arch);
    change(shape);
    try {
      write_synth(out, options_for(shape, "Q8_0"));
      ADD_FAILURE() << "no error: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    EXPECT_TRUE(folder.empty());
  };
  fails(
      "qwen3", [](SynthShape& s) { s.kv_heads = 3; }, "kv-heads 3 does not divide heads 4");
  fails(
      "qwen3", [](SynthShape& s) { s.inner = 0; }, "ffn");
  fails(
      "qwen3", [](SynthShape& s) { s.mtp = 1; }, "MTP");
  fails(
      "qwen3moe", [](SynthShape& s) { s.experts_used = 9; }, "experts-used");
  fails(
      "qwen35", [](SynthShape& s) { s.value_heads = 3; }, "key-heads");
  fails(
      "qwen4exp", [](SynthShape& s) { s.index_ratio = 5; }, "index-ratio");
  fails(
      "qwen4exp", [](SynthShape& s) { s.interval = 2; }, "n-gram");
  fails(
      "qwen4exp", [](SynthShape& s) { s.layers = 1; }, "n-gram");
  fails(
      "qwen3", [](SynthShape& s) { s.vocabulary = 100; }, "8192 tokens");
  fails(
      "llama",
      [](SynthShape& s) {
        s.hidden = s.inner = 1 << 30;
        s.heads = s.kv_heads = 1 << 30;
      },
      "too large");
  EXPECT_THROW(small_synth_shape("gpt2"), Error);
}

}  // namespace
}  // namespace strata::test
