// Cases of embedding, all at zero tolerance: every dtype, repeated ids, copies, strided rows, table rows that no id
// names left unreadable. The values keep their bits.
#include "ops/embedding/parity.h"

#include <cstring>

#include "evidence/parity_case.h"
#include "gguf/quant.h"
#include "ops/weights_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<EmbeddingArgs>;

struct Shape {
  DType type;
  int64_t width, copies;
  std::vector<int32_t> ids;
};

constexpr int32_t kVocabulary = 7, kUnread = 5;

// NaN payloads and the signs of zeros, which a comparison of values does not see.
std::string bits_differ(const EmbeddingArgs& args) {
  std::vector<float> values(static_cast<size_t>(args.table.extent(1)));
  for (int64_t t = 0; t < args.ids.extent(0); ++t) {
    gguf::decoder(args.table.dtype)(args.table.row<const void>(args.ids.as<int32_t>()[t]), values.data(),
                                    args.table.extent(1));
    for (int64_t c = 0; c < args.y.extent(1); ++c)
      if (std::memcmp(args.y[t].row<const float>(c), values.data(), values.size() * sizeof(float)) != 0)
        return "row " + std::to_string(t) + ", copy " + std::to_string(c) + " has other bits than the table";
  }
  return {};
}

ParityCase make_case(const Shape& shape, uint64_t seed) {
  Random random(seed);
  Builder build(std::string(to_string(shape.type)) + " " + std::to_string(shape.ids.size()) + " ids of " +
                    std::to_string(shape.width) + ", " + std::to_string(shape.copies) + " copies",
                embedding, embedding_arms());
  EmbeddingArgs& args = build.args();
  const auto rows = static_cast<int64_t>(shape.ids.size());
  args.ids = build.memory().i32(shape.ids);
  args.table = build.memory().tensor(shape.type, {kVocabulary, shape.width}, {1});
  fill_weights(args.table.slice(0, kUnread), random);  // the canaries behind are NaN as f32
  fill_weights(args.table.slice(kUnread + 1, kVocabulary - kUnread - 1), random);
  if (shape.type == DType::F32 && shape.width >= 17) {
    const uint32_t odd[] = {0x80000000u, 0x7f800000u, 0xff800000u, 0x00000001u, 0x7fc12345u};
    std::memcpy(args.table.row<float>(3), odd, sizeof odd);
  }
  args.y = build.memory().tensor(DType::F32, {rows, shape.copies, shape.width}, {6, 2});
  build.input("ids", &EmbeddingArgs::ids);
  if (shape.type == DType::F32) build.input("table", &EmbeddingArgs::table);
  build.output("y", &EmbeddingArgs::y, embedding_oracle);
  build.rows({&EmbeddingArgs::ids, &EmbeddingArgs::y});
  build.check([args](int64_t&) { return bits_differ(args); });
  return build.build();
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  std::vector<int32_t> many;
  for (int32_t i = 0; i < 40; ++i) many.push_back(i * 3 % kUnread);
  auto add = [&](const Shape& shape) { list.push_back([=, s = next++] { return make_case(shape, s); }); };
  for (const DTypeInfo& type : all_dtypes()) {
    const auto block = static_cast<int64_t>(type.block_elements);
    const std::vector<int64_t> widths =
        block == 1 ? std::vector<int64_t>{1, 17, 320} : std::vector<int64_t>{block, 3 * block};
    for (int64_t width : widths)
      for (int64_t copies : {1, 4}) add({type.type, width, copies, {4, 0, 3, 3, 1, 6, 2}});
  }
  add({DType::F32, 16, 2, {}});
  add({DType::F32, 16, 2, {6}});
  add({DType::F32, 2560, 4, many});
  add({DType::Q4_K, 2560, 1, many});
  return list;
}

}  // namespace

OperatorEvidence embedding_evidence() { return {"embedding", arm_infos(embedding_arms()), cases}; }

}  // namespace strata
