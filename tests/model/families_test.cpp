// Every family against reference checkpoints: converted to GGUF by the product, run, and compared with the results of
// the implementation that defines them.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "gguf/hf/convert.h"
#include "support/model_run.h"
#include "support/safetensors_file.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

// Differences of f32 logits at every position. The reference computes in f32 too; its chunked delta rule is off by up
// to 1e-4 from float64 (3e-4 with strong decays), so where float64 logits exist they are the reference instead.
constexpr double kLogits = 2e-4;
// The reference's f32 results where no float64 ones exist: its distance from float64 adds to ours.
constexpr double kChunkedReference = 5e-4;

// Converts a checkpoint once per process.
std::string converted(const std::string& name) {
  static const TempFolder folder;
  static std::map<std::string, std::string> done;
  std::string& path = done[name];
  if (path.empty()) {
    path = folder.file(name + ".gguf");
    gguf::hf::ConvertOptions options;
    options.type = DType::F32;
    gguf::hf::convert(fixture_folder("hf") + "/" + name, path, options);
  }
  return path;
}

std::vector<std::string> checkpoints() {
  std::vector<std::string> names;
  for (const std::string& name : entries_of(fixture_folder("hf"), ""))
    if (std::filesystem::exists(fixture_folder("hf") + "/" + name + "/expected.safetensors")) names.push_back(name);
  return names;
}

std::vector<int> lengths_of(const SafetensorsFile& expected) {
  std::vector<int> lengths;
  for (int length = 1; length <= 400; ++length)
    if (expected.has("T" + std::to_string(length) + ".logits")) lengths.push_back(length);
  return lengths;
}

TEST(Families, LogitsAndGreedyContinuation) {
  const std::vector<std::string> names = checkpoints();
  ASSERT_FALSE(names.empty());
  std::printf("%-24s %-10s %-22s %10s %10s\n", "checkpoint", "arch", "lengths", "max |d|", "greedy");
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::string folder = fixture_folder("hf") + "/" + name;
    const SafetensorsFile expected(folder + "/expected.safetensors");
    const std::string f64_path = folder + "/expected_f64.safetensors";
    const bool has_f64 = std::filesystem::exists(f64_path);
    ModelRun model(converted(name));
    double worst = 0;
    int greedy_equal = 0, greedy_total = 0;
    std::string lengths;
    for (int length : lengths_of(expected)) {
      const std::string prefix = "T" + std::to_string(length) + ".";
      const std::vector<int32_t> ids = as_ids(expected.values(prefix + "input_ids"));
      const std::vector<float> logits = model.run(ids);
      bool f64 = false;
      std::vector<double> wanted;
      if (has_f64) {
        const SafetensorsFile exact(f64_path);
        f64 = exact.has(prefix + "logits_f64");
        if (f64) wanted = exact.values(prefix + "logits_f64");
      }
      if (!f64) wanted = expected.values(prefix + "logits");
      const double difference = max_difference(logits, wanted);
      EXPECT_LE(difference, has_f64 && !f64 ? kChunkedReference : kLogits) << "length " << length;
      worst = std::max(worst, difference);
      lengths += std::to_string(length) + " ";

      const std::vector<int32_t> greedy = as_ids(expected.values(prefix + "greedy_ids"));
      const std::vector<int32_t> ours = model.greedy(ids, static_cast<int>(greedy.size()));
      EXPECT_EQ(ours, greedy) << "length " << length;
      for (size_t i = 0; i < greedy.size(); ++i, ++greedy_total) greedy_equal += ours[i] == greedy[i];
    }
    std::printf("%-24s %-10s %-22s %10.2e %5d/%d\n", name.c_str(), model.spec().arch.c_str(), lengths.c_str(), worst,
                greedy_equal, greedy_total);
  }
}

// Residual stream, mixer and MLP outputs, states after a prompt of 65 tokens.
TEST(Families, HiddenStates) {
  constexpr int kLength = 65;
  for (const std::string& name : checkpoints()) {
    SCOPED_TRACE(name);
    const SafetensorsFile expected(fixture_folder("hf") + "/" + name + "/expected.safetensors");
    if (!expected.has("T65.final_hidden")) continue;
    double worst = 0;
    int compared = 0;
    std::string worst_name = "-";
    auto compare = [&](const std::string& key, std::span<const float> values) {
      if (!expected.has(key)) return;
      const std::vector<double> wanted = expected.values(key);
      double size = 1;
      for (double value : wanted) size = std::max(size, std::fabs(value));
      const double difference = max_difference(values, wanted) / size;
      EXPECT_LE(difference, kChunkedReference) << key;  // relative to the largest value of the tensor
      ++compared;
      if (difference > worst) worst = difference, worst_name = key;
    };
    ForwardOptions options;
    options.observe = [&](const char* what, int layer, const Tensor& value) {
      if (value.dtype != DType::F32) return;
      const std::span<const float> values(value.f32(), static_cast<size_t>(value.elements()));
      const std::string kind = what, number = std::to_string(layer);
      if (kind == "hidden") compare("T65.hidden." + std::to_string(layer + 1), values);
      if (kind == "final_hidden") compare("T65.final_hidden", values);
      if (kind == "mixer_out" || kind == "mlp_out" || kind == "ple_out") compare("T65.L" + number + "." + kind, values);
    };
    ModelRun model(converted(name), 1, options);
    SequenceState state(model.spec(), kLength, kFixtureTypes);
    model.run(as_ids(expected.values("T65.input_ids")), state);
    std::printf("%-24s %3d tensors, worst %.2e of the largest value (%s)\n", name.c_str(), compared, worst,
                worst_name.c_str());
    EXPECT_GE(compared, 2);
  }
}

// The cells that each query of a QSA layer attends to, dense and pruning, prompt and cached decode.
TEST(Families, SelectedCells) {
  int rows_compared = 0, pruned = 0;
  for (const std::string& name : checkpoints()) {
    SCOPED_TRACE(name);
    const SafetensorsFile expected(fixture_folder("hf") + "/" + name + "/expected.safetensors");
    std::vector<std::vector<int32_t>> rows;  // of all QSA layers, layer by layer
    ForwardOptions options;
    Tensor ids;
    options.observe = [&](const char* what, int, const Tensor& value) {
      if (std::string(what) == "qsa_ids") ids = value;
      if (std::string(what) != "qsa_counts") return;
      for (int64_t t = 0; t < value.elements(); ++t)
        rows.emplace_back(ids.row<const int32_t>(t), ids.row<const int32_t>(t) + value.as<int32_t>()[t]);
    };
    ModelRun model(converted(name), 1, options);
    for (int length : lengths_of(expected)) {
      const std::string prefix = "T" + std::to_string(length) + ".";
      std::vector<int> layers;
      for (int i = 0; i < model.spec().trunk_layers(); ++i)
        if (expected.has(prefix + "L" + std::to_string(i) + ".qsa_mask")) layers.push_back(i);
      if (layers.empty()) continue;
      rows.clear();
      model.run(as_ids(expected.values(prefix + "input_ids")));
      ASSERT_EQ(rows.size(), layers.size() * static_cast<size_t>(length));
      for (size_t l = 0; l < layers.size(); ++l) {
        const std::string layer = prefix + "L" + std::to_string(layers[l]) + ".";
        const std::vector<double> mask = expected.values(layer + "qsa_mask"), gap = expected.values(layer + "qsa_gap");
        for (int t = 0; t < length; ++t) {
          std::vector<int32_t> wanted;
          for (int cell = 0; cell < length; ++cell)
            if (mask[static_cast<size_t>(t * length + cell)] != 0) wanted.push_back(cell);
          EXPECT_EQ(rows[l * static_cast<size_t>(length) + static_cast<size_t>(t)], wanted) << layer << " row " << t;
          ++rows_compared;
          pruned += gap[static_cast<size_t>(t)] >= 0;  // below 0: everything was selected
        }
      }
    }
  }
  std::printf("%d rows compared, %d of them pruned\n", rows_compared, pruned);
  EXPECT_GT(pruned, 0) << "no row where the comparison has force";
}

}  // namespace
}  // namespace strata::test
