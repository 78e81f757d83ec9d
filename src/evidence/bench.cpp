#include "evidence/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "evidence/parity_check.h"

namespace strata {
namespace {

double seconds_of(const BenchShape& shape, Queue& queue, int64_t repetitions, int& copy) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < repetitions; ++i) {
    shape.run(queue, copy);
    copy = (copy + 1) % shape.copies;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<uint32_t> words_of_all(const std::vector<Tensor>& outputs) {
  std::vector<uint32_t> words;
  for (const Tensor& output : outputs) {
    const std::vector<uint32_t> own = words_of(output);
    words.insert(words.end(), own.begin(), own.end());
  }
  return words;
}

// |a - b| in bounds; equal bits and equal NaNs differ by nothing.
void compare(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, const std::vector<double>& bound,
             BenchResult& result) {
  if (bound.size() != a.size()) result.difference = -1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    ++result.differing;
    if (bound.size() != a.size()) continue;
    float x, y;
    std::memcpy(&x, &a[i], sizeof x);
    std::memcpy(&y, &b[i], sizeof y);
    const double distance = std::fabs(static_cast<double>(x) - static_cast<double>(y));
    result.difference = std::max(result.difference, bound[i] > 0 ? distance / bound[i] : INFINITY);
  }
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

class Bench {
 public:
  Bench(const std::string& op, const std::vector<ArmInfo>& arms, BenchShape& shape, const Ceilings& ceilings,
        const BenchOptions& options)
      : shape_(shape), ceilings_(ceilings), options_(options), log_(LogLevel::Error), queue_(options.threads, log_) {
    queue_.cpu = options.cpu;
    queue_.strict_arms = true;
    for (const ArmInfo& arm : arms) {
      BenchResult result;
      result.op = op;
      result.arm = arm.name;
      result.shape = shape.name;
      result.refusal = queue_.cpu.refusal(arm.isa);
      if (result.refusal.empty()) result.refusal = shape.refusal(arm.name);
      results_.push_back(result);
    }
    samples_.resize(results_.size());
  }

  std::vector<BenchResult> run() {
    for (size_t i = 0; i < results_.size(); ++i)
      if (results_[i].refusal.empty()) warm_up(i);
    for (int round = 0; round < options_.samples; ++round) {
      if (options_.cancelled && options_.cancelled()) break;
      for (size_t k = 0; k < results_.size(); ++k) {
        const size_t i = round % 2 == 0 ? k : results_.size() - 1 - k;
        if (results_[i].refusal.empty()) sample(i);
      }
    }
    for (size_t i = 0; i < results_.size(); ++i)
      if (!samples_[i].empty()) summarise(i);
    return std::move(results_);
  }

 private:
  void select(size_t i) { queue_.request_arm(results_[i].op, results_[i].arm); }

  void warm_up(size_t i) {
    BenchResult& result = results_[i];
    select(i);
    shape_.run(queue_, 0);
    const std::vector<uint32_t> words = words_of_all(shape_.outputs);
    if (first_.empty()) first_ = words;
    compare(first_, words, shape_.bound, result);
    int copy = 0;
    double fastest = INFINITY;
    for (int n = 0; n < options_.warmups; ++n) fastest = std::min(fastest, seconds_of(shape_, queue_, 1, copy));
    result.repetitions = static_cast<int>(std::clamp(std::ceil(options_.sample_seconds / fastest), 1.0, 1e6));
  }

  void sample(size_t i) {
    select(i);
    int copy = 0;
    seconds_of(shape_, queue_, 1, copy);  // after another arm: its code and its inputs
    samples_[i].push_back(seconds_of(shape_, queue_, results_[i].repetitions, copy) / results_[i].repetitions);
  }

  void summarise(size_t i) {
    BenchResult& result = results_[i];
    const std::vector<double>& times = samples_[i];
    result.samples = static_cast<int>(times.size());
    result.median = median_of(times);
    result.fastest = *std::min_element(times.begin(), times.end());
    result.slowest = *std::max_element(times.begin(), times.end());
    result.bytes_per_second = shape_.bytes / result.median;
    result.operations_per_second = shape_.operations / result.median;
    const double memory = shape_.bytes / ceilings_.bandwidth();
    const double compute = shape_.operations / ceilings_.peak(shape_.kind);
    result.memory_bound = memory > compute;
    result.share = std::max(memory, compute) / result.median;
  }

  BenchShape& shape_;
  const Ceilings& ceilings_;
  const BenchOptions& options_;
  Log log_;
  Queue queue_;
  std::vector<BenchResult> results_;
  std::vector<std::vector<double>> samples_;
  std::vector<uint32_t> first_;
};

}  // namespace

std::vector<BenchResult> run_bench(const std::string& op, const std::vector<ArmInfo>& arms, BenchShape& shape,
                                   const Ceilings& ceilings, const BenchOptions& options) {
  return Bench(op, arms, shape, ceilings, options).run();
}

int copies_past_caches(double bytes) {
  constexpr double kCaches = 192.0 * (1 << 20);  // what the bandwidth ceilings are measured on
  return static_cast<int>(std::clamp(std::ceil(kCaches / std::max(bytes, 1.0)), 1.0, 16384.0));
}

}  // namespace strata
