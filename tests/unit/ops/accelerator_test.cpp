// What operators rely on of an accelerator: on the emulation always, on a card where there is one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "ops/norm/norm.h"

namespace strata {
namespace {

class AcceleratorTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      accelerator_ = open_accelerator(GetParam());
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    queue_ = std::make_unique<Queue>(accelerator_, log_);
  }

  // A tensor in device memory; `values` are copied in.
  Tensor tensor(const std::vector<float>& values) {
    memory_.emplace_back(accelerator_, values.size() * sizeof(float));
    queue_->stream().copy(memory_.back().data(), values.data(), values.size() * sizeof(float));
    return make_f32(static_cast<float*>(memory_.back().data()), {static_cast<int64_t>(values.size())});
  }
  std::vector<float> read(const Tensor& x) {
    std::vector<float> values(static_cast<size_t>(x.elements()));
    queue_->stream().copy(values.data(), x.data, values.size() * sizeof(float));
    queue_->stream().wait();
    return values;
  }
  static Tensor rows(const Tensor& x, int64_t count) { return make_f32(x.f32(), {count, 1, x.elements() / count}); }

  Log log_{LogLevel::Error};
  std::shared_ptr<Accelerator> accelerator_;
  std::unique_ptr<Queue> queue_;
  std::vector<DeviceMemory> memory_;
};

std::vector<float> ramp(size_t count, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = step * static_cast<float>(i + 1);
  return values;
}

// rows of x over their root mean square
std::vector<float> expected(const std::vector<float>& x, size_t count, float eps) {
  const size_t width = x.size() / count;
  std::vector<float> y(x.size());
  for (size_t t = 0; t < count; ++t) {
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += double{x[t * width + i]} * double{x[t * width + i]};
    const double root = std::sqrt(squares / static_cast<double>(width) + double{eps});
    for (size_t i = 0; i < width; ++i) y[t * width + i] = static_cast<float>(double{x[t * width + i]} / root);
  }
  return y;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  // norm's bound for a width of 96 is 11 roundings of 2^-24: 7e-7 of an element, which are below 8 here.
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 6e-6) << i;
}

TEST_P(AcceleratorTest, CopiesAndFills) {
  const std::vector<float> values = ramp(1000, 0.25f);
  const Tensor a = tensor(values), b = tensor(std::vector<float>(1000));
  queue_->stream().copy(b.data, a.data, 4000);
  EXPECT_EQ(read(b), values);
  queue_->stream().fill(b.data, 0, 2000);
  const std::vector<float> half = read(b);
  EXPECT_EQ(half[499], 0);
  EXPECT_EQ(half[500], values[500]);
}

// The same pass again, then with other sizes and addresses, then one of another length: the graph is kept, patched,
// made anew.
TEST_P(AcceleratorTest, PassesAreTheirLaunches) {
  const Tensor weight = tensor(std::vector<float>(96, 1.0f));
  for (const size_t count : {4, 4, 7, 2, 2}) {
    const std::vector<float> values = ramp(count * 96, count == 2 ? -0.5f : 1.5f);
    const Tensor x = tensor(values), y = tensor(std::vector<float>(values.size())),
                 z = tensor(std::vector<float>(values.size()));
    const auto n = static_cast<int64_t>(count);
    queue_->stream().begin_pass();
    norm(*queue_, {rows(x, n), weight, 1e-6f, rows(y, n)});
    norm(*queue_, {rows(y, n), weight, 1e-6f, rows(z, n)});
    if (count == 7) norm(*queue_, {rows(z, n), weight, 1e-6f, rows(z, n)});
    queue_->stream().end_pass();
    expect_near(read(y), expected(values, count, 1e-6f));
    expect_near(read(z), expected(expected(values, count, 1e-6f), count, 1e-6f));
  }
}

// Copies inside a pass keep their place.
TEST_P(AcceleratorTest, PassesKeepTheOrderOfCopies) {
  const std::vector<float> values = ramp(96, 1);
  const Tensor weight = tensor(std::vector<float>(96, 1.0f)), x = tensor(values), y = tensor(std::vector<float>(96));
  queue_->stream().begin_pass();
  norm(*queue_, {rows(x, 1), weight, 1e-6f, rows(x, 1)});
  queue_->stream().copy(y.data, x.data, 96 * sizeof(float));
  queue_->stream().fill(x.data, 0, 96 * sizeof(float));
  norm(*queue_, {rows(x, 1), weight, 1e-6f, rows(x, 1)});
  queue_->stream().end_pass();
  expect_near(read(y), expected(values, 1, 1e-6f));
  EXPECT_EQ(read(x), std::vector<float>(96, 0.0f));
}

TEST_P(AcceleratorTest, RegisteredHostMemoryIsReadAndWritten) {
  alignas(4096) static float memory[4096];
  accelerator_->register_host(memory, sizeof(memory));
  for (int i = 0; i < 96; ++i) memory[i] = 2, memory[1000 + i] = 1;
  norm(*queue_,
       {make_f32(memory, {1, 1, 96}), make_f32(memory + 1000, {96}), 1e-6f, make_f32(memory + 2000, {1, 1, 96})});
  queue_->stream().wait();
  EXPECT_NEAR(memory[2000], 1, 1e-6);
  EXPECT_EQ(memory[2096], 0);
  accelerator_->unregister_host(memory);
}

TEST_P(AcceleratorTest, TooMuchMemoryIsOneError) {
  try {
    const DeviceMemory memory(accelerator_, uint64_t{1} << 46);
    FAIL() << "64 TiB were given";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Memory);
  }
  EXPECT_EQ(read(tensor({1, 2, 3})), (std::vector<float>{1, 2, 3}));  // life goes on
}

TEST_P(AcceleratorTest, ImpossibleLaunchesAreRefusedBefore) {
  struct Nothing {
    int64_t unused = 0;
  };
  static const KernelImage none{"none", {}, {}, {}};
  auto refused = [&](const LaunchShape& shape) {
    try {
      queue_->launch("norm", none, "no_kernel", shape, Nothing{});
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::Usage;
  };
  EXPECT_EQ(refused({{1, 65536}, {32}}), ErrorKind::Argument);
  EXPECT_EQ(refused({{int64_t{1} << 31}, {32}}), ErrorKind::Argument);
  EXPECT_EQ(refused({{1}, {2048}}), ErrorKind::Argument);
  EXPECT_EQ(refused({{1}, {33}}), ErrorKind::Argument);
  EXPECT_EQ(refused({{1}, {32}, 1u << 20}), ErrorKind::Argument);
  EXPECT_EQ(refused({{1}, {32}}), ErrorKind::Device);  // there is no such kernel
}

INSTANTIATE_TEST_SUITE_P(Devices, AcceleratorTest, testing::Values("emu", "cuda:0"), [](const auto& instance) {
  return std::string(instance.param) == "emu" ? "Emulation" : "Cuda";
});

TEST(Accelerator, UnknownNamesAreRefused) {
  for (const char* name : {"gpu", "cuda:x", "cuda:", "cuda:99999999999", ""})
    EXPECT_THROW(open_accelerator(name), Error);
}

TEST(Accelerator, TheCpuAndAcceleratorsDoNotRunEachOthersArms) {
  Log log(LogLevel::Error);
  Queue cpu(1, log), emulation(open_accelerator("emu"), log);
  std::vector<float> x(32, 1), w(32, 1), y(32);
  const NormArgs args{make_f32(x.data(), {1, 1, 32}), make_f32(w.data(), {32}), 1e-6f, make_f32(y.data(), {1, 1, 32})};
  norm(cpu, args);
  norm(emulation, args);
  EXPECT_EQ(emulation.arm("norm").ran, "block");
  EXPECT_NE(cpu.arm("norm").ran, "block");
  cpu.strict_arms = true;
  cpu.request_arm("norm", "block");
  EXPECT_THROW(norm(cpu, args), Error);
}

}  // namespace
}  // namespace strata
