// Cases of store_rows, all at zero tolerance: every type, alone and in pages that lie in any order, strided rows,
// values that rounding and block scales find hard. Quantised rows are compared as the words they are made of.
#include "ops/store_rows/parity.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "evidence/parity_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<StoreRowsArgs>;

struct Shape {
  DType type;
  int64_t rows, width, first;
  int64_t page = 0;  // rows of a page; 0: one array
  int64_t pad = 0;   // elements between the rows given
};

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void fill(const Tensor& rows, DType type, Random& random) {
  const float odd[] = {0.0f,           -0.0f,          kInfinity, -kInfinity, 65504.0f, 65519.9f,
                       -65520.0f,      0x1p-24f,       0x1p-25f,  0x1.8p-25f, 1e-45f,   3e38f,
                       1.00048828125f, 1.00146484375f, 0x1.01p0f, 0x1.03p0f};
  for (int64_t t = 0; t < rows.extent(0); ++t) {
    if (type == DType::I32) {
      for (int64_t i = 0; i < rows.extent(1); ++i)
        rows.row<int32_t>(t)[i] = static_cast<int32_t>(random.below(1 << 20)) - 1;
      continue;
    }
    for (int64_t i = 0; i < rows.extent(1); ++i) {
      // A block of 32 has one scale: tiny, common and huge ones, blocks of zeros, and levels exactly in between.
      const int64_t kind = (t + i / 32) % 6;
      const float scale = kind == 0 ? 1e-9f : kind == 1 ? 1e6f : kind == 2 ? 3e-6f : 1.0f;
      float value = scale * random.uniform(-3, 3);
      if (kind == 4) value = static_cast<float>(random.below(255) - 127) * 0.5f;
      if (kind == 5 && t % 4 == 1) value = 0;
      rows.row<float>(t)[i] = value;
    }
    if (t % 3 == 2)
      for (int64_t i = 0; i < rows.extent(1); ++i)
        if (random.below(5) == 0) rows.row<float>(t)[i] = odd[random.below(16)];
  }
}

double value_at(const uint8_t* bytes, DType type, int64_t index) {
  uint16_t half;
  float word;
  int32_t integer;
  switch (type) {
    case DType::F16: return std::memcpy(&half, bytes + 2 * index, 2), static_cast<double>(f16_to_f32(half));
    case DType::BF16: return std::memcpy(&half, bytes + 2 * index, 2), static_cast<double>(bf16_to_f32(half));
    case DType::F32: return std::memcpy(&word, bytes + 4 * index, 4), static_cast<double>(word);
    default: return std::memcpy(&integer, bytes + 4 * index, 4), static_cast<double>(integer);
  }
}

ParityCase make_case(const Shape& shape, uint64_t seed) {
  Random random(seed);
  Builder build(std::string(to_string(shape.type)) + " " + std::to_string(shape.rows) + " x " +
                    std::to_string(shape.width) + " from " + std::to_string(shape.first) +
                    (shape.page > 0 ? ", pages of " + std::to_string(shape.page) : "") +
                    (shape.pad > 0 ? ", strided" : ""),
                store_rows, store_rows_arms());
  StoreRowsArgs& args = build.args();
  const bool integers = shape.type == DType::I32, quantised = info(shape.type).block_elements > 1;
  args.rows = build.memory().tensor(integers ? DType::I32 : DType::F32, {shape.rows, shape.width}, {shape.pad});
  fill(args.rows, shape.type, random);
  args.first = shape.first;
  const int64_t page = shape.page > 0 ? shape.page : shape.first + shape.rows + 3;
  const int64_t pages = (shape.first + shape.rows + page - 1) / page, held = pages * page;
  const int64_t row_bytes = static_cast<int64_t>(bytes_of(shape.type, shape.width));
  // The rows as what is compared, and as what the operator gets.
  const Tensor compared = quantised ? build.memory().tensor(DType::I32, {held, row_bytes / 4})
                                    : build.memory().tensor(shape.type, {held, shape.width}, {shape.pad});
  args.to = compared;
  args.to.dtype = shape.type;
  args.to.extents[1] = shape.width;
  if (quantised) args.to.strides[1] = info(shape.type).block_bytes;
  std::vector<const void*> addresses;
  for (int64_t i = 0; i < pages; ++i) addresses.push_back(compared.row<char>((pages - 1 - i) * page));
  if (shape.page > 0) args.pages = {build.memory().table(addresses), page};
  std::vector<double> expected(static_cast<size_t>(compared.elements()), 0.0);
  std::vector<uint8_t> written(expected.size(), 0), bytes(static_cast<size_t>(row_bytes));
  for (int64_t t = 0; t < shape.rows; ++t) {
    store_rows_oracle(args.rows.row<const float>(t), shape.width, shape.type, bytes.data());
    const int64_t at = shape.first + t, own = shape.page > 0 ? (pages - 1 - at / page) * page + at % page : at;
    for (int64_t i = 0; i < compared.extent(1); ++i) {
      const auto index = static_cast<size_t>(own * compared.extent(1) + i);
      expected[index] = value_at(bytes.data(), compared.dtype, i);
      written[index] = 1;
    }
  }
  if (shape.type == DType::F32 || integers) build.input("rows", &StoreRowsArgs::rows);
  build.output("to", compared, std::move(expected), std::move(written));
  build.variant("rows one by one", [args](Queue& queue) {
    for (int64_t t = 0; t < args.rows.extent(0); ++t)
      store_rows(queue, {args.rows.slice(t, 1), args.to, args.first + t, args.pages});
  });
  return build.build();
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& shape) { list.push_back([=, s = next++] { return make_case(shape, s); }); };
  for (const DType type : {DType::F32, DType::I32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0}) {
    const bool quantised = info(type).block_elements > 1;
    for (const int64_t width : quantised ? std::vector<int64_t>{64, 1024} : std::vector<int64_t>{1, 7, 130, 1024}) {
      add({type, 1, width, 0});
      add({type, 7, width, 5, 0, 3});
      add({type, 9, width, 61, 64});
      add({type, 40, width, 3, 16, 5});
    }
    add({type, 3, 4096, 2});
  }
  return list;
}

}  // namespace

OperatorEvidence store_rows_evidence() { return {"store_rows", arm_infos(store_rows_arms()), cases}; }

}  // namespace strata
