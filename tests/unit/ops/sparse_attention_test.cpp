#include "ops/sparse_attention/sparse_attention.h"

#include "gguf/quant.h"
#include "ops/attention/attention.h"
#include "ops/sparse_attention/parity.h"
#include "support/ops_test.h"

namespace strata::test {
namespace {

using Cells = std::vector<std::vector<int32_t>>;  // of each row

Cells first_cells(const std::vector<int32_t>& counts) {
  Cells cells;
  for (int32_t count : counts) {
    cells.emplace_back();
    for (int32_t c = 0; c < count; ++c) cells.back().push_back(c);
  }
  return cells;
}

struct Problem {
  // Cells that no row selects stay NaN, ids behind the count stay canaries.
  Problem(int64_t heads, int64_t kv_heads, int64_t dim, int64_t total_cells, const Cells& selected, Random& random,
          float range = 1)
      : cells(selected),
        q(random_f32({rows(), heads, dim}, random, -range, range, {4, 3})),
        k(DType::F32, {total_cells, kv_heads, dim}),
        v(DType::F32, {total_cells, kv_heads, dim}),
        ids(DType::I32, {rows(), width() + 2}, {5}),
        counts(DType::I32, {rows()}),
        out(DType::F32, {rows(), heads, dim}, {2, 1}) {
    for (int64_t t = 0; t < rows(); ++t) {
      const auto& row = cells[static_cast<size_t>(t)];
      counts.i({t}) = static_cast<int32_t>(row.size());
      for (size_t n = 0; n < row.size(); ++n) {
        ids.i({t, static_cast<int64_t>(n)}) = row[n];
        fill(k.t()[row[n]], random);
        fill(v.t()[row[n]], random);
      }
    }
  }
  int64_t rows() const { return static_cast<int64_t>(cells.size()); }
  int64_t width() const {
    size_t most = 0;
    for (const auto& row : cells) most = std::max(most, row.size());
    return static_cast<int64_t>(most);
  }
  SparseAttentionArgs args() const {
    const float scale = 1 / std::sqrt(static_cast<float>(q.t().extent(2)));
    return {.q = q, .k = k, .v = v, .ids = ids, .counts = counts, .scale = scale, .out = out};
  }
  Cells cells;
  Owned q, k, v, ids, counts, out;
};

// Each row keeps about one cell in `stride`, and a different number of them.
Cells random_cells(int64_t rows, int32_t total, int64_t stride, Random& random) {
  Cells cells;
  for (int64_t t = 0; t < rows; ++t) {
    cells.emplace_back();
    if (t == 1) continue;  // one row without cells
    for (int32_t c = 0; c < total; ++c)
      if (random.below(stride + t % 3) == 0) cells.back().push_back(c);
  }
  return cells;
}

// A queue that runs one arm.
struct ArmQueue : TestQueue {
  ArmQueue(const Arm<SparseAttentionArgs>& arm, int threads) : TestQueue(threads) {
    queue.request_arm("sparse_attention", std::string(arm.name));
    queue.request_arm("attention", std::string(arm.name));
    queue.strict_arms = true;
  }
};

std::vector<Arm<SparseAttentionArgs>> arms_here() {
  std::vector<Arm<SparseAttentionArgs>> arms;
  for (const auto& arm : sparse_attention_arms())
    if (arm.image == nullptr && cpu_features().has(arm.isa)) arms.push_back(arm);
  return arms;
}

// With every visible cell selected it is the attention over all cells, bit for bit.
TEST(SparseAttention, SelectingEverythingIsDenseAttention) {
  for (const auto& arm : arms_here()) {
    Random random(2);
    ArmQueue queue(arm, 2);
    const std::vector<int32_t> lengths{0, 1, 255, 256, 257, 300, 600};
    const Problem problem(6, 2, 33, 610, first_cells(lengths), random, 10);
    sparse_attention(queue, problem.args());
    const Owned dense(DType::F32, {7, 6, 33}), n_kv = owned_i32(lengths);
    attention(
        queue,
        {.q = problem.q, .k = problem.k, .v = problem.v, .n_kv = n_kv, .scale = problem.args().scale, .out = dense});
    EXPECT_TRUE(same_bits(problem.out, dense)) << arm.name;
  }
}

// The same on an accelerator, with f32 cells and, on matrix units, with bf16 ones; a row alone has the bits that it has
// among others.
TEST(SparseAttention, OnAnAcceleratorSelectingEverythingIsDenseAttention) {
  for (const DType type : {DType::F32, DType::BF16}) {
    Random random(3);
    Log log(LogLevel::Error);
    Queue queue(open_accelerator("emu"), log);
    const std::vector<int32_t> lengths{0, 1, 255, 256, 257, 300, 600};
    const Problem problem(6, 2, 64, 610, first_cells(lengths), random, 10);
    const Owned k(type, {610, 2, 64}), v(type, {610, 2, 64}), dense(DType::F32, {7, 6, 64}), n_kv = owned_i32(lengths);
    const Tensor k_view = k, v_view = v;
    std::vector<float> values(64);
    for (const Tensor& tensor : {k_view, v_view})
      for (int64_t cell = 0; cell < 610; ++cell)
        for (int64_t x = 0; x < 2; ++x) {
          for (float& value : values) value = random.uniform(-1, 1);
          gguf::encoder(type)(values.data(), tensor[cell].row<void>(x), 64);
        }
    SparseAttentionArgs args = problem.args();
    args.k = k;
    args.v = v;
    sparse_attention(queue, args);
    attention(queue, {.q = args.q, .k = k, .v = v, .n_kv = n_kv, .scale = args.scale, .out = dense});
    queue.stream().wait();
    EXPECT_TRUE(same_bits(problem.out, dense)) << static_cast<int>(type);
    for (const auto& choice : queue.arms()) EXPECT_EQ(choice.ran, type == DType::BF16 ? "mma" : "fma");
    for (int64_t t : {1, 4, 6}) {
      const Owned row(DType::F32, {1, 6, 64});
      attention(
          queue,
          {.q = args.q.slice(t, 1), .k = k, .v = v, .n_kv = n_kv.t().slice(t, 1), .scale = args.scale, .out = row});
      queue.stream().wait();
      EXPECT_TRUE(same_bits(row, dense.t().slice(t, 1))) << static_cast<int>(type) << ", row " << t;
    }
  }
}

// Where the cells lie does not matter: the selected ones moved to the front give the same bits.
TEST(SparseAttention, OnlyTheSelectedCellsCount) {
  Random random(3);
  TestQueue queue;
  const Problem scattered(4, 2, 20, 900, random_cells(1, 900, 4, random), random, 5);
  const auto count = static_cast<int32_t>(scattered.cells[0].size());
  const Problem packed_front(4, 2, 20, count, first_cells({count}), random, 5);
  assign(packed_front.q.t(), packed(scattered.q));
  for (int32_t n = 0; n < count; ++n) {
    assign(packed_front.k.t()[n], packed(scattered.k.t()[scattered.cells[0][static_cast<size_t>(n)]]));
    assign(packed_front.v.t()[n], packed(scattered.v.t()[scattered.cells[0][static_cast<size_t>(n)]]));
  }
  sparse_attention(queue, scattered.args());
  sparse_attention(queue, packed_front.args());
  EXPECT_TRUE(same_bits(scattered.out, packed_front.out));
}

TEST(SparseAttention, ARowHasTheSameBitsAloneAndForAnyThreadCount) {
  Random random(4);
  const Problem problem(4, 2, 17, 500, random_cells(33, 500, 2, random), random, 10);
  SparseAttentionArgs args = problem.args();
  TestQueue one(1);
  sparse_attention(one, args);
  for (int threads : kThreadCounts) {
    TestQueue queue(threads);
    const Owned batch(DType::F32, {33, 4, 17});
    args.out = batch;
    sparse_attention(queue, args);
    ASSERT_TRUE(same_bits(batch, problem.out)) << threads << " threads";
    for (int64_t t = 0; t < 33; ++t) {
      const Owned row(DType::F32, {1, 4, 17});
      SparseAttentionArgs single = args;
      single.q = problem.q.t().slice(t, 1);
      single.ids = problem.ids.t().slice(t, 1);
      single.counts = problem.counts.t().slice(t, 1);
      single.out = row;
      sparse_attention(queue, single);
      ASSERT_TRUE(same_bits(row, problem.out.t().slice(t, 1))) << "row " << t << ", " << threads << " threads";
    }
  }
}

TEST(SparseAttention, OneCellIsCopiedAndNoCellGivesZeros) {
  Random random(5);
  TestQueue queue;
  const Problem problem(6, 2, 9, 50, {{37}, {}}, random);
  sparse_attention(queue, problem.args());
  for (int64_t h = 0; h < 6; ++h)
    EXPECT_TRUE(same_bits(problem.out.t()[0].slice(h, 1), problem.v.t()[37].slice(h / 3, 1)));
  for (uint32_t bits : packed<uint32_t>(problem.out.t().slice(1, 1))) EXPECT_EQ(bits, 0u);
}

TEST(SparseAttention, NanOfASelectedCellReachesItsRowsOnly) {
  Random random(6);
  TestQueue queue;
  const Problem problem(2, 1, 8, 20, {{1, 5, 9}, {1, 9}, {5}}, random);
  problem.k.f({5, 0, 3}) = NAN;
  sparse_attention(queue, problem.args());
  for (int64_t t = 0; t < 3; ++t)
    for (float value : packed(problem.out.t()[t])) EXPECT_EQ(std::isnan(value), t != 1);
}

TEST(SparseAttention, Avx2AndAvx512GiveTheSameBits) {
  Random random(8);
  const Problem problem(12, 2, 80, 2000, random_cells(7, 2000, 2, random), random, 5);
  std::vector<std::vector<uint32_t>> bits;
  for (const auto& arm : arms_here()) {
    if (arm.isa == CpuIsa::Portable) continue;
    ArmQueue queue(arm, 2);
    sparse_attention(queue, problem.args());
    bits.push_back(packed<uint32_t>(problem.out));
  }
  for (const auto& other : bits) EXPECT_EQ(other, bits.front());
}

TEST(SparseAttention, WrongArgumentsAreNamed) {
  Random random(7);
  TestQueue queue;
  const Problem problem(4, 2, 8, 12, {{1, 5, 9}, {0, 2}}, random);
  auto refused = [&](const char* argument, auto change) {
    SparseAttentionArgs args = problem.args();
    change(args);
    return argument_refused([&] { sparse_attention(queue, args); }, "sparse_attention", argument);
  };
  const Owned flat(DType::F32, {2, 4}), narrow(DType::F32, {12, 2, 7}), fewer(DType::F32, {11, 2, 8}),
      three(DType::F32, {12, 3, 8}), tall(DType::F32, {3, 4, 8}), floats(DType::F32, {2}), more(DType::I32, {3, 5}),
      whole(DType::I32, {12, 2, 8});
  EXPECT_TRUE(refused("q", [&](SparseAttentionArgs& args) { args.q = flat; }));
  EXPECT_TRUE(refused("k", [&](SparseAttentionArgs& args) { args.k = narrow; }));
  EXPECT_TRUE(refused("v", [&](SparseAttentionArgs& args) { args.v = fewer; }));
  EXPECT_TRUE(refused("kv heads", [&](SparseAttentionArgs& args) { args.k = args.v = three; }));
  EXPECT_TRUE(refused("f32, f16, bf16, q8_0 or q4_0", [&](SparseAttentionArgs& args) { args.v = whole; }));
  EXPECT_TRUE(refused("lse", [&](SparseAttentionArgs& args) { args.lse = floats; }));
  EXPECT_TRUE(refused("ids", [&](SparseAttentionArgs& args) { args.ids = more; }));
  EXPECT_TRUE(refused("counts", [&](SparseAttentionArgs& args) { args.counts = floats; }));
  EXPECT_TRUE(refused("out", [&](SparseAttentionArgs& args) { args.out = tall; }));

  // Lists that an arm could not run safely: the message names the cell or the count.
  auto refused_list = [&](const char* word, const std::vector<int32_t>& row, int32_t count) {
    const Owned ids(DType::I32, {2, 5}), counts = owned_i32({3, count});
    assign(ids.t()[0], std::vector<int32_t>{1, 5, 9, 0, 0});
    assign(ids.t()[1], row);
    SparseAttentionArgs args = problem.args();
    args.ids = ids;
    args.counts = counts;
    return argument_refused([&] { sparse_attention(queue, args); }, "sparse_attention", word);
  };
  EXPECT_TRUE(refused_list("cell 12", {0, 12, 13, 14, 15}, 2));
  EXPECT_TRUE(refused_list("cell -1", {-1, 2, 3, 4, 5}, 2));
  EXPECT_TRUE(refused_list("cell 2", {4, 2, 5, 6, 7}, 2));
  EXPECT_TRUE(refused_list("cell 4", {4, 4, 5, 6, 7}, 2));
  EXPECT_TRUE(refused_list("count 6", {0, 1, 2, 3, 4}, 6));
  EXPECT_TRUE(refused_list("count -1", {0, 1, 2, 3, 4}, -1));
  EXPECT_TRUE(all_canary(problem.out));
}

}  // namespace
}  // namespace strata::test
