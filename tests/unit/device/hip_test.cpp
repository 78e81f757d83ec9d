// The host side of AMD GPUs against a library that records calls (tests/device_stub).
#include "device/hip.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "device_stub/hip_stub.h"

namespace strata {
namespace {

template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ErrorKind::Usage, "none"};
}

bool has(const Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

class Hip : public testing::Test {
 protected:
  void SetUp() override {
    void* library = ::dlopen(STRATA_HIP_STUB, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    stub = reinterpret_cast<stub::State* (*)()>(::dlsym(library, "strata_stub_state"))();
    *stub = stub::State{};
    driver = open({STRATA_HIP_STUB});
    if (open_refused()) GTEST_SKIP() << "this build has no device code for AMD GPUs";
  }
  static std::shared_ptr<const hip::Driver> open(std::vector<std::string> libraries) {
    return hip::open_driver(libraries);
  }
  bool open_refused() {
    try {
      (void)open_hip(0, {}, driver);
      return false;
    } catch (const Error& error) {
      return has(error, "this build has no device code");
    }
  }
  std::shared_ptr<Accelerator> card(double wait_seconds = 5) { return open_hip(0, {wait_seconds}, driver); }

  // An image of the build that AMD GPUs can run, and the name and argument size of a kernel in it.
  static const KernelImage& image() {
    for (const KernelImage* one : kernel_images())
      if (std::string(one->name) == "norm") return *one;
    throw Error(ErrorKind::Device, "there is no norm");
  }
  static constexpr size_t kArguments = 88;
  static void launch(DeviceStream& stream, const LaunchShape& shape = {{3, 2}, {64}, 128}) {
    std::vector<char> arguments(kArguments);
    for (size_t i = 0; i < kArguments; ++i) arguments[i] = static_cast<char>(i);
    stream.launch("norm", image(), "norm_group", shape, arguments.data(), kArguments);
  }

  stub::State* stub = nullptr;
  std::shared_ptr<const hip::Driver> driver;
};

TEST_F(Hip, WithoutALibraryThereIsAReason) {
  const auto none = open({"libno-such-hip.so.1"});
  std::string missing;
  std::vector<uint64_t> free;
  EXPECT_TRUE(list_hip(missing, free, none).empty());
  EXPECT_NE(missing.find("libno-such-hip.so.1"), std::string::npos) << missing;
  EXPECT_EQ(error_of([&] { (void)open_hip(0, {}, none); }).kind(), ErrorKind::Device);
}

TEST_F(Hip, ALibraryWithoutAFunctionNamesIt) {
  EXPECT_NE(open({"libno-such-hip.so.1", STRATA_HIP_STUB_OLD})->missing.find("hipModuleLaunchKernel"),
            std::string::npos);
}

TEST_F(Hip, ALibraryWithoutACardIsNotAnError) {
  stub->fail_init = 100;
  EXPECT_NE(open({STRATA_HIP_STUB})->missing.find("no AMD GPU"), std::string::npos);
  stub->fail_init = 0;
  stub->architectures.clear();
  std::string missing;
  std::vector<uint64_t> free;
  EXPECT_TRUE(list_hip(missing, free, open({STRATA_HIP_STUB})).empty());
  EXPECT_EQ(missing, "the HIP library knows no card");
  EXPECT_TRUE(has(error_of([&] { (void)open_hip(0, {}, driver); }), "knows 0 cards"));
}

TEST_F(Hip, ACardIsDescribed) {
  stub->architectures = {"gfx942:sramecc+:xnack-"};
  const auto info = card()->info();
  EXPECT_EQ(info.name, "hip:0");
  EXPECT_EQ(info.device_class, "gfx942");
  EXPECT_EQ(info.description, "Radeon");
  EXPECT_EQ(info.driver, "HIP 6.3");
  EXPECT_EQ(info.wave, 64);
  EXPECT_EQ(info.multiprocessors, 48);
  EXPECT_EQ(info.shared_bytes, 64u << 10);  // of a block, whatever the library says
}

TEST_F(Hip, AnIntegratedGpuIsNamedAndNotTheDefault) {
  stub->architectures = {"gfx1151", "gfx1100"};
  stub->integrated = {1, 0};
  EXPECT_EQ(card()->info().description, "Radeon (part of the processor)");
  EXPECT_EQ(open_hip(-1, {}, driver)->info().name, "hip:1");
  stub->integrated = {1, 1};
  EXPECT_EQ(open_hip(-1, {}, driver)->info().name, "hip:0");
}

TEST_F(Hip, AnArchitectureWithoutCodeIsRefusedWithWhatThereIs) {
  stub->architectures = {"gfx1030"};
  const Error error = error_of([&] { (void)card(); });
  EXPECT_EQ(error.kind(), ErrorKind::Device);
  EXPECT_TRUE(has(error, "gfx1030") && has(error, "gfx1100, gfx1151, gfx1201, gfx942")) << error.what();
}

TEST_F(Hip, ImagesOfOneVendorAreRefused) {
  const auto device = card();
  EXPECT_EQ(device->refusal(image(), 80), "");
  for (const KernelImage* one : kernel_images())
    if (std::string(one->name) == "matmul_mma") {
      EXPECT_EQ(device->refusal(*one, 80), "this build has no device code of matmul_mma for AMD GPUs");
    }
}

TEST_F(Hip, ALaunchPassesItsShapeAndPackedArguments) {
  const auto device = card();
  const auto stream = device->make_stream();
  launch(*stream);
  launch(*stream, {{0}, {64}, 0});  // no blocks: nothing
  ASSERT_EQ(stub->launches.size(), 1u);
  const stub::Launch& one = stub->launches[0];
  EXPECT_EQ(one.kernel, "norm_group");
  EXPECT_EQ(std::vector<unsigned>(one.grid, one.grid + 3), (std::vector<unsigned>{3, 2, 1}));
  EXPECT_EQ(std::vector<unsigned>(one.block, one.block + 3), (std::vector<unsigned>{64, 1, 1}));
  EXPECT_EQ(one.shared, 128u);
  ASSERT_EQ(one.arguments.size(), kArguments);
  for (size_t i = 0; i < kArguments; ++i) EXPECT_EQ(one.arguments[i], static_cast<char>(i));
}

TEST_F(Hip, AWrongLaunchIsRefusedBeforeTheLibrarySeesIt) {
  const auto stream = card()->make_stream();
  char arguments[kArguments] = {};
  auto refused = [&](const char* kernel, size_t bytes, const LaunchShape& shape) {
    return error_of([&] { stream->launch("norm", image(), kernel, shape, arguments, bytes); });
  };
  EXPECT_TRUE(has(refused("norm_group", 80, {{1}, {64}}), "takes 88 bytes of arguments, it was given 80"));
  EXPECT_TRUE(has(refused("norm_none", 88, {{1}, {64}}), "there is no kernel norm_none"));
  EXPECT_EQ(refused("norm_group", 88, {{1}, {64}, 65u << 10}).kind(), ErrorKind::Argument);
  EXPECT_TRUE(stub->launches.empty());
}

TEST_F(Hip, HostMemoryMayChangeAfterACopy) {
  const auto device = card();
  const auto stream = device->make_stream();
  const DeviceMemory there(device, 16);
  int value = 7, fetched = 0;
  stream->copy(there.data(), &value, sizeof(value));
  value = 8;
  stream->copy(&fetched, there.data(), sizeof(fetched));
  stream->wait();
  EXPECT_EQ(fetched, 7);
  stream->fill(there.data(), 1, 4);
  stream->copy(&fetched, there.data(), sizeof(fetched));
  stream->wait();
  EXPECT_EQ(fetched, 0x01010101);
}

TEST_F(Hip, RegisteredHostMemoryIsReadInPlace) {
  const auto device = card();
  const auto stream = device->make_stream();
  const DeviceMemory there(device, 16);
  int value[4] = {7, 7, 7, 7}, fetched = 0;
  device->register_host(value, sizeof(value));
  stream->copy(there.data(), &value[1], sizeof(int));
  value[1] = 8;  // seen: nothing was kept
  stream->copy(&fetched, there.data(), sizeof(fetched));
  stream->wait();
  EXPECT_EQ(fetched, 8);
  device->unregister_host(value);
  stub->other_addresses = true;
  EXPECT_TRUE(has(error_of([&] { device->register_host(value, sizeof(value)); }), "other addresses"));
  EXPECT_EQ(stub->registrations, 0);
}

TEST_F(Hip, MemoryIsNotTakenToTheLastByte) {
  const auto device = card();
  EXPECT_EQ(device->free_bytes(), stub->free - (uint64_t{256} << 20));
  const Error error = error_of([&] { (void)device->allocate(stub->free); });
  EXPECT_EQ(error.kind(), ErrorKind::Memory);
  EXPECT_TRUE(has(error, std::to_string(stub->free) + " bytes are needed")) << error.what();
  stub->fail_allocate = 2;
  EXPECT_EQ(error_of([&] { (void)device->allocate(4096); }).kind(), ErrorKind::Memory);
  EXPECT_EQ(stub->allocations, 0);
}

TEST_F(Hip, FailuresNameTheOperator) {
  const auto device = card();
  const auto stream = device->make_stream();
  stub->fail_launch = 719;
  const Error at_launch = error_of([&] { launch(*stream); });
  EXPECT_TRUE(has(at_launch, "unspecified launch failure") && has(at_launch, "norm")) << at_launch.what();
  stub->fail_launch = 0;
  launch(*stream);
  stub->fail_stream = 719;
  const Error later = error_of([&] { stream->wait(); });
  EXPECT_EQ(later.kind(), ErrorKind::Device);
  EXPECT_TRUE(has(later, "the last operator was norm")) << later.what();
}

TEST_F(Hip, AWaitEnds) {
  const auto stream = card(0.02)->make_stream();
  launch(*stream);
  stub->never_done = true;
  const Error error = error_of([&] { stream->wait(); });
  EXPECT_TRUE(has(error, "did not finish within") && has(error, "norm")) << error.what();
}

TEST_F(Hip, AnErrorThatSomebodyLeftBehindIsNotTheLaunchs) {
  const auto stream = card()->make_stream();
  stub->left_behind = 1;
  launch(*stream);
  stream->wait();
  EXPECT_EQ(stub->left_behind, 0);
}

TEST_F(Hip, MarksEncloseAPass) {
  const auto stream = card()->make_stream();
  stream->begin_pass();
  launch(*stream);
  EXPECT_TRUE(stub->launches.empty());
  stub->calls.clear();
  const DeviceStream::Marks marks{0, 1};
  stream->end_pass(&marks);
  EXPECT_EQ(stub->calls, (std::vector<std::string>{"hipEventRecord", "hipModuleLaunchKernel", "hipEventRecord"}));
  stream->wait();
  EXPECT_NEAR(stream->seconds(0, 1), 1e-3, 1e-9);  // the stub's float of milliseconds
}

TEST_F(Hip, TimersThatCannotBeBelievedGiveNoTime) {
  const auto stream = card()->make_stream();
  stub->milliseconds = 2e-3f;  // 64 MiB in 2 us: 33 TB/s
  stream->mark(0);
  stream->mark(1);
  stream->wait();
  EXPECT_EQ(stream->seconds(0, 1), 0);
}

TEST_F(Hip, NothingIsLeft) {
  {
    const auto device = card();
    const auto stream = device->make_stream();
    launch(*stream);
    launch(*stream);
    stream->mark(0);
    EXPECT_EQ(stub->modules, 1);
    EXPECT_EQ(std::count(stub->calls.begin(), stub->calls.end(), "hipModuleGetFunction"), 1);
  }
  EXPECT_EQ(stub->modules + stub->streams + stub->events + stub->allocations, 0);
}

}  // namespace
}  // namespace strata
