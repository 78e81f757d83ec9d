#include "ops/hyper_connection/hyper_connection.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct ReadCase {
  ReadCase(int64_t rows, int64_t streams, int64_t hidden, float size = 8, uint64_t seed = 1)
      : random(seed),
        normed(random_f32({rows, streams, hidden}, random, -3, 3)),
        mix(random_f32({rows, streams, hidden}, random, -size, size)),
        u(DType::F32, {rows, hidden}, {3}),
        args{normed, mix, u} {}
  Random random;
  Owned normed, mix, u;
  HyperReadArgs args;
};

struct WriteCase {
  WriteCase(int64_t rows, int64_t streams, int64_t hidden, float size = 8, uint64_t seed = 1)
      : random(seed),
        block(random_f32({rows, hidden}, random, -3, 3)),
        inject(random_f32({rows, streams}, random, -size, size)),
        x(random_f32({rows, streams, hidden}, random, -2, 2)),
        args{block, inject, x} {}
  Random random;
  Owned block, inject, x;
  HyperWriteArgs args;
};

void run(const HyperReadArgs& args, int threads = 1) {
  TestQueue queue(threads);
  hyper_read(queue, args);
}
void run(const HyperWriteArgs& args, int threads = 1) {
  TestQueue queue(threads);
  hyper_write(queue, args);
}

TEST(HyperRead, MatchesTheOracle) {
  // Each term: sigmoid 6 u (exp 4, addition, division), product 1; n - 1 additions in any order; 2 for the mean.
  // Below -87.3 a gate may be 0 instead of up to 1.2e-38.
  uint64_t seed = 1;
  for (int64_t rows : {1, 6})
    for (int64_t streams : {1, 2, 3, 4})
      for (int64_t hidden : {1, 17, 64})
        for (float size : {1.0f, 8.0f, 120.0f}) {
          const ReadCase problem(rows, streams, hidden, size, seed++);
          std::vector<double> u(static_cast<size_t>(rows * hidden)), bound(u.size());
          hyper_read_oracle(problem.args, u.data());
          for (int64_t t = 0; t < rows; ++t)
            for (int64_t i = 0; i < hidden; ++i) {
              double sum = 0, flushed = 0;
              for (int64_t s = 0; s < streams; ++s) {
                const double normed = problem.normed.f({t, s, i});
                sum += std::fabs(normed) * sigmoid(problem.mix.f({t, s, i}));
                flushed += 1.2e-38 * std::fabs(normed);
              }
              const auto n = static_cast<double>(streams);
              bound[static_cast<size_t>(t * hidden + i)] = (1.01 * kU * (n + 8) * sum + flushed) / n + kTiny;
            }
          run(problem.args);
          ASSERT_TRUE(within(problem.u, u, bound)) << rows << " " << streams << " " << hidden << " " << size;
          EXPECT_TRUE(problem.u.gaps_intact());
        }
}

TEST(HyperWrite, MatchesTheOracle) {
  // 2 sigmoid 6 u, product 1, the sum 1 of its value; flush of exp as above.
  uint64_t seed = 1;
  for (int64_t rows : {1, 6})
    for (int64_t streams : {1, 2, 3, 4})
      for (int64_t hidden : {1, 17, 64})
        for (float size : {1.0f, 8.0f, 120.0f}) {
          const WriteCase problem(rows, streams, hidden, size, seed++);
          std::vector<double> x(static_cast<size_t>(rows * streams * hidden)), bound(x.size());
          hyper_write_oracle(problem.args, x.data());
          for (int64_t t = 0; t < rows; ++t)
            for (int64_t s = 0; s < streams; ++s)
              for (int64_t i = 0; i < hidden; ++i) {
                const auto at = static_cast<size_t>((t * streams + s) * hidden + i);
                const double block = std::fabs(static_cast<double>(problem.block.f({t, i})));
                bound[at] = 1.01 * kU * (14 * sigmoid(problem.inject.f({t, s})) * block + std::fabs(x[at])) +
                            2.4e-38 * block + kTiny;
              }
          run(problem.args);
          ASSERT_TRUE(within(problem.x, x, bound)) << rows << " " << streams << " " << hidden << " " << size;
          EXPECT_TRUE(problem.x.gaps_intact());
        }
}

TEST(HyperConnection, KnownValues) {
  const ReadCase read(1, 2, 1);
  read.normed.f({0, 0, 0}) = 3;
  read.normed.f({0, 1, 0}) = 5;
  read.mix.f({0, 0, 0}) = read.mix.f({0, 1, 0}) = 0;  // both gates 1/2
  run(read.args);
  EXPECT_EQ(read.u.f({0, 0}), 2);

  const WriteCase write(1, 2, 1);
  write.x.f({0, 0, 0}) = write.x.f({0, 1, 0}) = 1;
  write.block.f({0, 0}) = 4;
  write.inject.f({0, 0}) = 0;      // factor 1
  write.inject.f({0, 1}) = -1000;  // factor 0
  run(write.args);
  EXPECT_EQ(write.x.f({0, 0, 0}), 5);
  EXPECT_EQ(write.x.f({0, 1, 0}), 1);
}

TEST(HyperConnection, RowsAndThreadsGiveTheSameBits) {
  // Large enough that every loop is shared among the threads (ThreadPool::grain_of).
  const ReadCase read(13, 4, 2053);
  const WriteCase write(13, 4, 2053);
  run(read.args);
  run(write.args);
  for (int threads : kThreadCounts) {
    const ReadCase read_again(13, 4, 2053);
    const WriteCase write_again(13, 4, 2053);
    run(read_again.args, threads);
    run(write_again.args, threads);
    EXPECT_TRUE(same_bits(read_again.u, read.u) && same_bits(write_again.x, write.x)) << threads << " threads";
  }
  const ReadCase read_rows(13, 4, 2053);
  const WriteCase write_rows(13, 4, 2053);
  for (int64_t t = 0; t < 13; ++t) {
    run(HyperReadArgs{read_rows.normed.t().slice(t, 1), read_rows.mix.t().slice(t, 1), read_rows.u.t().slice(t, 1)});
    run(HyperWriteArgs{write_rows.block.t().slice(t, 1), write_rows.inject.t().slice(t, 1),
                       write_rows.x.t().slice(t, 1)});
  }
  EXPECT_TRUE(same_bits(read_rows.u, read.u) && same_bits(write_rows.x, write.x));
}

TEST(HyperConnection, NaNStaysWhereItIsRead) {
  const ReadCase read(3, 2, 4);
  read.mix.f({1, 0, 2}) = NAN;
  run(read.args);
  const WriteCase write(3, 2, 4);
  write.inject.f({1, 0}) = NAN;
  run(write.args);
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(std::isnan(read.u.f({t, i})), t == 1 && i == 2);
      EXPECT_EQ(std::isnan(write.x.f({t, 0, i})), t == 1);
      EXPECT_FALSE(std::isnan(write.x.f({t, 1, i})));
    }
}

TEST(HyperConnection, NoRows) {
  EXPECT_NO_THROW(run(ReadCase(0, 4, 8).args));
  EXPECT_NO_THROW(run(WriteCase(0, 4, 8).args));
}

TEST(HyperConnection, WrongArgumentsAreNamed) {
  float x[64] = {};
  const auto read = [&](const char* argument, Tensor HyperReadArgs::*tensor, const Tensor& wrong) {
    HyperReadArgs args{make_f32(x, {2, 3, 4}), make_f32(x, {2, 3, 4}), make_f32(x, {2, 4})};
    args.*tensor = wrong;
    return argument_refused([&] { run(args); }, "hyper_read", argument);
  };
  EXPECT_TRUE(read("normed is", &HyperReadArgs::normed, make_f32(x, {6, 4})));
  EXPECT_TRUE(read("mix is", &HyperReadArgs::mix, make_f32(x, {2, 12})));
  EXPECT_TRUE(read("u is", &HyperReadArgs::u, make_f32(x, {2, 3})));
  EXPECT_TRUE(read("u is", &HyperReadArgs::u, {}));
  const auto write = [&](const char* argument, Tensor HyperWriteArgs::*tensor, const Tensor& wrong) {
    HyperWriteArgs args{make_f32(x, {2, 4}), make_f32(x, {2, 3}), make_f32(x, {2, 3, 4})};
    args.*tensor = wrong;
    return argument_refused([&] { run(args); }, "hyper_write", argument);
  };
  EXPECT_TRUE(write("block is", &HyperWriteArgs::block, make_f32(x, {3, 4})));
  EXPECT_TRUE(write("inject is", &HyperWriteArgs::inject, make_f32(x, {2, 4})));
  EXPECT_TRUE(write("x is", &HyperWriteArgs::x, make_tensor(x, DType::F16, {2, 3, 4})));
}

}  // namespace
}  // namespace strata::test
