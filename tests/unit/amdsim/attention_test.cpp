// Attention on the interpreter, splits and their merge, gives the bits of the emulation.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/amdsim/decoder.h"
#include "evidence/parity_case.h"
#include "ops/registry.h"

namespace strata::test {
namespace {

// The bytes of the outputs of a case, row by row.
std::vector<char> outputs_on(const std::string& device, ParityCase test) {
  const std::shared_ptr<Accelerator> accelerator = open_accelerator(device);
  for (const auto& [memory, bytes] : test.ranges) accelerator->register_host(memory, bytes);
  Log log(LogLevel::Error);
  {
    Queue queue(accelerator, log);
    queue.request_arm("attention", "fma");
    queue.request_arm("sparse_attention", "fma");
    test.run(queue);
    queue.space().wait();
  }
  for (const auto& [memory, bytes] : test.ranges) accelerator->unregister_host(memory);
  std::vector<char> bytes;
  for (const ParityOutput& output : test.outputs)
    for_each_row(output.tensor, [&](void* row) {
      const auto size = static_cast<size_t>(4 * output.tensor.extent(output.tensor.rank - 1));
      bytes.insert(bytes.end(), static_cast<char*>(row), static_cast<char*>(row) + size);
    });
  return bytes;
}

TEST(AmdAttention, GivesTheBitsOfTheEmulation) {
  if (!amdsim::decoder_missing().empty()) GTEST_SKIP() << amdsim::decoder_missing();
  for (const OperatorEvidence& evidence : operator_evidence()) {
    if (evidence.op != "attention" && evidence.op != "sparse_attention") continue;
    int compared = 0;
    const auto makers = evidence.cases(3);
    for (size_t i = 0; i < makers.size() && compared < 20; ++i) {
      int64_t elements = 0;
      const ParityCase test = makers[i]();
      for (const ParityOutput& output : test.outputs) elements += output.tensor.elements();
      if (elements == 0 || elements > 4096 || !test.refusal("fma").empty()) continue;
      EXPECT_EQ(outputs_on("emu", makers[i]()), outputs_on("sim:gfx1100", makers[i]()))
          << evidence.op << ": " << test.name;
      ++compared;
    }
    EXPECT_EQ(compared, 20) << evidence.op;
  }
}

}  // namespace
}  // namespace strata::test
