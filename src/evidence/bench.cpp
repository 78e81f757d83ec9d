#include "evidence/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "evidence/parity_check.h"
#include "evidence/statistics.h"

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

Queue make_queue(const BenchOptions& options, Log& log) {
  return options.accelerator != nullptr ? Queue(options.accelerator, log) : Queue(options.threads, log);
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

class Bench {
 public:
  Bench(const std::string& op, const std::vector<ArmInfo>& arms, BenchShape& shape, const Ceilings& ceilings,
        const BenchOptions& options)
      : shape_(shape),
        ceilings_(ceilings),
        options_(options),
        log_(LogLevel::Error),
        queue_(make_queue(options, log_)) {
    queue_.cpu = options.cpu;
    if (on_device()) shape.to_device(queue_);
    queue_.strict_arms = true;
    for (const ArmInfo& arm : arms) {
      BenchResult result;
      result.op = op;
      result.arm = arm.name;
      result.shape = shape.name;
      result.refusal = device_refusal(queue_, arm.isa, arm.image, arm.arch);
      if (result.refusal.empty()) result.refusal = shape.refusal(arm.name);
      results_.push_back(result);
    }
    if (options.default_arm) keep_default(arms);
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
  // Of arms that cannot run here the last stays, with its reason.
  void keep_default(const std::vector<ArmInfo>& arms) {
    for (size_t i = 0; i < arms.size(); ++i)
      if (!arms[i].opt_in && (results_[i].refusal.empty() || i + 1 == arms.size())) {
        results_ = {results_[i]};
        return;
      }
  }

  bool on_device() const { return options_.accelerator != nullptr; }

  // As one graph on a device, by its clock.
  double seconds_of_calls(int64_t repetitions, int& copy) {
    if (!on_device()) return seconds_of(shape_, queue_, repetitions, copy);
    DeviceStream& stream = queue_.stream();
    stream.begin_pass();
    for (int64_t i = 0; i < repetitions; ++i) {
      shape_.run(queue_, copy);
      copy = (copy + 1) % shape_.copies;
    }
    const DeviceStream::Marks marks{0, 1};
    stream.end_pass(&marks);
    stream.wait();
    return stream.seconds(0, 1);
  }

  void select(size_t i) { queue_.request_arm(results_[i].op, results_[i].arm); }

  void warm_up(size_t i) {
    BenchResult& result = results_[i];
    select(i);
    shape_.run(queue_, 0);
    if (on_device()) shape_.from_device(queue_);
    const std::vector<uint32_t> words = words_of_all(shape_.outputs);
    if (first_.empty()) first_ = words;
    compare(first_, words, shape_.bound, result);
    int copy = 0;
    double fastest = INFINITY;
    for (int n = 0; n < options_.warmups; ++n) fastest = std::min(fastest, seconds_of_calls(1, copy));
    result.repetitions =
        static_cast<int>(std::clamp(std::ceil(options_.sample_seconds / fastest), 1.0, on_device() ? 2000.0 : 1e6));
  }

  void sample(size_t i) {
    select(i);
    int copy = 0;
    // After another arm: its code and its inputs; on a device also its graph.
    seconds_of_calls(on_device() ? results_[i].repetitions : 1, copy);
    if (on_device()) copy = 0;
    samples_[i].push_back(seconds_of_calls(results_[i].repetitions, copy) / results_[i].repetitions);
  }

  void summarise(size_t i) {
    BenchResult& result = results_[i];
    const std::vector<double>& times = samples_[i];
    result.samples = static_cast<int>(times.size());
    result.median = median(times);
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

void DeviceCopy::make(Queue& queue, const CaseMemory& memory) {
  for (const auto& [host, bytes] : memory.ranges())
    ranges_.push_back({static_cast<char*>(host), bytes, DeviceMemory(queue.shared_accelerator(), bytes)});
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.host < b.host; });
  for (const Range& range : ranges_) {
    const auto& tables = memory.tables();
    const bool table = std::find(tables.begin(), tables.end(), range.host) != tables.end();
    std::vector<char> words;
    if (table) {
      words.assign(range.host, range.host + range.bytes);
      relocate(words.data(), words.size());
    }
    queue.stream().copy(range.device.data(), table ? words.data() : range.host, range.bytes);
    queue.stream().wait();
  }
}

void DeviceCopy::relocate(void* arguments, size_t bytes) const {
  auto* words = static_cast<char*>(arguments);
  for (size_t i = 0; i + sizeof(char*) <= bytes; i += sizeof(char*)) {
    char* pointer = nullptr;
    std::memcpy(&pointer, words + i, sizeof(pointer));
    auto after = std::upper_bound(ranges_.begin(), ranges_.end(), pointer,
                                  [](const char* address, const Range& range) { return address < range.host; });
    if (after == ranges_.begin()) continue;
    const Range& range = *std::prev(after);
    if (pointer >= range.host + range.bytes) continue;
    pointer = static_cast<char*>(range.device.data()) + (pointer - range.host);
    std::memcpy(words + i, &pointer, sizeof(pointer));
  }
}

void DeviceCopy::fetch(Queue& queue) const {
  for (const Range& range : ranges_) queue.stream().copy(range.host, range.device.data(), range.bytes);
  queue.stream().wait();
}

int copies_past_caches(double bytes) {
  constexpr double kCaches = 192.0 * (1 << 20);  // what the bandwidth ceilings are measured on
  return static_cast<int>(std::clamp(std::ceil(kCaches / std::max(bytes, 1.0)), 1.0, 16384.0));
}

}  // namespace strata
