// Types of the key and value caches: which bits depend on them, how far each moves the logits, and what the rotation of
// the 4-bit types is good for.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "gguf/quant.h"
#include "ops/attention/attention.h"
#include "ops/attention/rotation.h"
#include "support/model_run.h"
#include "support/random_model.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

constexpr DType kTypes[] = {DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0};

CacheOptions caches_of(DType keys, DType values) {
  CacheOptions options = exact_caches();
  options.keys = keys;
  options.values = values;
  return options;
}

std::vector<int32_t> random_ids(int64_t count, int64_t vocabulary) {
  std::vector<int32_t> ids;
  Random choice(11);
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(choice.below(vocabulary)));
  return ids;
}

// Root of the mean square difference, as a share of the reference's spread around each row's mean: softmax does not see
// a constant.
double relative_rms(std::span<const float> a, std::span<const float> reference, int64_t vocabulary) {
  double off = 0, size = 0;
  for (size_t row = 0; row < reference.size(); row += static_cast<size_t>(vocabulary)) {
    double mean = 0, shift = 0;
    for (size_t i = row; i < row + static_cast<size_t>(vocabulary); ++i) {
      mean += double{reference[i]} / static_cast<double>(vocabulary);
      shift += (double{a[i]} - double{reference[i]}) / static_cast<double>(vocabulary);
    }
    for (size_t i = row; i < row + static_cast<size_t>(vocabulary); ++i) {
      off += std::pow(double{a[i]} - double{reference[i]} - shift, 2);
      size += std::pow(double{reference[i]} - mean, 2);
    }
  }
  return std::sqrt(off / size);
}

// Random weights, two layers: nothing but the caches differs between the runs.
struct Tiny {
  explicit Tiny(int head_dim = 32) : path(folder.file("tiny.gguf")) {
    RandomModel::Shape shape;
    shape.head_dim = head_dim;
    RandomModel(shape).write_qwen3(path);
  }
  TempFolder folder;
  std::string path;
};

void same_bits_in_any_step(const std::string& path, int64_t tokens, const CacheOptions& types,
                           const std::vector<int64_t>& steps = {1, 7, 64}) {
  SCOPED_TRACE(std::string(to_string(types.keys)) + " " + std::string(to_string(types.values)));
  ModelRun model(path, 2);
  model.types = types;
  const std::vector<int32_t> ids = random_ids(tokens, model.vocabulary());
  const std::vector<float> whole = model.run(ids);
  for (const int64_t step : steps) {
    const std::vector<float> parts = model.run(ids, step);
    ASSERT_EQ(std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(float)), 0) << step;
  }
}

TEST(KvTypes, RowsDoNotDependOnTheMicroBatch) {
  const Tiny tiny;
  for (const DType type : kTypes) same_bits_in_any_step(tiny.path, 90, caches_of(type, type));
  same_bits_in_any_step(tiny.path, 90, caches_of(DType::Q4_0, DType::Q8_0));
  same_bits_in_any_step(tiny.path, 90, caches_of(DType::BF16, DType::Q4_0));
}

// 270 tokens are beyond the selection budget of 256.
TEST(KvTypes, RowsOfTheDefaultModelDoNotDependOnTheMicroBatch) {
  for (const DType type : {DType::Q8_0, DType::Q4_0})
    same_bits_in_any_step(source_path("models/strata-mini-q8_0.gguf"), 270, caches_of(type, type), {37});
}

// Relative error of a stored value: half a step of its format over the rms of what the step is chosen for. f16 2^-12,
// bf16 2^-9 at worst. A block of 32 normal values has its largest at about 2.1 sigma: q8_0 steps are sigma / 60, rms
// error 1 / 210 of sigma; q4_0 steps are sigma / 3.8, rms error 1 / 13. An error of both keys and values moves the
// output of attention by at most about twice that (values directly, keys through weights that sum to one), and residual
// and norms keep it from growing: twice the value's error in the logits is the limit.
double limit_of(DType type) {
  switch (type) {
    case DType::F16: return 2 * 0x1p-12;
    case DType::BF16: return 2 * 0x1p-9;
    case DType::Q8_0: return 2.0 / 210;
    default: return 2.0 / 13;
  }
}

void near_the_f32_cache(const std::string& path, int64_t tokens) {
  ModelRun model(path, 2);
  const std::vector<int32_t> ids = random_ids(tokens, model.vocabulary());
  const std::vector<float> reference = model.run(ids);
  std::vector<double> off;
  for (const DType type : kTypes) {
    model.types = caches_of(type, type);
    off.push_back(relative_rms(model.run(ids), reference, model.vocabulary()));
    std::printf("%-5s %.2e of %.2e\n", std::string(to_string(type)).c_str(), off.back(), limit_of(type));
    EXPECT_LE(off.back(), limit_of(type)) << to_string(type);
    EXPECT_GT(off.back(), 0) << to_string(type);  // the type reaches the caches
  }
  EXPECT_LT(off[0], off[1]);
  EXPECT_LT(4 * off[2], off[3]);  // 16 times finer steps
}

TEST(KvTypes, LogitsStayNearThoseOfAnF32Cache) {
  const Tiny tiny;
  near_the_f32_cache(tiny.path, 90);
}

TEST(KvTypes, LogitsOfTheDefaultModelStayNear) { near_the_f32_cache(source_path("models/strata-mini-q8_0.gguf"), 200); }

// Keys and values have types of their own.
TEST(KvTypes, EachTypeReachesItsCache) {
  const Tiny tiny;
  ModelRun model(tiny.path);
  const std::vector<int32_t> ids = random_ids(40, model.vocabulary());
  const std::vector<float> reference = model.run(ids);
  model.types = caches_of(DType::Q4_0, DType::F32);
  const std::vector<float> keys = model.run(ids);
  model.types = caches_of(DType::F32, DType::Q4_0);
  const std::vector<float> values = model.run(ids);
  EXPECT_NE(keys, reference);
  EXPECT_NE(values, reference);
  EXPECT_NE(keys, values);
}

std::vector<float> decoded_rows(const PagedRows& rows) {
  const Tensor shape = rows.shape();
  const int64_t width = shape.extent(1) * shape.extent(2);
  std::vector<float> values(static_cast<size_t>(rows.length() * width));
  for (int64_t i = 0; i < rows.length(); ++i)
    gguf::decoder(rows.dtype())(rows.row(i), values.data() + i * width, width);
  return values;
}

// What the first layer caches: 4-bit rows hold rotated keys and values, all other types plain ones. Either way they are
// the f32 ones but for the rounding, whose rms is 1 / 13 of theirs (limit_of) and more where a value beyond 7 steps is
// cut.
TEST(KvTypes, FourBitRowsAreRotatedAndNoOthers) {
  const Tiny tiny;
  ModelRun model(tiny.path);
  const std::vector<int32_t> ids = random_ids(80, model.vocabulary());
  Log log(LogLevel::Error);
  Queue queue(1, log);
  auto cached = [&](const CacheOptions& types, bool rotate_back) {
    Sequence state(model.spec(), 80, types);
    model.run(ids, state);
    std::vector<std::vector<float>> result{decoded_rows(state.layers[0].k), decoded_rows(state.layers[0].v)};
    for (std::vector<float>& rows : result)
      if (rotate_back) rotate_heads(queue, make_f32(rows.data(), {80, 2, 32}));
    return result;
  };
  const auto plain = cached(exact_caches(), false);
  for (const DType type : kTypes) {
    const bool rotated = type == DType::Q4_0;
    const auto right = cached(caches_of(type, type), rotated), wrong = cached(caches_of(type, type), !rotated);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_LE(relative_rms(right[i], plain[i], 32), 1.0 / 10) << to_string(type) << (i == 0 ? " keys" : " values");
      EXPECT_GE(relative_rms(wrong[i], plain[i], 32), 0.5) << to_string(type) << (i == 0 ? " keys" : " values");
    }
  }
}

// A head with one channel 12 times as large as the others: its block's step is 1.5, so that its other 31 channels,
// below 1, are lost. Rotated, the same energy gives every block a step of about 0.3: errors of 3.2 and 0.9 in norm.
TEST(KvTypes, RotationKeepsAHeadWithAnOutlierChannel) {
  constexpr int64_t kCells = 300, kRows = 16, kDim = 128;
  Random random(5);
  Log log(LogLevel::Error);
  Queue queue(1, log);
  auto draw = [&](int64_t rows, float outlier) {
    std::vector<float> values(static_cast<size_t>(rows * kDim));
    for (size_t i = 0; i < values.size(); ++i) values[i] = random.uniform(-1, 1) * (i % kDim == 5 ? outlier : 1.0f);
    for (size_t i = 5; outlier > 1 && i < values.size(); i += kDim) values[i] = std::copysign(outlier, values[i]);
    return values;
  };
  const std::vector<float> q = draw(kRows, 1.0f / 12), k = draw(kCells, 12), v = draw(kCells, 12);
  std::vector<int32_t> n_kv(kRows, kCells);
  auto run = [&](DType k_type, DType v_type, bool rotate) {
    std::vector<float> queries = q, keys = k, values = v, out(q.size());
    const Tensor out_tensor = make_f32(out.data(), {kRows, 1, kDim}),
                 q_tensor = make_f32(queries.data(), {kRows, 1, kDim});
    auto store = [&](std::vector<float>& rows, DType type) {
      if (rotate && type == DType::Q4_0) rotate_heads(queue, make_f32(rows.data(), {kCells, 1, kDim}));
      std::vector<char> stored(bytes_of(type, kCells * kDim));
      gguf::encoder(type)(rows.data(), stored.data(), kCells * kDim);
      return stored;
    };
    std::vector<char> k_rows = store(keys, k_type), v_rows = store(values, v_type);
    if (rotate && k_type == DType::Q4_0) rotate_heads(queue, q_tensor);
    attention(queue, {q_tensor, make_tensor(k_rows.data(), k_type, {kCells, 1, kDim}),
                      make_tensor(v_rows.data(), v_type, {kCells, 1, kDim}),
                      make_tensor(n_kv.data(), DType::I32, {kRows}), 0.3f, out_tensor});
    if (rotate && v_type == DType::Q4_0) rotate_heads(queue, out_tensor);
    for (size_t i = 5; i < out.size(); i += kDim) out[i] = 0;  // the outlier would drown the others
    return out;
  };
  const std::vector<float> exact = run(DType::F32, DType::F32, false);
  for (const auto& [k_type, v_type] :
       {std::pair{DType::Q4_0, DType::F32}, std::pair{DType::F32, DType::Q4_0}, std::pair{DType::Q4_0, DType::Q4_0}}) {
    const double plain = relative_rms(run(k_type, v_type, false), exact, kDim);
    const double rotated = relative_rms(run(k_type, v_type, true), exact, kDim);
    std::printf("k %s, v %s: %.3f, rotated %.3f\n", std::string(to_string(k_type)).c_str(),
                std::string(to_string(v_type)).c_str(), plain, rotated);
    EXPECT_LT(2 * rotated, plain);
  }
}

// Heads that hold no whole blocks: a clear error before any work, for both settings.
TEST(KvTypes, HeadsOfNoWholeBlocksAreRefused) {
  const Tiny tiny(48);
  const Model model = Model::load(tiny.path);
  auto message = [&](const CacheOptions& types) -> std::string {
    try {
      check_cache_types(model.spec(), types);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Usage);
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(message(caches_of(DType::BF16, DType::F16)), "");
  for (const DType type : {DType::Q8_0, DType::Q4_0})
    for (const bool keys : {false, true}) {
      const std::string text = message(keys ? caches_of(type, DType::F16) : caches_of(DType::F16, type));
      for (const std::string& part : {std::string(keys ? "cache_type_k" : "cache_type_v"), std::string(to_string(type)),
                                      std::string("heads of 48")})
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace strata::test
