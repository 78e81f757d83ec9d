#include "gguf/quantize.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/thread_pool.h"
#include "gguf/importance.h"
#include "gguf/layout.h"
#include "gguf/quant.h"

namespace strata::gguf {
namespace {

constexpr uint64_t kChunkElements = 1u << 20;  // 4 MiB of f32 in, less out
constexpr std::string_view kFileType = "general.file_type", kVersionKey = "general.quantization_version";

int threads_of(const QuantizeOptions& options) {
  const int wanted = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(wanted, 1, 256);
}

void warn(const QuantizeOptions& options, const std::string& message) {
  if (options.warn) options.warn(message);
}

double bits(DType type) { return 8.0 * info(type).block_bytes / info(type).block_elements; }

QuantizeReport make_plan(const File& file, const std::optional<Importance>& importance,
                         const QuantizeOptions& options) {
  QuantizeReport report;
  const std::vector<ChosenType> chosen = choose_types(file.tensors(), options.scheme);
  size_t requantised = 0, weighted = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const TensorInfo& source = file.tensors()[i];
    TensorReport one{.source = source, .type = chosen[i].type, .note = chosen[i].note};
    const bool quantised = info(source.type).quantised;
    if (quantised && !chosen[i].kept && info(one.type).quantised && one.type != source.type &&
        bits(one.type) >= bits(source.type)) {
      one.type = source.type;
      one.note = "kept: more bits would hold no more";
    }
    one.encoded = one.type != source.type;
    one.bytes = bytes_of(one.type, static_cast<int64_t>(source.elements()));
    one.weighted = one.encoded && importance && uses_weights(one.type) && !importance->of(source).empty();
    requantised += quantised && one.encoded && info(one.type).quantised;
    weighted += one.weighted;
    report.source_bytes += source.bytes;
    report.bytes += one.bytes;
    report.elements += source.elements();
    report.tensors.push_back(std::move(one));
  }
  if (requantised > 0)
    warn(options, std::to_string(requantised) +
                      " tensors are quantised already: errors add up; start from F16 or BF16 if you can");
  if (importance && weighted == 0)
    throw Error(ErrorKind::Model, "has importance for none of the tensors that would use it", options.importance);
  return report;
}

std::optional<Importance> read_importance(const QuantizeOptions& options) {
  if (options.importance.empty()) return std::nullopt;
  return std::make_optional<Importance>(options.importance);
}

void copy_metadata(const File& file, const QuantScheme& scheme, Writer& writer) {
  const bool quantised = info(scheme.base).quantised;
  auto replacement = [&](const std::string& key) -> std::optional<Value> {
    if (key == kFileType) return Value::of_u32(scheme.file_type);
    if (key == kVersionKey) return Value::of_u32(2);
    return std::nullopt;
  };
  for (const auto& [key, value] : file.metadata()) {
    if (key == kAlignmentKey || key.starts_with("split.") || (key == kVersionKey && !quantised)) continue;
    writer.add(key, replacement(key).value_or(value));
  }
  if (file.find(kFileType) == nullptr) writer.add(std::string(kFileType), *replacement(std::string(kFileType)));
  if (quantised && file.find(kVersionKey) == nullptr) writer.add(std::string(kVersionKey), Value::of_u32(2));
}

struct RowError {
  double error = 0, power = 0, most = 0;
  uint64_t not_finite = 0;
};

RowError compare(const float* x, const float* y, uint64_t n) {
  RowError row;
  for (uint64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) {
      ++row.not_finite;
      continue;
    }
    const double miss = static_cast<double>(y[i]) - x[i];
    row.error += miss * miss;
    row.power += static_cast<double>(x[i]) * x[i];
    row.most = std::max(row.most, std::fabs(miss));
  }
  return row;
}

class Stream {
 public:
  Stream(const File& file, const std::optional<Importance>& importance, const QuantizeOptions& options, Writer& writer,
         uint64_t total)
      : file_(file),
        importance_(importance),
        options_(options),
        writer_(writer),
        pool_(threads_of(options)),
        total_(total) {}

  void write(TensorReport& report) {
    const TensorInfo& source = report.source;
    const uint64_t width = source.ne[0], rows = source.elements() / width,
                   step = std::max<uint64_t>(1, kChunkElements / width);
    std::vector<float> weights;
    if (report.weighted) weights = importance_->of(source);
    RowError sum;
    for (uint64_t row = 0; row < rows; row += step) {
      check(source.name);
      const uint64_t count = std::min(step, rows - row);
      if (report.encoded)
        encode(report, weights, row, count, sum);
      else
        copy(source, row, count);
    }
    report.relative_rms = sum.power > 0 ? std::sqrt(sum.error / sum.power) : 0;
    report.max_error = sum.most;
    if (sum.not_finite > 0)
      warn(options_, source.name + " holds " + std::to_string(sum.not_finite) + " NaN or infinite values");
  }

 private:
  void check(const std::string& name) {
    if (options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed))
      throw Error(ErrorKind::Interrupted, "quantising stopped; nothing was written");
    if (options_.progress) options_.progress(done_, total_, name);
    file_.check_sizes();
  }

  void put(const std::byte* bytes, uint64_t size) {
    writer_.write(bytes, size);
    done_ += size;
  }

  void copy(const TensorInfo& source, uint64_t row, uint64_t count) {
    const uint64_t row_bytes = bytes_of(source.type, static_cast<int64_t>(source.ne[0]));
    put(file_.data(source) + row * row_bytes, count * row_bytes);
  }

  // Rows are independent of each other and of the thread that encodes them; their errors are added in order.
  void encode(const TensorReport& report, const std::vector<float>& weights, uint64_t first, uint64_t count,
              RowError& sum) {
    const TensorInfo& source = report.source;
    const uint64_t width = source.ne[0];
    const auto elements = static_cast<int64_t>(width);
    const uint64_t in_bytes = bytes_of(source.type, elements), out_bytes = bytes_of(report.type, elements);
    const DecodeRow read = decoder(source.type), back = decoder(report.type);
    const EncodeWeightedRow encode_row = weighted_encoder(report.type);
    const std::byte* in = file_.data(source);
    blocks_.resize(count * out_bytes);
    errors_.resize(count);
    scratch_.resize(static_cast<size_t>(pool_.threads()) * 2 * width);
    pool_.run(static_cast<int64_t>(count), ThreadPool::grain_of(16 * elements),
              [&](int64_t begin, int64_t end, int thread) {
                float* x = scratch_.data() + static_cast<size_t>(thread) * 2 * width;
                float* y = x + width;
                for (auto r = static_cast<uint64_t>(begin); r < static_cast<uint64_t>(end); ++r) {
                  const uint64_t row = first + r, matrix = row / source.ne[1];
                  std::byte* out = blocks_.data() + r * out_bytes;
                  read(in + row * in_bytes, x, elements);
                  encode_row(x, weights.empty() ? nullptr : weights.data() + matrix * width, out, elements);
                  back(out, y, elements);
                  errors_[r] = compare(x, y, width);
                }
              });
    for (const RowError& row : errors_) {
      sum.error += row.error;
      sum.power += row.power;
      sum.most = std::max(sum.most, row.most);
      sum.not_finite += row.not_finite;
    }
    put(blocks_.data(), blocks_.size());
  }

  const File& file_;
  const std::optional<Importance>& importance_;
  const QuantizeOptions& options_;
  Writer& writer_;
  ThreadPool pool_;
  uint64_t done_ = 0, total_ = 0;
  std::vector<std::byte> blocks_;
  std::vector<float> scratch_;
  std::vector<RowError> errors_;
};

uint32_t alignment_of(const File& file) {
  return static_cast<uint32_t>(file.get_uint(kAlignmentKey, kMinAlignment, kMaxAlignment).value_or(kDefaultAlignment));
}

}  // namespace

QuantizeReport quantize(const std::string& input, const std::string& output, const QuantizeOptions& options) {
  const File file = File::open(input);
  std::error_code ignored;
  if (std::filesystem::equivalent(input, output, ignored))
    throw Error(ErrorKind::Argument, "the output is the input: give another name", output);
  const std::optional<Importance> importance = read_importance(options);
  QuantizeReport report = make_plan(file, importance, options);
  Writer writer(output, alignment_of(file));
  copy_metadata(file, options.scheme, writer);
  for (const TensorReport& tensor : report.tensors)
    writer.add_tensor(tensor.source.name, tensor.type, {tensor.source.ne, tensor.source.dims});
  writer.begin_data();
  Stream stream(file, importance, options, writer, report.bytes);
  for (TensorReport& tensor : report.tensors) stream.write(tensor);
  writer.commit();
  return report;
}

QuantizeReport plan_quantize(const std::string& input, const QuantizeOptions& options) {
  return make_plan(File::open(input), read_importance(options), options);
}

}  // namespace strata::gguf
