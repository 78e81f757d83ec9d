#include <cmath>

#include "gguf/hf/names.h"
#include "gguf/hf/rows.h"
#include "gguf/hf/storage.h"
#include "gguf/hf/transforms.h"
#include "unit/gguf/hf_test_util.h"

namespace strata::gguf::hf {
namespace {

using testing::TempDir;
using testing::TinyCheckpoint;

TEST(HfTransforms, AdjacentPairsFollowTheFormula) {
  const uint64_t heads = 3, dim = 8;
  const IndexMap map = adjacent_pairs(heads, dim);
  ASSERT_EQ(map.size(), heads * dim);
  for (uint64_t h = 0; h < heads; ++h)
    for (uint64_t j = 0; j < dim / 2; ++j)
      for (uint64_t s = 0; s < 2; ++s) EXPECT_EQ(map[h * dim + 2 * j + s], h * dim + s * dim / 2 + j);
}

TEST(HfTransforms, TiledValueHeadsFollowTheFormula) {
  const uint64_t key_heads = 3, per_key = 2, block = 4;
  const IndexMap map = tiled_value_heads(key_heads, per_key, block);
  ASSERT_EQ(map.size(), key_heads * per_key * block);
  for (uint64_t k = 0; k < key_heads; ++k)
    for (uint64_t r = 0; r < per_key; ++r)
      for (uint64_t x = 0; x < block; ++x)
        EXPECT_EQ(map[(r * key_heads + k) * block + x], (k * per_key + r) * block + x);
  const IndexMap shifted = after(5, map);
  ASSERT_EQ(shifted.size(), map.size() + 5);
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(shifted[i], i);
  for (uint64_t i = 0; i < map.size(); ++i) EXPECT_EQ(shifted[5 + i], 5 + map[i]);
}

TEST(HfTransforms, EqualHeadCountsNeedNoTiling) {
  const IndexMap map = tiled_value_heads(6, 1, 3);
  for (uint64_t i = 0; i < map.size(); ++i) EXPECT_EQ(map[i], i);
}

TEST(HfTransforms, QkvzIsUngroupedElementwise) {
  const uint64_t heads = 3, dk = 2, rv = 2, dv = 5, values = rv * dv;
  const uint64_t group = 2 * dk + 2 * values;
  const IndexMap qkv = ungrouped_qkv(heads, dk, values), z = ungrouped_z(heads, dk, values);
  ASSERT_EQ(qkv.size(), heads * (2 * dk + values));
  ASSERT_EQ(z.size(), heads * values);
  for (uint64_t k = 0; k < heads; ++k) {
    for (uint64_t x = 0; x < dk; ++x) {
      EXPECT_EQ(qkv[k * dk + x], k * group + x);
      EXPECT_EQ(qkv[heads * dk + k * dk + x], k * group + dk + x);
    }
    for (uint64_t x = 0; x < values; ++x) {
      EXPECT_EQ(qkv[2 * heads * dk + k * values + x], k * group + 2 * dk + x);
      EXPECT_EQ(z[k * values + x], k * group + 2 * dk + values + x);
    }
  }
}

TEST(HfTransforms, Llama3FrequenciesByBand) {
  // head_dim 4, base 10000: wavelengths 2π and 200π.
  auto freqs = [](double factor, double low, double high, double context) {
    return llama3_rope_freqs(4, {10000, factor, low, high, context});
  };
  EXPECT_EQ(freqs(8, 1, 4, 1e6), (std::vector<float>{1, 1}));  // both far below C/high
  EXPECT_EQ(freqs(8, 1, 4, 1), (std::vector<float>{8, 8}));    // both above C/low
  const auto mixed = freqs(8, 1, 4, 1000);                     // 200π lies between 250 and 1000
  EXPECT_EQ(mixed[0], 1.0f);
  const double m = (1000 / (200 * M_PI) - 1) / 3;
  EXPECT_FLOAT_EQ(mixed[1], static_cast<float>(1 / ((1 - m) / 8 + m)));
}

TEST(HfRows, GathersRowsAndColumnsJoinsAndComputes) {
  TempDir dir;
  TinyCheckpoint tiny;
  tiny.f32("a", {3, 4}, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23});
  tiny.f32("b", {3, 2}, {100, 101, 110, 111, 120, 121});
  dir.write("model.safetensors", tiny.bytes());
  const Checkpoint checkpoint = Checkpoint::open(dir.path());
  Piece piece;
  piece.source = &checkpoint.tensors()[0];
  piece.width = 4;
  auto read = [&](uint64_t first, uint64_t count) {
    std::vector<float> out(count * piece.output_width());
    read_rows(checkpoint, piece, first, count, out.data());
    return out;
  };
  piece.first_row = 1;
  piece.row_count = 2;
  EXPECT_EQ(read(1, 1), (std::vector<float>{20, 21, 22, 23}));
  piece.rows = {2, 0, 1};
  EXPECT_EQ(read(0, 2), (std::vector<float>{20, 21, 22, 23, 0, 1, 2, 3}));
  piece.columns = {3, 0};
  EXPECT_EQ(read(1, 2), (std::vector<float>{3, 0, 13, 10}));
  piece.right = &checkpoint.tensors()[1];
  piece.right_width = 2;
  piece.op = Op::AddOne;
  EXPECT_EQ(read(0, 1), (std::vector<float>{24, 21, 121, 122}));
}

TEST(HfRows, DecodesEveryRealType) {
  const uint16_t half[2] = {0x3c00, 0xc500}, brain[2] = {0x3f80, 0xc0a0};
  const double wide[2] = {1, -5};
  float out[2];
  for (const auto& [type, bytes] : std::vector<std::pair<SourceType, const void*>>{
           {SourceType::F16, half}, {SourceType::BF16, brain}, {SourceType::F64, wide}}) {
    decode(type, static_cast<const std::byte*>(bytes), out, 2);
    EXPECT_EQ(out[0], 1.0f) << to_string(type);
    EXPECT_EQ(out[1], -5.0f) << to_string(type);
  }
  testing::expect_error(ErrorKind::Argument, "I64", [&] { decode(SourceType::I64, nullptr, out, 0); });
}

TEST(HfRows, NegExpIsTheRoundedExponential) {
  TempDir dir;
  TinyCheckpoint tiny;
  tiny.f32("a", {3}, {0.0f, 1.5f, -20.0f});
  dir.write("model.safetensors", tiny.bytes());
  const Checkpoint checkpoint = Checkpoint::open(dir.path());
  Piece piece;
  piece.source = &checkpoint.tensors()[0];
  piece.row_count = 3;
  piece.op = Op::NegExp;
  float out[3];
  read_rows(checkpoint, piece, 0, 3, out);
  EXPECT_EQ(out[0], -1.0f);
  EXPECT_EQ(out[1], -4.48168907f);  // e^1.5 = 4.4816890703...
  EXPECT_EQ(out[2], -2.06115362e-09f);
}

TEST(HfNames, CanonicalAndDropped) {
  EXPECT_EQ(canonical_name("model.language_model.layers.0.x"), "model.layers.0.x");
  EXPECT_EQ(canonical_name("language_model.model.layers.0.x"), "model.layers.0.x");
  EXPECT_EQ(canonical_name("language_model.lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(canonical_name("model.mtp.fc.weight"), "mtp.fc.weight");
  EXPECT_EQ(canonical_name("my_language_model.x"), "my_language_model.x");
  EXPECT_TRUE(is_dropped("model.visual.blocks.0.attn.qkv.weight"));
  EXPECT_TRUE(is_dropped("vision_tower.x"));
  EXPECT_TRUE(is_dropped("model.layers.0.self_attn.rotary_emb.inv_freq"));
  EXPECT_FALSE(is_dropped("model.layers.0.self_attn.q_proj.bias"));
  EXPECT_FALSE(is_dropped("model.visualise.weight"));
}

TEST(HfStorage, WhatStaysF32AndWhatFallsBack) {
  EXPECT_EQ(storage_type("blk.0.ffn_up.weight", 2, 256, DType::Q4_K), DType::Q4_K);
  EXPECT_EQ(storage_type("blk.0.ffn_up.weight", 2, 640, DType::Q4_K), DType::F16);
  EXPECT_EQ(storage_type("blk.0.ffn_up.weight", 2, 640, DType::Q8_0), DType::Q8_0);
  EXPECT_EQ(storage_type("per_layer_token_embd.weight", 2, 160, DType::Q6_K), DType::F16);
  EXPECT_EQ(storage_type("blk.0.indexer.q_proj.weight", 2, 256, DType::Q8_0), DType::Q8_0);
  for (const char* name : {"blk.0.ffn_gate_inp.weight", "blk.0.ffn_gate_inp_shexp.weight", "blk.0.ssm_conv1d.weight",
                           "blk.0.attn_norm.weight", "blk.0.ssm_a"})
    EXPECT_EQ(storage_type(name, 2, 256, DType::F16), DType::F32) << name;
  EXPECT_EQ(storage_type("blk.0.ple_norm_key.weight", 1, 256, DType::F16), DType::F32);
  EXPECT_EQ(storage_type("blk.0.ple_conv1d.weight", 2, 4, DType::BF16), DType::BF16);
}

}  // namespace
}  // namespace strata::gguf::hf
