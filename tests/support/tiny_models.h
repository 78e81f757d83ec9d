// A small random model of every architecture, with every optional part that the family has, and a byte-level tokenizer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/model_image.h"

namespace strata::test {

inline constexpr std::array<const char*, 7> kArchitectures = {"llama",  "qwen3",     "qwen3moe", "qwen3next",
                                                              "qwen35", "qwen35moe", "qwen4exp"};

struct TinyShape {
  int width = 32;                  // hidden size, and every other extent that must hold whole blocks
  DType type = DType::Q8_0;        // of the matrices
  DType norms = DType::F32;        // of norm weights
  int layers = 2;                  // of the trunk; hybrids: every second one is attention
  bool mtp = true;                 // hybrids: one MTP block
  bool own_mtp_ends = false;       // with its own embedding and head
  bool tied = false;               // no output tensor
  bool experts_everywhere = true;  // false: layer 0 of a family with experts is dense
};

// 2 heads of width / 2 on 1 kv head; 4 experts, 2 used; delta net of 1 key head and 2 value heads; the vocabulary is
// tiny_tokens(). Every file of the same arch and shape is the same.
ModelImage tiny_model(const std::string& arch, const TinyShape& shape = {});

// One token for each byte, a few merges, and control tokens.
std::vector<std::string> tiny_tokens();

// `values` as a tensor's data. Types without encoder get random blocks of small finite values instead.
std::string encoded(DType type, const std::vector<float>& values, uint64_t row, uint64_t seed);

bool is_hybrid(const std::string& arch);
bool has_experts(const std::string& arch);

// Other layouts of the same weights, which give the same logits.
ModelImage with_fused_qkv(ModelImage image);      // attention layers: attn_qkv for attn_q, attn_k and attn_v
ModelImage with_fused_gate_up(ModelImage image);  // ffn_gate_up_exps
ModelImage with_legacy_ssm_in(ModelImage image);  // qwen3next: ssm_in for attn_qkv and attn_gate
ModelImage with_split_ssm_ba(ModelImage image);   // qwen3next: ssm_beta and ssm_alpha for ssm_ba
ModelImage with_wide_norms(ModelImage image);     // norms [nH] as [H, n]
ModelImage with_reversed_tensors(ModelImage image);

// The image as a set of files, with all metadata in the first; and the names of the files.
std::vector<ModelImage> split_images(const ModelImage& image, size_t count);
std::string split_name(size_t index, size_t count);  // m-00001-of-00003.gguf

}  // namespace strata::test
