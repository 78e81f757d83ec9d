// Re-encoding of files: which tensor gets which type, what is copied, and that the bytes are those of the encoders.
#include "gguf/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "gguf/quant.h"
#include "support/test_files.h"

namespace strata::gguf {
namespace {

using test::TempFolder;

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TensorInfo tensor(const std::string& name, std::vector<uint64_t> ne, DType type = DType::F16) {
  TensorInfo one;
  one.name = name;
  one.type = type;
  one.dims = static_cast<uint32_t>(ne.size());
  std::copy(ne.begin(), ne.end(), one.ne);
  return one;
}

DType chosen(const std::vector<TensorInfo>& tensors, const std::string& scheme, const std::string& name) {
  const std::vector<ChosenType> types = choose_types(tensors, *quant_scheme(scheme));
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name) return types[i].type;
  ADD_FAILURE() << name;
  return DType::I8;
}

std::vector<TensorInfo> transformer(int layers, bool own_head) {
  std::vector<TensorInfo> list{tensor("token_embd.weight", {256, 512})};
  if (own_head) list.push_back(tensor("output.weight", {256, 512}));
  for (int i = layers - 1; i >= 0; --i)  // not in order: layers are counted by number
    for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_down"})
      list.push_back(tensor("blk." + std::to_string(i) + "." + part + ".weight", {256, 256}));
  return list;
}

TEST(QuantScheme, NamesAndFileTypes) {
  EXPECT_EQ(quant_scheme("q4_k_m")->file_type, 15u);
  EXPECT_EQ(quant_scheme("Q4_K_S")->file_type, 14u);
  EXPECT_EQ(quant_scheme("Q5_K_M")->file_type, 17u);
  EXPECT_EQ(quant_scheme("Q3_K_M")->file_type, 12u);
  EXPECT_EQ(quant_scheme("mxfp4")->file_type, 38u);
  EXPECT_EQ(quant_scheme("iq3_s")->file_type, 26u);
  EXPECT_FALSE(quant_scheme("Q9_K"));
  EXPECT_FALSE(quant_scheme(""));
  for (const QuantScheme& scheme : quant_schemes()) EXPECT_TRUE(has_encoder(scheme.base)) << scheme.name;
}

TEST(QuantScheme, TheseAreNeverTouched) {
  for (const char* name :
       {"blk.0.attn_norm.weight", "blk.3.ffn_gate_inp.weight", "blk.3.ffn_gate_inp_shexp.weight",
        "blk.0.ssm_conv1d.weight", "blk.0.ssm_alpha.weight", "blk.0.ssm_beta.weight", "blk.0.ssm_ba.weight",
        "blk.0.indexer.q_proj.weight", "blk.0.indexer.k_proj.weight", "blk.0.hc_attn_inject.weight",
        "blk.0.hc_attn_norm.weight", "blk.1.ple_conv1d.weight", "blk.1.ple_norm_key.weight", "blk.9.nextn.hnorm.weight",
        "blk.0.ssm_a", "blk.0.attn_q.scale"})
    EXPECT_TRUE(keeps_type(tensor(name, {256, 256}))) << name;
  EXPECT_TRUE(keeps_type(tensor("blk.0.attn_q.weight", {256})));                   // a vector
  EXPECT_TRUE(keeps_type(tensor("blk.0.attn_q.weight", {256, 256}, DType::I32)));  // not weights
  for (const char* name : {"token_embd.weight", "output.weight", "blk.0.attn_q.weight", "blk.0.ffn_down_exps.weight",
                           "blk.0.hc_attn_up.weight", "per_layer_token_embd.weight", "blk.9.nextn.eh_proj.weight"})
    EXPECT_FALSE(keeps_type(tensor(name, {256, 256}))) << name;
}

TEST(QuantScheme, MixesGiveMoreBitsWhereTheyCount) {
  const std::vector<TensorInfo> own = transformer(16, true), tied = transformer(16, false);
  EXPECT_EQ(chosen(own, "Q4_K", "output.weight"), DType::Q4_K);
  EXPECT_EQ(chosen(own, "Q4_K_M", "output.weight"), DType::Q6_K);
  EXPECT_EQ(chosen(own, "Q4_K_M", "token_embd.weight"), DType::Q5_K);
  EXPECT_EQ(chosen(tied, "Q4_K_M", "token_embd.weight"), DType::Q6_K);
  EXPECT_EQ(chosen(tied, "Q4_K_S", "token_embd.weight"), DType::Q6_K);
  EXPECT_EQ(chosen(own, "Q4_K_S", "token_embd.weight"), DType::Q4_K);
  // The first and last eighth, and every third in between.
  std::string pattern, small;
  for (int i = 0; i < 16; ++i) {
    const std::string name = "blk." + std::to_string(i) + ".ffn_down.weight";
    pattern += chosen(own, "Q4_K_M", name) == DType::Q6_K ? '6' : '4';
    small += chosen(own, "Q4_K_S", name) == DType::Q5_K ? '5' : '4';
    EXPECT_EQ(chosen(own, "Q3_K_M", name), i == 0 ? DType::Q5_K : DType::Q4_K);
    EXPECT_EQ(chosen(own, "Q5_K_M", name) == DType::Q6_K, pattern.back() == '6');
    EXPECT_EQ(chosen(own, "Q4_K_M", "blk." + std::to_string(i) + ".attn_q.weight"), DType::Q4_K);
  }
  EXPECT_EQ(pattern, "6644644644644666");
  EXPECT_EQ(small, "5544444444444444");
  EXPECT_EQ(chosen(own, "Q3_K_M", "blk.1.attn_v.weight"), DType::Q5_K);
  EXPECT_EQ(chosen(own, "Q3_K_M", "blk.2.attn_v.weight"), DType::Q4_K);
  EXPECT_EQ(chosen(own, "Q3_K_M", "blk.2.attn_output.weight"), DType::Q4_K);
  EXPECT_EQ(chosen(own, "Q3_K_M", "blk.2.attn_q.weight"), DType::Q3_K);
}

TEST(QuantScheme, RowsThatDoNotFitGetTheNextType) {
  EXPECT_EQ(fitting_type(DType::Q4_K, 640), DType::IQ4_NL);
  EXPECT_EQ(fitting_type(DType::IQ3_S, 640), DType::IQ4_NL);
  EXPECT_EQ(fitting_type(DType::Q6_K, 640), DType::Q8_0);
  EXPECT_EQ(fitting_type(DType::Q5_K, 40), DType::F16);
  EXPECT_EQ(fitting_type(DType::MXFP4, 40), DType::F16);
  EXPECT_EQ(fitting_type(DType::Q4_K, 512), DType::Q4_K);
  const std::vector<TensorInfo> list{tensor("per_layer_token_embd.weight", {256, 100}),
                                     tensor("blk.0.ffn_down.weight", {640, 4})};
  EXPECT_EQ(chosen(list, "Q4_K", "per_layer_token_embd.weight"), DType::IQ4_NL);
  EXPECT_EQ(chosen(list, "Q6_K", "per_layer_token_embd.weight"), DType::Q8_0);
  EXPECT_EQ(chosen(list, "Q8_0", "per_layer_token_embd.weight"), DType::Q8_0);
  EXPECT_NE(choose_types(list, *quant_scheme("Q4_K"))[1].note.find("640"), std::string::npos);
}

// A small file: an embedding, a matrix of two experts, a norm, a router.
struct Source {
  TempFolder folder;
  std::string path = folder.file("in.gguf");
  std::map<std::string, std::vector<float>> values;

  explicit Source(DType type = DType::F32, uint32_t alignment = 32) {
    Writer writer(path, alignment);
    writer.add("general.architecture", Value::of_string("llama"));
    writer.add("general.file_type", Value::of_u32(0));
    writer.add("split.count", Value::of_u16(1));
    writer.add("tokenizer.ggml.tokens", Value::of_strings({"a", "b"}));
    const std::vector<TensorInfo> list{
        tensor("token_embd.weight", {256, 40}, type), tensor("blk.0.ffn_up_exps.weight", {512, 3, 2}, type),
        tensor("blk.0.attn_norm.weight", {256}, DType::F32), tensor("blk.0.ffn_gate_inp.weight", {256, 2}, DType::F32)};
    for (const TensorInfo& one : list) writer.add_tensor(one.name, one.type, {one.ne, one.dims});
    writer.begin_data();
    Random random(3);
    for (const TensorInfo& one : list) {
      std::vector<float>& x = values[one.name];
      x.resize(one.elements());
      for (float& value : x) value = random.uniform(-1.f, 1.f) * random.uniform(0.f, 1.f);
      std::vector<std::byte> bytes(bytes_of(one.type, static_cast<int64_t>(x.size())));
      encoder(one.type)(x.data(), bytes.data(), static_cast<int64_t>(x.size()));
      writer.write(bytes.data(), bytes.size());
    }
    writer.commit();
  }
};

QuantizeOptions options_for(const char* scheme, int threads = 1) {
  QuantizeOptions options;
  options.scheme = *quant_scheme(scheme);
  options.threads = threads;
  return options;
}

TEST(Quantize, BytesAreThoseOfTheEncoders) {
  const Source source;
  for (const QuantScheme& scheme : quant_schemes()) {
    const std::string out = source.folder.file("out.gguf");
    const QuantizeReport report = quantize(source.path, out, options_for(std::string(scheme.name).c_str()));
    const File file = File::open(out);
    uint64_t bytes = 0;
    for (const TensorReport& one : report.tensors) {
      const TensorInfo* stored = file.find_tensor(one.source.name);
      ASSERT_NE(stored, nullptr);
      ASSERT_EQ(stored->type, one.type);
      bytes += stored->bytes;
      const std::vector<float>& x = source.values.at(one.source.name);
      std::vector<std::byte> expected(stored->bytes);
      encoder(stored->type)(x.data(), expected.data(), static_cast<int64_t>(x.size()));
      EXPECT_EQ(std::memcmp(file.data(*stored), expected.data(), expected.size()), 0)
          << scheme.name << " " << stored->name;
      // The reported error is that of the decoded bytes.
      std::vector<float> y(x.size());
      decoder(stored->type)(expected.data(), y.data(), static_cast<int64_t>(y.size()));
      double error = 0, power = 0, most = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        error += (double(y[i]) - x[i]) * (double(y[i]) - x[i]);
        power += double(x[i]) * x[i];
        most = std::max(most, std::abs(double(y[i]) - x[i]));
      }
      EXPECT_NEAR(one.relative_rms, std::sqrt(error / power), 1e-12);  // sums of doubles in another order
      EXPECT_EQ(one.max_error, most);
    }
    EXPECT_EQ(report.bytes, bytes);
    EXPECT_EQ(file.get_uint("general.file_type", 0, 100), scheme.file_type);
    EXPECT_EQ(file.find("general.quantization_version") != nullptr, info(scheme.base).quantised);
    EXPECT_EQ(file.find("split.count"), nullptr);
    EXPECT_EQ(file.get_strings("tokenizer.ggml.tokens")->size(), 2u);
  }
}

TEST(Quantize, ThreadsDoNotChangeTheFile) {
  const Source source;
  const std::string one = source.folder.file("1.gguf"), five = source.folder.file("5.gguf");
  const QuantizeReport a = quantize(source.path, one, options_for("Q4_K_M", 1));
  const QuantizeReport b = quantize(source.path, five, options_for("Q4_K_M", 5));
  EXPECT_EQ(contents(one), contents(five));
  for (size_t i = 0; i < a.tensors.size(); ++i) EXPECT_EQ(a.tensors[i].relative_rms, b.tensors[i].relative_rms);
}

// More bits cannot restore what fewer have lost: such tensors are copied. Plain types are always written as asked.
TEST(Quantize, FromQuantisedFiles) {
  const Source source(DType::Q4_0, 64);
  const std::string out = source.folder.file("out.gguf");
  std::string warning;
  QuantizeOptions options = options_for("Q8_0");
  options.warn = [&](const std::string& message) { warning += message; };
  EXPECT_FALSE(quantize(source.path, out, options).tensors[0].encoded);
  EXPECT_EQ(File::open(out).find_tensor("token_embd.weight")->type, DType::Q4_0);
  EXPECT_EQ(File::open(out).get_uint("general.alignment", 1, 1000), 64u);
  EXPECT_EQ(warning, "");
  options.scheme = *quant_scheme("Q3_K");
  EXPECT_TRUE(quantize(source.path, out, options).tensors[0].encoded);
  EXPECT_NE(warning.find("quantised already"), std::string::npos);
  const QuantizeReport plain = quantize(source.path, out, options_for("F32"));
  EXPECT_EQ(plain.tensors[0].relative_rms, 0.0);
  EXPECT_EQ(File::open(out).find_tensor("token_embd.weight")->type, DType::F32);
}

struct ImportanceCase {
  std::vector<float> sums;
  uint64_t columns = 512, matrices = 2;
  std::vector<float> counts{10.f, 5.f};
};

std::string write_importance(const TempFolder& folder, const ImportanceCase& c) {
  const std::string path = folder.file("importance.gguf");
  Writer writer(path);
  writer.add("general.type", Value::of_string("imatrix"));
  writer.add_tensor("blk.0.ffn_up_exps.weight.in_sum2", DType::F32, std::vector<uint64_t>{c.columns, c.matrices});
  writer.add_tensor("blk.0.ffn_up_exps.weight.counts", DType::F32, std::vector<uint64_t>{1, c.counts.size()});
  writer.begin_data();
  writer.write(c.sums.data(), c.sums.size() * sizeof(float));
  writer.write(c.counts.data(), c.counts.size() * sizeof(float));
  writer.commit();
  return path;
}

// Each matrix is encoded with its own row of importance, divided by its own count; a count of 0 means none.
TEST(Quantize, ImportanceReachesItsMatrix) {
  const Source source;
  const std::string name = "blk.0.ffn_up_exps.weight", out = source.folder.file("out.gguf");
  Random random(8);
  ImportanceCase c;
  for (int i = 0; i < 1024; ++i) c.sums.push_back(std::exp(random.uniform(-3.f, 3.f)));
  c.counts = {4.f, 0.f};
  QuantizeOptions options = options_for("IQ4_XS", 2);
  options.importance = write_importance(source.folder, c);
  const QuantizeReport report = quantize(source.path, out, options);
  EXPECT_TRUE(report.tensors[1].weighted);
  EXPECT_FALSE(report.tensors[0].weighted);
  const File file = File::open(out);
  const std::vector<float>& x = source.values.at(name);
  std::vector<std::byte> expected(bytes_of(DType::IQ4_XS, 3072)), plain(expected.size());
  for (int row = 0; row < 6; ++row) {
    weighted_encoder(DType::IQ4_XS)(&x[512 * static_cast<size_t>(row)], row < 3 ? c.sums.data() : nullptr,
                                    expected.data() + 272 * row, 512);
  }
  encoder(DType::IQ4_XS)(x.data(), plain.data(), 3072);
  EXPECT_NE(plain, expected);
  EXPECT_EQ(std::memcmp(file.data(*file.find_tensor(name)), expected.data(), expected.size()), 0);
}

TEST(Quantize, ImportanceThatDoesNotFitIsRefused) {
  const Source source;
  const std::string out = source.folder.file("out.gguf");
  QuantizeOptions options = options_for("Q4_K");
  auto fails = [&](const std::string& part) {
    try {
      quantize(source.path, out, options);
      ADD_FAILURE() << "no error: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    EXPECT_FALSE(std::filesystem::exists(out));
  };
  options.importance = write_importance(source.folder, {std::vector<float>(256), 256, 1, {1.f}});
  fails("512 columns and 2 matrices");
  options.importance = source.path;
  fails("in_sum2");
  options.importance = source.folder.file("none.gguf");
  fails("none.gguf");
  options.scheme = *quant_scheme("Q8_0");  // no type that uses importance
  options.importance = write_importance(source.folder, {std::vector<float>(1024, 1.f)});
  fails("none of the tensors");
}

TEST(Quantize, NothingHalfWrittenStays) {
  const Source source;
  const std::string out = source.folder.file("out.gguf");
  std::atomic<bool> cancelled{false};
  QuantizeOptions options = options_for("Q4_K");
  options.cancelled = &cancelled;
  int calls = 0;
  options.progress = [&](uint64_t done, uint64_t total, const std::string&) {
    EXPECT_LE(done, total);
    cancelled = ++calls == 2;
  };
  try {
    quantize(source.path, out, options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Interrupted);
  }
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_FALSE(std::filesystem::exists(out + ".partial"));
  EXPECT_THROW(quantize(source.path, source.path, options_for("Q4_K")), Error);  // onto itself
  EXPECT_EQ(plan_quantize(source.path, options_for("Q4_K")).tensors.size(), 4u);
}

}  // namespace
}  // namespace strata::gguf
