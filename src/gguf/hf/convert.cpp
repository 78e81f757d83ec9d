#include "gguf/hf/convert.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/thread_pool.h"
#include "gguf/gguf.h"
#include "gguf/hf/metadata.h"
#include "gguf/hf/storage.h"
#include "gguf/hf/vocabulary.h"
#include "gguf/quant.h"

namespace strata::gguf::hf {
namespace {

constexpr uint64_t kChunkElements = 1u << 20;  // 4 MiB of f32: large enough that calls do not count
constexpr float kFirstF16Infinity = 65520.0f;

// Everything that is known before the first byte is written.
struct Conversion {
  Checkpoint checkpoint;
  Config config;
  Plan plan;
  std::vector<KeyValue> metadata;
  std::vector<DType> types;  // one per target
  bool vocabulary = false;
};

std::string name_of(const std::string& directory) {
  std::filesystem::path path = std::filesystem::absolute(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

void choose_types(Conversion& c, DType asked, const Warn& warn) {
  std::string example;
  size_t fallbacks = 0;
  for (const Target& target : c.plan.targets) {
    const DType type = storage_type(target.name, target.ne.size(), target.ne[0], asked);
    c.types.push_back(type);
    if (type != DType::F16 || asked == DType::F16) continue;
    if (fallbacks++ == 0) example = target.name + ", rows of " + std::to_string(target.ne[0]);
  }
  if (fallbacks > 0)
    warn(std::to_string(fallbacks) + " tensors are written as F16: their rows are not whole blocks of " +
         std::string(to_string(asked)) + " (" + std::to_string(info(asked).block_elements) + "), for instance " +
         example);
}

Conversion prepare(const std::string& directory, DType type, const Warn& warn) {
  encoder(type);  // refuses types without one before anything is read
  Checkpoint checkpoint = Checkpoint::open(directory);
  Conversion c{std::move(checkpoint), read_config(directory, warn), {}, {}, {}, false};
  c.plan = plan_conversion(c.checkpoint, c.config, warn);
  c.metadata = model_metadata(c.config, c.plan, name_of(directory), type, warn);
  const std::vector<KeyValue> vocabulary = read_vocabulary(directory, c.config, warn);
  c.vocabulary = !vocabulary.empty();
  c.metadata.insert(c.metadata.end(), vocabulary.begin(), vocabulary.end());
  choose_types(c, type, warn);
  if (c.plan.dropped > 0)
    warn(std::to_string(c.plan.dropped) + " tensors of other modalities and buffers are left out");
  return c;
}

// Finds values that the chosen type turns into something else; one warning per tensor.
class ValueCheck {
 public:
  explicit ValueCheck(DType type) : f16_(type == DType::F16) {}

  void scan(const float* values, uint64_t elements) {
    uint64_t not_finite = 0, beyond = 0;
    for (uint64_t i = 0; i < elements; ++i) {
      const float magnitude = std::fabs(values[i]);
      not_finite += !(magnitude <= 3.4028235e38f);
      beyond += magnitude >= kFirstF16Infinity;
    }
    not_finite_ += not_finite;
    beyond_ += beyond;
  }
  void report(const std::string& tensor, const Warn& warn) const {
    if (not_finite_ > 0) warn(tensor + " holds " + std::to_string(not_finite_) + " NaN or infinite values");
    if (f16_ && beyond_ > 0)
      warn(tensor + " holds " + std::to_string(beyond_) + " values beyond the range of F16, stored as infinity");
  }

 private:
  bool f16_;
  uint64_t not_finite_ = 0, beyond_ = 0;
};

int threads_of(const ConvertOptions& options) {
  const int wanted = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(wanted, 1, 256);
}

class Stream {
 public:
  Stream(const Conversion& conversion, Writer& writer, const ConvertOptions& options, const Warn& warn)
      : conversion_(conversion), writer_(writer), options_(options), warn_(warn), pool_(threads_of(options)) {
    for (const TensorInfo& tensor : writer.tensors()) total_ += tensor.bytes;
  }

  void write(const Target& target, DType type) {
    ValueCheck check(type);
    auto flush = [&](const float* values, uint64_t elements) {
      check.scan(values, elements);
      encode(values, elements, type, target.name);
    };
    if (!target.constants.empty()) flush(target.constants.data(), target.constants.size());
    for (const Piece& piece : target.pieces) {
      const uint64_t width = piece.output_width(), rows = piece.output_rows();
      const uint64_t step = std::max<uint64_t>(1, kChunkElements / width);
      for (uint64_t row = 0; row < rows; row += step) {
        const uint64_t count = std::min(step, rows - row);
        values_.resize(count * width);
        read_rows(conversion_.checkpoint, piece, row, count, values_.data());
        flush(values_.data(), count * width);
      }
    }
    check.report(target.name, warn_);
  }

 private:
  void encode(const float* values, uint64_t elements, DType type, const std::string& name) {
    if (options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed))
      throw Error(ErrorKind::Interrupted, "conversion stopped; nothing was written");
    if (options_.progress) options_.progress(done_, total_, name);
    blocks_.resize(bytes_of(type, static_cast<int64_t>(elements)));
    const EncodeRow encode_row = encoder(type);
    const DTypeInfo& block = info(type);
    const auto items = static_cast<int64_t>(elements / block.block_elements);
    const int64_t operations = 16 * static_cast<int64_t>(block.block_elements);  // the cheapest quantiser, roughly
    pool_.run(items, ThreadPool::grain_of(operations), [&](int64_t begin, int64_t end, int) {
      encode_row(values + begin * block.block_elements, blocks_.data() + begin * block.block_bytes,
                 (end - begin) * block.block_elements);
    });
    writer_.write(blocks_.data(), blocks_.size());
    done_ += blocks_.size();
  }

  const Conversion& conversion_;
  Writer& writer_;
  const ConvertOptions& options_;
  const Warn& warn_;
  std::vector<float> values_;
  std::vector<std::byte> blocks_;
  ThreadPool pool_;
  uint64_t done_ = 0, total_ = 0;
};

Warn warn_of(const ConvertOptions& options) {
  return options.warn ? options.warn : [](const std::string&) {};
}

}  // namespace

void convert(const std::string& directory, const std::string& output, const ConvertOptions& options) {
  const Warn warn = warn_of(options);
  const Conversion c = prepare(directory, options.type, warn);
  Writer writer(output);
  for (const KeyValue& entry : c.metadata) writer.add(entry.key, entry.value);
  for (size_t i = 0; i < c.plan.targets.size(); ++i)
    writer.add_tensor(c.plan.targets[i].name, c.types[i], c.plan.targets[i].ne);
  writer.begin_data();
  Stream stream(c, writer, options, warn);
  for (size_t i = 0; i < c.plan.targets.size(); ++i) stream.write(c.plan.targets[i], c.types[i]);
  writer.commit();
}

ConversionSummary describe_conversion(const std::string& directory, const ConvertOptions& options) {
  const Conversion c = prepare(directory, options.type, warn_of(options));
  ConversionSummary summary;
  summary.architecture = std::string(architecture(c.config.family));
  summary.tensors = c.plan.targets.size();
  summary.mtp_blocks = c.plan.mtp_blocks;
  summary.vocabulary = c.vocabulary;
  for (size_t i = 0; i < c.plan.targets.size(); ++i) {
    uint64_t elements = 1;
    for (const uint64_t extent : c.plan.targets[i].ne) elements *= extent;
    summary.tensor_bytes += bytes_of(c.types[i], static_cast<int64_t>(elements));
  }
  return summary;
}

}  // namespace strata::gguf::hf
