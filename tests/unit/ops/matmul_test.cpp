#include "ops/matmul/matmul.h"

#include <cstring>
#include <tuple>

#include "device/accelerator.h"
#include "support/ops_test.h"

namespace strata::test {
namespace {

struct Problem {
  Problem(DType dtype, int64_t rows, int64_t in, int64_t out, Random& random)
      : x(random_f32({rows, in}, random, -1, 1, {3})),
        weight(random_weight(dtype, {out, in}, random)),
        bias(random_f32({out}, random)),
        y(DType::F32, {rows, out}, {5}) {}
  MatmulArgs args(bool with_bias) const {
    MatmulArgs result{.x = x, .weight = weight, .bias = {}, .scale = 1, .y = y};
    if (with_bias) {
      result.bias = bias;
      result.scale = 0.37f;
    }
    return result;
  }
  Owned x, weight, bias, y;
};

TEST(Matmul, NanTouchesItsOwnRowAndColumnOnly) {
  Random random(4);
  TestQueue queue;
  const Problem problem(DType::F32, 7, 40, 9, random);
  const MatmulArgs args = problem.args(true);
  problem.x.f({3, 39}) = NAN;
  problem.weight.f({5, 17}) = NAN;
  matmul(queue, args);
  for (int64_t t = 0; t < 7; ++t)
    for (int64_t o = 0; o < 9; ++o) EXPECT_EQ(std::isnan(problem.y.f({t, o})), t == 3 || o == 5);
}

TEST(Matmul, WrongArgumentsAreNamed) {
  Random random(6);
  TestQueue queue;
  const Problem problem(DType::F32, 2, 16, 4, random);
  const MatmulArgs good = problem.args(true);
  auto refused = [&](const char* argument, auto change) {
    MatmulArgs args = good;
    change(args);
    return argument_refused([&] { matmul(queue, args); }, "matmul", argument);
  };
  Owned ints(DType::I32, {2, 16}), short_bias(DType::F32, {3}), narrow(DType::F32, {4, 15}), flat(DType::F32, {16}),
      tall(DType::F32, {3, 4}), wide(DType::F32, {2, 5});
  EXPECT_TRUE(refused("x", [&](MatmulArgs& args) { args.x = ints; }));
  EXPECT_TRUE(refused("x", [&](MatmulArgs& args) { args.x = flat; }));
  EXPECT_TRUE(refused("x", [&](MatmulArgs& args) { args.x = {}; }));
  EXPECT_TRUE(refused("weight", [&](MatmulArgs& args) { args.weight = narrow; }));
  EXPECT_TRUE(refused("weight", [&](MatmulArgs& args) { args.weight = flat; }));
  EXPECT_TRUE(refused("bias", [&](MatmulArgs& args) { args.bias = short_bias; }));
  EXPECT_TRUE(refused("y", [&](MatmulArgs& args) { args.y = tall; }));
  EXPECT_TRUE(refused("y", [&](MatmulArgs& args) { args.y = wide; }));
  EXPECT_TRUE(all_canary(problem.y));
}

// Few rows meet weights in registers, more come in passes, many meet decoded panels: other instructions, the same bits,
// with either instruction set. Whole tiles and parts, one chunk and more, types with and without their own decoder.
TEST(Matmul, OnLanesAnyCountOfRowsHasTheBitsOfTheBatch) {
  if (!cpu_features().has(CpuIsa::Avx2)) GTEST_SKIP() << "this processor has no AVX2";
  Random random(8);
  for (const auto& [type, in, out] : {std::tuple{DType::Q4_K, 2304, 53},
                                      {DType::Q8_0, 1088, 29},
                                      {DType::Q4_0, 2048, 24},
                                      {DType::IQ3_S, 256, 31},
                                      {DType::Q5_0, 1056, 26},
                                      {DType::F16, 1024, 25},
                                      {DType::F32, 1031, 27}}) {
    const Problem problem(type, 50, in, out, random);
    const MatmulArgs args = problem.args(true);
    TestQueue wide(3);
    wide.queue.request_arm("matmul", "avx2");
    matmul(wide, args);
    for (const char* arm : {"avx2", "avx512"}) {
      if (std::string(arm) == "avx512" && !cpu_features().has(CpuIsa::Avx512)) continue;
      TestQueue queue;
      queue.queue.strict_arms = true;
      queue.queue.request_arm("matmul", arm);
      for (int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 50}) {
        const Owned y(DType::F32, {rows, out}, {3});
        MatmulArgs some = args;
        some.x = args.x.slice(50 - rows, rows);
        some.y = y;
        matmul(queue, some);
        EXPECT_TRUE(same_bits(y, args.y.slice(50 - rows, rows))) << to_string(type) << " " << arm << " " << rows;
        EXPECT_TRUE(y.gaps_intact());
      }
    }
  }
}

// Rounded rows: short weight rows side by side, ends of rows that are no whole piece, in place and copied, panels. What
// lies behind the end of a weight row is the next one, here one whose scale is no number.
TEST(Matmul, RoundedAnyCountOfRowsHasTheBitsOfTheBatch) {
  if (!cpu_features().has(CpuIsa::Avx2)) GTEST_SKIP() << "this processor has no AVX2";
  Random random(9);
  for (const DType type : {DType::Q8_0, DType::Q4_0, DType::IQ4_NL, DType::MXFP4})
    for (const int64_t in : {32, 64, 96, 128, 160, 256, 288, 320, 480, 512, 544, 768, 1056}) {
      const int64_t out = 101, broken = 17;  // weight rows of more than one turn
      const Problem problem(type, 18, in, out, random);
      if (type != DType::MXFP4) std::memset((problem.weight.t().row<void>(broken)), 0x7e, 2);
      MatmulArgs args = problem.args(true);
      args.activations = Activations::Int8;
      for (const char* arm : {"avx2-int8", "avx512-vnni"}) {
        if (std::string(arm) == "avx512-vnni" && !cpu_features().has(CpuIsa::Avx512Vnni)) continue;
        TestQueue queue;
        queue.queue.strict_arms = true;
        queue.queue.request_arm("matmul", arm);
        matmul(queue, args);
        for (int64_t t = 0; t < 18; ++t)
          for (int64_t o = 0; o < out; ++o)
            ASSERT_EQ(std::isnan(problem.y.f({t, o})), type != DType::MXFP4 && o == broken)
                << in << " " << arm << " " << o;
        for (int64_t rows : {1, 2, 3, 8, 9, 16}) {
          const Owned y(DType::F32, {rows, out}, {3});
          MatmulArgs some = args;
          some.x = args.x.slice(18 - rows, rows);
          some.y = y;
          matmul(queue, some);
          EXPECT_TRUE(same_bits(y, args.y.slice(18 - rows, rows)))
              << to_string(type) << " " << in << " " << arm << " " << rows;
          EXPECT_TRUE(y.gaps_intact());
        }
      }
    }
}

// Lattices are looked up in words by one arm and in bytes by the other, and x lies in another order: the same levels
// give the same sums. Few rows and panels, an odd and an even number of pieces of 256.
TEST(Matmul, LatticesHaveTheSameBitsHoweverTheyAreLookedUp) {
  if (!cpu_features().has(CpuIsa::Avx512Vbmi)) GTEST_SKIP() << "this processor has no AVX-512 VBMI with GFNI";
  Random random(31);
  for (DType type :
       {DType::IQ2_XXS, DType::IQ2_XS, DType::IQ2_S, DType::IQ3_XXS, DType::IQ3_S, DType::Q2_0, DType::Q6_K})
    for (int64_t in : {256, 512, 1792})
      for (int64_t rows : {1, 3, 8, 21}) {
        const Problem problem(type, rows, in, 37, random);
        Owned expected(DType::F32, {rows, 37});
        MatmulArgs args = problem.args(rows % 2 == 0);
        args.activations = Activations::Int8;
        for (const char* arm : {"avx512-vnni", "avx512-vbmi"}) {
          TestQueue queue(2);
          queue.queue.strict_arms = true;
          queue.queue.request_arm("matmul", arm);
          args.y = std::string(arm) == "avx512-vnni" ? expected : problem.y;
          matmul(queue, args);
        }
        EXPECT_TRUE(same_bits(expected, problem.y)) << to_string(type) << " " << in << " " << rows;
      }
}

// A row alone streams through several tiles of a block; among others it does not. Whole tiles and a part of one, rows
// that begin at multiples of 16 bytes and of 2.
TEST(Matmul, OnAnAcceleratorARowAloneHasTheBitsOfTheBatch) {
  Random random(7);
  Log log(LogLevel::Error);
  for (const auto& [type, in, out] : {std::tuple{DType::Q4_K, 2560, 200},
                                      {DType::Q8_0, 1024, 145},
                                      {DType::Q6_K, 2304, 130},
                                      {DType::BF16, 1280, 81}}) {
    Queue queue(open_accelerator("emu"), log);
    const Problem problem(type, 60, in, out, random);
    const MatmulArgs args = problem.args(true);
    matmul(queue, args);
    for (int64_t rows : {1, 2, 8, 11}) {
      const Owned y(DType::F32, {rows, out}, {3});
      MatmulArgs some = args;
      some.x = args.x.slice(60 - rows, rows);
      some.y = y;
      matmul(queue, some);
      queue.stream().wait();
      EXPECT_TRUE(same_bits(y, args.y.slice(60 - rows, rows))) << static_cast<int>(type) << ", " << rows << " rows";
      EXPECT_TRUE(y.gaps_intact());
    }
    for (const ArmChoice& choice : queue.arms()) EXPECT_EQ(choice.ran, "mma");
  }
}

}  // namespace
}  // namespace strata::test
