// Dequantisation in the machine code of every target: (negative scale) · (+0) is -0, which a compiler may fold to +0.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/half.h"
#include "base/random.h"
#include "device/amdsim/decoder.h"
#include "evidence/parity_case.h"
#include "gguf/quant.h"
#include "ops/embedding/embedding.h"
#include "unit/amdsim/mutants.h"

namespace strata::amdsim {
namespace {

constexpr uint32_t kMinusZero = 0x80000000u;

// Bits of a table's rows as the device decodes them.
std::vector<uint32_t> decoded(const std::shared_ptr<Accelerator>& device, CaseMemory& memory, const Tensor& table) {
  EmbeddingArgs args;
  std::vector<int32_t> ids;
  for (int32_t row = 0; row < table.extent(0); ++row) ids.push_back(row);
  args.ids = memory.i32(ids);
  args.table = table;
  args.y = memory.tensor(DType::F32, {table.extent(0), 1, table.extent(1)});
  for (const auto& [at, bytes] : memory.ranges()) device->register_host(at, bytes);
  Log log(LogLevel::Error);
  Queue queue(device, log);
  embedding(queue, args);
  queue.stream().wait();
  for (const auto& [at, bytes] : memory.ranges()) device->unregister_host(at);
  const auto* bits = reinterpret_cast<const uint32_t*>(args.y.data);
  return {bits, bits + table.elements()};
}

class AmdSimDecode : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!decoder_missing().empty()) GTEST_SKIP() << decoder_missing();
    if (shipped_code("embedding", GetParam()).empty()) GTEST_SKIP() << "no code objects in this build";
    device = open_simulation(GetParam());
  }
  std::shared_ptr<Accelerator> device;
};

TEST_P(AmdSimDecode, ANegativeScaleTimesZeroIsMinusZero) {
  // Scale, then 32 signed bytes; scale, then 32 nibbles of which 8 stands for 0.
  struct Zeros {
    DType type;
    int byte;
  };
  for (const Zeros& zeros : {Zeros{DType::Q8_0, 0}, Zeros{DType::Q4_0, 0x88}}) {
    CaseMemory memory;
    const Tensor table = memory.tensor(zeros.type, {3, 64});
    const float scales[] = {-1.5f, 1.5f, -0x1p-20f};  // the last is subnormal in f16
    for (int64_t row = 0; row < 3; ++row) {
      const auto bytes = static_cast<size_t>(info(zeros.type).block_bytes);
      auto* block = static_cast<unsigned char*>(table[row].data);
      for (int b = 0; b < 2; ++b, block += bytes) {
        const uint16_t scale = f32_to_f16(scales[row]);
        std::fill_n(block, bytes, static_cast<unsigned char>(zeros.byte));
        std::memcpy(block, &scale, sizeof(scale));
      }
    }
    const std::vector<uint32_t> bits = decoded(device, memory, table);
    for (size_t i = 0; i < bits.size(); ++i)
      EXPECT_EQ(bits[i], i / 64 == 1 ? 0u : kMinusZero) << to_string(zeros.type) << " element " << i;
  }
}

// Every format, any bits: those of the CPU, of which some are -0.
TEST_P(AmdSimDecode, ZerosOfAllFormatsKeepTheirSigns) {
  size_t zeros = 0;
  for (const DTypeInfo& type : all_dtypes()) {
    if (!type.quantised) continue;
    CaseMemory memory;
    Random random(11);
    const Tensor table = memory.tensor(type.type, {8, 512});
    auto* bytes = static_cast<unsigned char*>(table.data);
    const auto size = static_cast<size_t>(table.elements() / type.block_elements * type.block_bytes);
    for (size_t i = 0; i < size; ++i)  // half of them zeros, so that quants and scales of blocks are
      bytes[i] = random.below(2) == 0 ? 0 : static_cast<unsigned char>(random.below(256));
    std::vector<float> wanted(static_cast<size_t>(table.elements()));
    gguf::decoder(type.type)(table.data, wanted.data(), table.elements());
    const std::vector<uint32_t> bits = decoded(device, memory, table);
    for (size_t i = 0; i < bits.size(); ++i) {
      const auto expected = std::bit_cast<uint32_t>(wanted[i]);
      zeros += expected == kMinusZero;
      if ((expected & 0x7fffffffu) > 0x7f800000u) continue;  // NaN: any
      ASSERT_EQ(bits[i], expected) << to_string(type.type) << " element " << i;
    }
  }
  EXPECT_GT(zeros, 1000u);
}

INSTANTIATE_TEST_SUITE_P(Targets, AmdSimDecode, testing::Values("gfx1100", "gfx1151", "gfx1201", "gfx942"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace strata::amdsim
