#include "evidence/device_ceilings.h"

#include <vector>

#include "evidence/device_ceiling_arguments.h"
#include "evidence/statistics.h"

namespace strata {

extern const KernelImage kernel_image_device_ceilings, kernel_image_device_ceilings_mma;

namespace {

class Measure {
 public:
  explicit Measure(Queue& queue)
      : queue_(queue),
        from_(queue.shared_accelerator(), kBytes),
        to_(queue.shared_accelerator(), kBytes),
        blocks_(int64_t{queue.accelerator()->info().multiprocessors} * 8) {
    queue.stream().fill(from_.data(), 1, kBytes);
    queue.stream().fill(to_.data(), 2, kBytes);
  }

  // Units a second of a kernel that does `units` of them.
  double rate(const KernelImage& image, const char* kernel, double units, int64_t turns) {
    const CeilingKernel arguments{from_.data(), to_.data(), static_cast<int64_t>(kBytes / 16), turns};
    std::vector<double> seconds;
    for (int i = 0; i < kSamples; ++i) {
      queue_.stream().begin_pass();
      queue_.launch("ceilings", image, kernel, {{blocks_}, {kThreads}}, arguments);
      const DeviceStream::Marks marks{0, 1};
      queue_.stream().end_pass(&marks);
      queue_.stream().wait();
      if (i > 0) seconds.push_back(queue_.stream().seconds(0, 1));  // the first loads the code
    }
    const double middle = median(seconds);
    return middle > 0 ? units / middle : 0;
  }
  double waves() const { return static_cast<double>(blocks_) * kThreads / queue_.accelerator()->info().wave; }
  static constexpr double bytes() { return static_cast<double>(kBytes); }

 private:
  static constexpr uint64_t kBytes = uint64_t{1} << 30;
  static constexpr int64_t kThreads = 256;
  static constexpr int kSamples = 8;

  Queue& queue_;
  DeviceMemory from_, to_;
  int64_t blocks_;
};

}  // namespace

Ceilings measure_device_ceilings(Queue& queue) {
  constexpr int64_t kTurns = 4096;
  constexpr double kChains = 8;  // independent sums of a wave
  Measure measure(queue);
  const std::string& device_class = queue.accelerator()->info().device_class;
  const int wave = queue.accelerator()->info().wave;
  const double issued = measure.waves() * kTurns * kChains;
  Ceilings ceilings;
  const KernelImage &plain = kernel_image_device_ceilings, &matrix = kernel_image_device_ceilings_mma;
  ceilings.copy_bytes = measure.rate(plain, "ceiling_copy", 2 * Measure::bytes(), 0);
  ceilings.read_bytes = measure.rate(plain, "ceiling_read", Measure::bytes(), 0);
  ceilings.f32 = measure.rate(plain, "ceiling_f32", issued * wave * 2, kTurns);
  ceilings.list = {{"copy", device_class, ceilings.copy_bytes, true},
                   {"read", device_class, ceilings.read_bytes, true},
                   {"f32 multiply-add", device_class, ceilings.f32, false}};
  if (!queue.accelerator()->refusal(matrix, 80).empty()) return ceilings;
  ceilings.bf16 = measure.rate(matrix, "ceiling_bf16", issued * 2 * 16 * 8 * 16, kTurns);
  ceilings.int8 = measure.rate(matrix, "ceiling_int8", issued * 2 * 16 * 8 * 32, kTurns);
  ceilings.list.push_back({"bf16 mma", device_class, ceilings.bf16, false});
  ceilings.list.push_back({"int8 mma", device_class, ceilings.int8, false});
  return ceilings;
}

}  // namespace strata
