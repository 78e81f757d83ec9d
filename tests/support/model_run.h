// A model of the fixtures with the little that a test needs to run it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/log.h"
#include "model/forward.h"
#include "model/model.h"
#include "model/sequence.h"

namespace strata::test {

inline bool test_all() { return std::getenv("TEST_ALL") != nullptr; }
inline std::string source_path(const std::string& relative) { return std::string(STRATA_SOURCE_DIR "/") + relative; }

// The committed part of a fixture folder; all of it with TEST_ALL=1 where it is there.
inline std::string fixture_folder(const std::string& name) {
  const std::string full = source_path("../shared/fixtures/" + name);
  return test_all() && std::filesystem::exists(full) ? full : source_path("tests/fixtures/" + name);
}

inline std::vector<std::string> entries_of(const std::string& folder, const std::string& extension) {
  std::vector<std::string> names;
  if (!std::filesystem::exists(folder)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (extension.empty() ? entry.is_directory() : entry.path().extension() == extension)
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Fixtures were made with f32 caches.
inline CacheOptions exact_caches() {
  CacheOptions options;
  options.keys = options.values = options.index_keys = DType::F32;
  return options;
}

class ModelRun {
 public:
  explicit ModelRun(const std::string& path, int threads = 1, ForwardOptions options = {}, RopeOverride rope = {})
      : log_(LogLevel::Error),
        model_(Model::load(path, rope)),
        queue_(threads, log_),
        forward_(model_, queue_, options) {}

  CacheOptions types = exact_caches();  // of the sequences that run() and greedy() make

  const ModelSpec& spec() const { return model_.spec(); }
  const Model& model() const { return model_; }
  Forward& forward() { return forward_; }
  int64_t vocabulary() const { return spec().vocabulary; }

  // Logits [n, V] of every token, in calls of at most `step` tokens; tap [n, residual] when asked for.
  std::vector<float> run(std::span<const int32_t> tokens, Sequence& state, int64_t step = 1 << 20,
                         std::vector<float>* tap = nullptr) {
    const int64_t total = static_cast<int64_t>(tokens.size()), width = spec().residual_width();
    std::vector<float> logits(static_cast<size_t>(total * vocabulary()));
    if (tap != nullptr) tap->resize(static_cast<size_t>(total * width));
    for (int64_t done = 0; done < total;) {
      const int64_t count = std::min(step, total - done);
      const Tensor out = make_f32(logits.data() + done * vocabulary(), {count, vocabulary()});
      const Tensor tapped = tap == nullptr ? Tensor{} : make_f32(tap->data() + done * width, {count, width});
      forward_.run(tokens.subspan(static_cast<size_t>(done), static_cast<size_t>(count)), state, out, tapped);
      done += count;
    }
    return logits;
  }

  std::vector<float> run(std::span<const int32_t> tokens, int64_t step = 1 << 20) {
    Sequence state(spec(), static_cast<int64_t>(tokens.size()), types);
    return run(tokens, state, step);
  }

  // Greedy continuation, ties to the lower id, no end of text. logits: of the step each id was taken from.
  std::vector<int32_t> greedy(std::span<const int32_t> prompt, int count, std::vector<float>* logits = nullptr) {
    Sequence state(spec(), static_cast<int64_t>(prompt.size()) + count, types);
    std::vector<float> all = run(prompt, state);
    std::vector<float> last(all.end() - vocabulary(), all.end());
    std::vector<int32_t> ids;
    for (int i = 0; i < count; ++i) {
      if (logits != nullptr) logits->insert(logits->end(), last.begin(), last.end());
      ids.push_back(argmax(last));
      if (i + 1 < count) forward_.run({&ids.back(), 1}, state, make_f32(last.data(), {1, vocabulary()}));
    }
    return ids;
  }

  static int32_t argmax(std::span<const float> row) {
    return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
  }

 private:
  Log log_;
  Model model_;
  Queue queue_;
  Forward forward_;
};

inline std::vector<int32_t> as_ids(const std::vector<double>& values) { return {values.begin(), values.end()}; }

inline double max_difference(std::span<const float> a, const std::vector<double>& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - b[i]);
    if (!(difference <= worst)) worst = difference;  // NaN becomes the worst
  }
  return worst;
}

}  // namespace strata::test
