#include "evidence/arm.h"
#include "ops/ngram_embedding/ngram_embedding.h"
#include "ops/ngram_embedding/parity.h"

namespace strata {

void ngram_embedding_portable(Queue& queue, const NgramEmbeddingArgs& args);  // cpu.cpp
void ngram_gate_portable(Queue& queue, const NgramGateArgs& args);            // cpu.cpp

std::string ngram_embedding_device_refusal(const NgramEmbeddingArgs& args);  // device.cpp
void ngram_embedding_device(Queue& queue, const NgramEmbeddingArgs& args);   // device.cpp
void ngram_gate_device(Queue& queue, const NgramGateArgs& args);             // device.cpp
extern const KernelImage kernel_image_ngram_embedding;

namespace {
constexpr const char* kOp = "ngram_embedding";
constexpr Arm<NgramEmbeddingArgs> kArms[] = {{"thread", ngram_embedding_device_refusal, ngram_embedding_device, true,
                                              false, CpuIsa::Portable, &kernel_image_ngram_embedding},
                                             {"portable", always_runs<NgramEmbeddingArgs>, ngram_embedding_portable}};
constexpr Arm<NgramGateArgs> kGateArms[] = {{"block", always_runs<NgramGateArgs>, ngram_gate_device, true, false,
                                             CpuIsa::Portable, &kernel_image_ngram_embedding},
                                            {"portable", always_runs<NgramGateArgs>, ngram_gate_portable}};

void check_params(const NgramParams& params, int64_t table_rows) {
  const size_t heads = static_cast<size_t>(params.orders) * static_cast<size_t>(params.heads);
  if (params.orders < 1 || params.heads < 1 || params.multipliers.size() != static_cast<size_t>(params.orders) + 1 ||
      params.head_sizes.size() != heads || params.head_offsets.size() != heads)
    argument_error(kOp, "multipliers, head sizes and head offsets do not match the orders and heads");
  for (size_t h = 0; h < heads; ++h) {
    const uint64_t rows = static_cast<uint64_t>(table_rows);
    if (params.head_sizes[h] == 0 || params.head_sizes[h] > rows ||
        params.head_offsets[h] > rows - params.head_sizes[h])
      argument_error(kOp, "hash head " + std::to_string(h) + " reaches beyond the table of " +
                              std::to_string(table_rows) + " rows");
  }
}

}  // namespace

void ngram_embedding(Queue& queue, const NgramEmbeddingArgs& args) {
  if (args.params == nullptr) argument_error(kOp, "params is absent");
  check_shape(kOp, "table", args.table, {-1, -1});
  check_params(*args.params, args.table.extent(0));
  check_tensor(kOp, "ids", args.ids, DType::I32, {-1});
  check_tensor(kOp, "context", args.context, DType::I32, {args.params->orders});
  check_tensor(kOp, "y", args.y, DType::F32,
               {args.ids.extent(0), args.params->orders * args.params->heads, args.table.extent(1)});
  // Ids in the memory of an accelerator are not seen by the host: the forward pass checks them before it sends them.
  for (int64_t t = 0; queue.accelerator() == nullptr && t < args.ids.extent(0); ++t)
    if (args.ids.as<int32_t>()[t] < 0) argument_error(kOp, "ids holds a negative token at row " + std::to_string(t));
  choose_arm<NgramEmbeddingArgs>(queue, kOp, kArms, args).run(queue, args);
}

void ngram_gate(Queue& queue, const NgramGateArgs& args) {
  check_tensor("ngram_gate", "key", args.key, DType::F32, {-1, -1, -1});
  const int64_t rows = args.key.extent(0), streams = args.key.extent(1), hidden = args.key.extent(2);
  check_tensor("ngram_gate", "query", args.query, DType::F32, {rows, streams, hidden});
  check_tensor("ngram_gate", "value", args.value, DType::F32, {rows, hidden});
  check_tensor("ngram_gate", "y", args.y, DType::F32, {rows, streams, hidden});
  choose_arm<NgramGateArgs>(queue, "ngram_gate", kGateArms, args).run(queue, args);
}

std::span<const Arm<NgramEmbeddingArgs>> ngram_embedding_arms() { return kArms; }
std::span<const Arm<NgramGateArgs>> ngram_gate_arms() { return kGateArms; }

}  // namespace strata
