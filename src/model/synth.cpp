#include "model/synth.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/checked.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "gguf/hf/metadata.h"
#include "gguf/quant_random.h"
#include "model/ngram_constants.h"
#include "model/synth_tensors.h"

namespace strata {
namespace {

constexpr uint64_t kChunkBytes = 8u << 20;
constexpr uint64_t kNgramSeed = 1234;  // of published checkpoints
constexpr int kNgramSize = 3, kConvolution = 4;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::Usage, message, "shape"); }

void need(int value, const char* what) {
  if (value < 1) refuse(std::string(what) + " must be at least 1");
}

void divides(int part, int whole, const char* part_name, const char* whole_name) {
  if (whole % part != 0)
    refuse(std::string(part_name) + " " + std::to_string(part) + " does not divide " + whole_name + " " +
           std::to_string(whole));
}

void check(const SynthShape& s) {
  const SynthFamily f = synth_family(s);
  for (const auto& [value, what] : std::initializer_list<std::pair<int, const char*>>{{s.layers, "layers"},
                                                                                      {s.hidden, "hidden"},
                                                                                      {s.heads, "heads"},
                                                                                      {s.kv_heads, "kv-heads"},
                                                                                      {s.head_dim, "head-dim"},
                                                                                      {s.context, "context"},
                                                                                      {s.vocabulary, "vocab"}})
    need(value, what);
  divides(s.kv_heads, s.heads, "kv-heads", "heads");
  divides(2, rotary_dims(s, f), "2", "the rotated dimensions");
  if (rotary_dims(s, f) < 2 || rotary_dims(s, f) > s.head_dim) refuse("head-dim is too small");
  if (f.experts) {
    need(s.experts, "experts");
    need(s.experts_used, "experts-used");
    need(s.expert_inner, "expert-ffn");
    if (s.experts_used > s.experts) refuse("experts-used is above experts");
  } else {
    need(s.inner, "ffn");
  }
  if (s.mtp > 0 && !f.hybrid) refuse(s.arch + " has no MTP block; the hybrid architectures have");
  if (!f.hybrid) return;
  need(s.interval, "attention-interval");
  need(s.key_heads, "key-heads");
  need(s.value_heads, "value-heads");
  need(s.state_size, "state-size");
  divides(s.key_heads, s.value_heads, "key-heads", "value-heads");
  if (!f.hyper) return;
  if (s.streams < 2) refuse("streams must be at least 2");
  need(s.low_rank, "low-rank");
  if (s.index_heads > 0) {
    need(s.index_ratio, "index-ratio");
    divides(s.index_ratio, std::max(s.index_budget, 1), "index-ratio", "index-budget");
    if (s.index_dim < rotary_dims(s, f))
      refuse("index-dim is below the rotated dimensions " + std::to_string(rotary_dims(s, f)));
  }
  if (s.ngram_heads == 0) return;
  need(s.ngram_base, "ngram-base");
  divides(2 * s.ngram_heads, s.hidden, "twice ngram-heads", "hidden");
  if (s.layers < 2 || !synth_recurrent(s)[1])
    refuse("the n-gram table sits in layer 1, which must be a delta-net layer");
}

gguf::hf::Family hf_family(const std::string& arch) {
  using gguf::hf::Family;
  for (const Family family : {Family::Llama, Family::Qwen3, Family::Qwen3Moe, Family::Qwen3Next, Family::Qwen35,
                              Family::Qwen35Moe, Family::Qwen4Exp})
    if (gguf::hf::architecture(family) == arch) return family;
  refuse("unknown architecture " + arch);
}

// The shape as the config of a checkpoint, from which the metadata follows as in a conversion.
gguf::hf::Config config_of(const SynthShape& s, const NgramParams& ngram) {
  const SynthFamily f = synth_family(s);
  auto u64 = [](int value) { return static_cast<uint64_t>(value); };
  gguf::hf::Config c;
  c.family = hf_family(s.arch);
  c.vocab = u64(s.vocabulary), c.hidden = u64(s.hidden), c.layers = u64(s.layers), c.heads = u64(s.heads);
  c.kv_heads = u64(s.kv_heads), c.head_dim = u64(s.head_dim), c.context = u64(s.context), c.intermediate = u64(s.inner);
  c.norm_epsilon = s.arch == "llama" ? 1e-5 : 1e-6;
  c.rope.theta = s.rope_base;
  c.rope.dimensions = u64(rotary_dims(s, f));
  const int pairs = rotary_dims(s, f) / 2;
  c.rope.sections = {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0};
  if (f.experts) c.experts = {u64(s.experts), u64(s.experts_used), u64(s.expert_inner), u64(s.shared_inner), true};
  if (f.hybrid) {
    c.recurrent = synth_recurrent(s);
    c.delta = {kConvolution, u64(s.state_size), u64(s.state_size), u64(s.key_heads), u64(s.value_heads)};
  }
  if (!f.hyper) return c;
  c.sigmoid_output_gate = true;
  c.streams = u64(s.streams), c.stream_rank = u64(s.low_rank);
  c.indexer = {u64(s.index_heads), u64(s.index_dim), u64(s.index_budget), u64(s.index_ratio)};
  if (s.ngram_heads == 0) return c;
  c.ple = {{1}, u64(s.hidden), kConvolution, kNgramSize, u64(s.ngram_heads), 1};
  c.eos = {static_cast<uint64_t>(ngram.eos)};
  return c;
}

// tokenizer.* of a file, padded to the vocabulary.
struct Tokenizer {
  std::vector<gguf::KeyValue> metadata;
  int64_t size = 0;
  int32_t eos = 0;
};

Tokenizer read_tokenizer(const std::string& path) {
  const gguf::File file = gguf::File::open(path);
  const std::vector<std::string>* tokens = file.get_strings("tokenizer.ggml.tokens");
  if (tokens == nullptr || tokens->empty()) throw Error(ErrorKind::Model, "has no tokenizer to copy", path);
  Tokenizer tokenizer;
  tokenizer.size = static_cast<int64_t>(tokens->size());
  tokenizer.eos = static_cast<int32_t>(file.get_uint("tokenizer.ggml.eos_token_id", 0, tokens->size() - 1).value_or(0));
  for (const gguf::KeyValue& entry : file.metadata())
    if (entry.key.starts_with("tokenizer.")) tokenizer.metadata.push_back(entry);
  return tokenizer;
}

void pad(Tokenizer& tokenizer, int64_t vocabulary) {
  for (auto& [key, value] : tokenizer.metadata) {
    const auto count = static_cast<size_t>(vocabulary);
    if (key == "tokenizer.ggml.tokens")
      for (size_t id = value.ss.size(); id < count; ++id) value.ss.push_back("[PAD" + std::to_string(id) + "]");
    if (key == "tokenizer.ggml.token_type") value.is.resize(std::max(count, value.is.size()), 5);
    if (key == "tokenizer.ggml.scores") value.fs.resize(std::max(count, value.fs.size()), 0);
  }
}

struct Plan {
  SynthShape shape;
  std::vector<gguf::KeyValue> metadata;
  std::vector<SynthTensor> tensors;
  std::vector<DType> types;
  SynthSummary summary;
};

void choose_tensor_types(const gguf::QuantScheme& scheme, Plan& plan) {
  std::vector<gguf::TensorInfo> infos;
  for (const SynthTensor& tensor : plan.tensors) {
    gguf::TensorInfo one;
    one.name = tensor.name;
    one.dims = static_cast<uint32_t>(tensor.ne.size());
    uint64_t elements = 1;
    for (size_t i = 0; i < tensor.ne.size(); ++i) {
      one.ne[i] = tensor.ne[i];
      if (!checked_mul(elements, tensor.ne[i], elements) || elements > (uint64_t{1} << 56))
        refuse("tensor " + tensor.name + " would be too large");
    }
    plan.summary.parameters += elements;
    infos.push_back(std::move(one));
  }
  const std::vector<gguf::ChosenType> chosen = gguf::choose_types(infos, scheme);
  for (size_t i = 0; i < chosen.size(); ++i) {
    plan.types.push_back(chosen[i].type);
    plan.summary.bytes += bytes_of(chosen[i].type, static_cast<int64_t>(infos[i].elements()));
  }
  plan.summary.tensors = infos.size();
}

Plan make_plan(const SynthOptions& options) {
  Tokenizer tokenizer = read_tokenizer(options.tokenizer);
  Plan plan{.shape = options.shape, .metadata = {}, .tensors = {}, .types = {}, .summary = {}};
  SynthShape& shape = plan.shape;
  if (shape.vocabulary == 0) shape.vocabulary = static_cast<int>(tokenizer.size);
  if (shape.vocabulary < tokenizer.size)
    throw Error(ErrorKind::Model,
                "has " + std::to_string(tokenizer.size) + " tokens, more than the vocabulary of " +
                    std::to_string(shape.vocabulary),
                options.tokenizer);
  check(shape);
  pad(tokenizer, shape.vocabulary);

  NgramParams ngram;
  if (synth_family(shape).hyper && shape.ngram_heads > 0)
    ngram = ngram_params(kNgramSize - 1, shape.ngram_heads, tokenizer.eos, kNgramSeed,
                         static_cast<uint64_t>(shape.vocabulary), 0, static_cast<uint64_t>(shape.ngram_base));
  gguf::hf::Plan hf_plan;
  hf_plan.mtp_blocks = static_cast<uint64_t>(shape.mtp);
  hf_plan.ple = {ngram.multipliers, ngram.head_offsets, ngram.head_sizes, 0};
  if (shape.ngram_heads > 0) hf_plan.ple.row_width = static_cast<uint64_t>(shape.hidden / (2 * shape.ngram_heads));
  plan.metadata = gguf::hf::model_metadata(config_of(shape, ngram), hf_plan, shape.name, options.scheme.base,
                                           [](const std::string&) {});
  for (auto& [key, value] : plan.metadata)
    if (key == "general.file_type") value = gguf::Value::of_u32(options.scheme.file_type);
  plan.metadata.insert(plan.metadata.end(), tokenizer.metadata.begin(), tokenizer.metadata.end());
  plan.tensors = synth_tensors(shape, ngram);
  choose_tensor_types(options.scheme, plan);
  return plan;
}

double log_between(double low, double high, double at) { return low * std::pow(high / low, at); }

double fill_value(const SynthTensor& tensor, uint64_t bits) {
  const double at = static_cast<double>(bits >> 11) * 0x1p-53;
  switch (tensor.fill) {
    case SynthFill::Norm: return tensor.spread * (0.9 + 0.2 * at);
    case SynthFill::Decay: return -log_between(0.5, 16, at);
    case SynthFill::TimeStep: return std::log(std::expm1(log_between(0.001, 0.1, at)));
    case SynthFill::Matrix: break;
  }
  return 0;
}

class Stream {
 public:
  Stream(gguf::Writer& writer, const SynthOptions& options, uint64_t total)
      : writer_(writer), options_(options), total_(total), pool_(threads_of(options)) {}

  void write(const SynthTensor& tensor, const gguf::TensorInfo& stored) {
    const uint64_t key = splitmix64(options_.seed ^ hash64(tensor.name.data(), tensor.name.size()));
    const DTypeInfo& type = info(stored.type);
    const uint64_t blocks = stored.elements() / type.block_elements, step = kChunkBytes / type.block_bytes;
    const gguf::RandomBlocks source(stored.type, tensor.spread, key);
    for (uint64_t first = 0; first < blocks; first += step) {
      if (options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed))
        throw Error(ErrorKind::Interrupted, "stopped; nothing was written");
      if (options_.progress) options_.progress(done_, total_, tensor.name);
      const uint64_t count = std::min(step, blocks - first);
      bytes_.resize(count * type.block_bytes);
      if (tensor.fill == SynthFill::Matrix)
        draw(source, first, count, type.block_bytes);
      else
        fill(tensor, key, first, count);
      writer_.write(bytes_.data(), bytes_.size());
      done_ += bytes_.size();
    }
  }

 private:
  static int threads_of(const SynthOptions& options) {
    const int wanted = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
    return std::clamp(wanted, 1, 256);
  }

  void draw(const gguf::RandomBlocks& source, uint64_t first, uint64_t count, uint64_t block_bytes) {
    pool_.run(static_cast<int64_t>(count), ThreadPool::grain_of(static_cast<int64_t>(block_bytes)),
              [&](int64_t begin, int64_t end, int) {
                const auto from = static_cast<uint64_t>(begin);
                source.draw(first + from, static_cast<uint64_t>(end) - from, bytes_.data() + from * block_bytes);
              });
  }

  void fill(const SynthTensor& tensor, uint64_t key, uint64_t first, uint64_t count) {
    auto* values = reinterpret_cast<float*>(bytes_.data());  // always F32: see keeps_type()
    for (uint64_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(fill_value(tensor, splitmix64(key + first + i)));
  }

  gguf::Writer& writer_;
  const SynthOptions& options_;
  uint64_t done_ = 0, total_;
  std::vector<std::byte> bytes_;
  ThreadPool pool_;
};

}  // namespace

SynthSummary plan_synth(const SynthOptions& options) { return make_plan(options).summary; }

SynthSummary write_synth(const std::string& output, const SynthOptions& options) {
  const Plan plan = make_plan(options);
  gguf::Writer writer(output);
  for (const auto& [key, value] : plan.metadata) writer.add(key, value);
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    writer.add_tensor(plan.tensors[i].name, plan.types[i], plan.tensors[i].ne);
  writer.begin_data();
  Stream stream(writer, options, plan.summary.bytes);
  for (size_t i = 0; i < plan.tensors.size(); ++i) stream.write(plan.tensors[i], writer.tensors()[i]);
  writer.commit();
  return plan.summary;
}

}  // namespace strata
