// A whole model where its operators run on an accelerator: kernels from their source, on the emulation. Weights, caches
// and intermediate values lie in the accelerator's memory; greedy tokens are the CPU's.
#include <gtest/gtest.h>

#include "base/error.h"
#include "device/device.h"
#include "runtime/engine.h"

namespace strata {
namespace {

GenerateResult generate(const std::string& device, bool anchored, HeldSequence* held = nullptr) {
  EngineOptions options;
  options.model = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";
  options.device = device;
  options.caches.anchored = anchored;
  Log log(LogLevel::Error);
  Engine engine(options, log);
  GenerateRequest request;
  request.prompt = {5, 300, 17, 2000, 41};
  request.max_tokens = 2;
  request.ignore_end = true;
  request.sampler.temperature = 0;
  return engine.generate(request, {}, held);
}

TEST(OnAnAccelerator, GreedyTokensAreThoseOfTheCpu) {
  HeldSequence here, there;
  EXPECT_EQ(generate("cpu", false, &here).tokens, generate("emu", false, &there).tokens);
  // What is saved comes back to the host, and has the same extents.
  size_t bytes[2] = {0, 0};
  ArchiveWriter first([&](const void*, size_t count) { bytes[0] += count; });
  ArchiveWriter second([&](const void*, size_t count) { bytes[1] += count; });
  here.sequence->save(first);
  there.sequence->save(second);
  EXPECT_EQ(bytes[0], bytes[1]);
}

TEST(OnAnAccelerator, KeysAndValuesInAFileAreForTheCpu) {
  EngineOptions options;
  options.model = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";
  options.device = "emu";
  options.caches.resident = 64;
  Log log(LogLevel::Error);
  EXPECT_THROW(Engine(options, log), Error);
}

// At load with need and free; at run an error of the one request, after which the engine goes on.
TEST(OnAnAccelerator, MemoryThatRunsOutIsAnErrorAndTheEngineLivesOn) {
  EngineOptions options;
  options.model = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";
  options.micro_batch = 8;
  Log log(LogLevel::Error);
  options.device = "emu:24";  // the weights are 28 MB
  try {
    Engine(options, log);
    FAIL() << "weights without memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Memory);
    EXPECT_NE(std::string(error.what()).find("25165824 are free"), std::string::npos) << error.what();
  }
  options.device = "emu:64";
  Engine engine(options, log);
  GenerateRequest request;
  request.prompt = {5, 300, 17};
  request.max_tokens = 1;
  request.ignore_end = true;
  request.sampler.temperature = 0;
  {
    const auto& accelerator = engine.queue().shared_accelerator();
    const DeviceMemory taken(accelerator, accelerator->free_bytes() - (1 << 20));
    try {
      engine.generate(request);
      FAIL() << "caches without memory";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Memory) << error.what();
    }
  }
  EXPECT_EQ(engine.generate(request).tokens.size(), 1u);
}

}  // namespace
}  // namespace strata
