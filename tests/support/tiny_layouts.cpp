// Other layouts of the weights of a tiny model.
#include <algorithm>
#include <cstdio>

#include "support/tiny_models.h"

namespace strata::test {
namespace {

size_t row_bytes(const ImageTensor& t) { return bytes_of(t.dtype(), static_cast<int64_t>(t.ne[0])); }

std::string rows_of(const ImageTensor& t, uint64_t first, uint64_t count) {
  return t.data.substr(first * row_bytes(t), count * row_bytes(t));
}

uint64_t number(ModelImage& image, const std::string& suffix) { return image.find(image.arch() + "." + suffix)->u; }

// The tensors `names` of block `b` joined along their rows, in place of the first.
void join(ModelImage& image, const std::string& b, const std::vector<std::string>& names, const std::string& joined) {
  if (image.find_tensor(b + names[0]) == nullptr) return;
  ImageTensor& first = image.tensor(b + names[0]);
  for (size_t i = 1; i < names.size(); ++i) {
    const ImageTensor& next = image.tensor(b + names[i]);
    first.data += next.data;
    first.ne.back() += next.ne.back();
  }
  first.name = b + joined;
  for (size_t i = 1; i < names.size(); ++i) image.erase_tensor(b + names[i]);
}

template <class Change>
ModelImage each_block(ModelImage image, Change change) {
  const uint64_t blocks = number(image, "block_count");
  for (uint64_t i = 0; i < blocks; ++i) change(image, "blk." + std::to_string(i) + ".");
  return image;
}

}  // namespace

ModelImage with_fused_qkv(ModelImage image) {
  return each_block(std::move(image), [](ModelImage& m, const std::string& b) {
    join(m, b, {"attn_q.weight", "attn_k.weight", "attn_v.weight"}, "attn_qkv.weight");
    join(m, b, {"attn_q.bias", "attn_k.bias", "attn_v.bias"}, "attn_qkv.bias");
  });
}

ModelImage with_fused_gate_up(ModelImage image) {
  return each_block(std::move(image), [](ModelImage& m, const std::string& b) {
    if (m.find_tensor(b + "ffn_gate_exps.weight") == nullptr) return;
    ImageTensor& gate = m.tensor(b + "ffn_gate_exps.weight");
    const ImageTensor& up = m.tensor(b + "ffn_up_exps.weight");
    std::string data;
    for (uint64_t e = 0; e < gate.ne[2]; ++e)
      data += rows_of(gate, e * gate.ne[1], gate.ne[1]) + rows_of(up, e * gate.ne[1], gate.ne[1]);
    gate.data = data;
    gate.ne[1] *= 2;
    gate.name = b + "ffn_gate_up_exps.weight";
    m.erase_tensor(b + "ffn_up_exps.weight");
  });
}

ModelImage with_legacy_ssm_in(ModelImage image) {
  return each_block(std::move(image), [](ModelImage& m, const std::string& b) {
    if (m.find_tensor(b + "ssm_ba.weight") == nullptr) return;
    ImageTensor& qkv = m.tensor(b + "attn_qkv.weight");
    const ImageTensor& z = m.tensor(b + "attn_gate.weight");
    const uint64_t heads = number(m, "ssm.group_count"), dk = number(m, "ssm.state_size");
    const uint64_t values = number(m, "ssm.inner_size") / heads, keys = heads * dk;
    std::string data;
    for (uint64_t h = 0; h < heads; ++h)
      data += rows_of(qkv, h * dk, dk) + rows_of(qkv, keys + h * dk, dk) + rows_of(qkv, 2 * keys + h * values, values) +
              rows_of(z, h * values, values);
    qkv.data = data;
    qkv.ne[1] += z.ne[1];
    qkv.name = b + "ssm_in.weight";
    m.erase_tensor(b + "attn_gate.weight");
  });
}

ModelImage with_split_ssm_ba(ModelImage image) {
  return each_block(std::move(image), [](ModelImage& m, const std::string& b) {
    if (m.find_tensor(b + "ssm_ba.weight") == nullptr) return;
    ImageTensor beta = m.tensor(b + "ssm_ba.weight"), alpha = beta;
    const uint64_t heads = number(m, "ssm.group_count"), repeat = number(m, "ssm.time_step_rank") / heads;
    std::string betas, alphas;
    for (uint64_t h = 0; h < heads; ++h) {
      betas += rows_of(beta, 2 * h * repeat, repeat);
      alphas += rows_of(beta, (2 * h + 1) * repeat, repeat);
    }
    beta.data = betas, alpha.data = alphas;
    beta.ne[1] = alpha.ne[1] = heads * repeat;
    beta.name = b + "ssm_beta.weight", alpha.name = b + "ssm_alpha.weight";
    m.erase_tensor(b + "ssm_ba.weight");
    m.tensors.push_back(beta), m.tensors.push_back(alpha);
  });
}

ModelImage with_wide_norms(ModelImage image) {
  const uint64_t hidden = number(image, "embedding_length"), streams = number(image, "hyper_connection.count");
  for (ImageTensor& t : image.tensors)
    if (t.ne.size() == 1 && t.ne[0] == hidden * streams) t.ne = {hidden, streams};
  return image;
}

ModelImage with_reversed_tensors(ModelImage image) {
  std::reverse(image.tensors.begin(), image.tensors.end());
  return image;
}

std::string split_name(size_t index, size_t count) {
  char name[48];
  std::snprintf(name, sizeof name, "m-%05zu-of-%05zu.gguf", index + 1, count);
  return name;
}

std::vector<ModelImage> split_images(const ModelImage& image, size_t count) {
  std::vector<ModelImage> shards(count);
  const size_t total = image.tensors.size();
  shards[0].metadata = image.metadata;
  for (size_t i = 0; i < count; ++i) {
    shards[i].set("split.no", gguf::Value::of_u16(static_cast<uint16_t>(i)));
    shards[i].set("split.count", gguf::Value::of_u16(static_cast<uint16_t>(count)));
    shards[i].set("split.tensors.count", gguf::Value::of_i32(static_cast<int32_t>(total)));
    shards[i].tensors.assign(image.tensors.begin() + static_cast<int64_t>(total * i / count),
                             image.tensors.begin() + static_cast<int64_t>(total * (i + 1) / count));
  }
  return shards;
}

}  // namespace strata::test
