#include "ops/hyper_connection/hyper_connection.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

struct ReadCase {
  ReadCase(int64_t rows, int64_t streams, int64_t hidden)
      : normed(DType::F32, {rows, streams, hidden}),
        mix(DType::F32, {rows, streams, hidden}),
        u(DType::F32, {rows, hidden}),
        args{normed, mix, u} {}
  Owned normed, mix, u;
  HyperReadArgs args;
};

struct WriteCase {
  WriteCase(int64_t rows, int64_t streams, int64_t hidden)
      : block(DType::F32, {rows, hidden}),
        inject(DType::F32, {rows, streams}),
        x(DType::F32, {rows, streams, hidden}),
        args{block, inject, x} {}
  Owned block, inject, x;
  HyperWriteArgs args;
};

void run(const HyperReadArgs& args) {
  TestQueue queue;
  hyper_read(queue, args);
}
void run(const HyperWriteArgs& args) {
  TestQueue queue;
  hyper_write(queue, args);
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
