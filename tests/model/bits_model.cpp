#include "model/bits_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "support/model_run.h"
#include "support/tiny_models.h"

namespace strata::test {
namespace {

constexpr const char* kMini = "mini";

uint64_t row_hash(const float* row, int64_t width) { return hash64(row, static_cast<size_t>(width) * sizeof(float)); }

}  // namespace

std::string bits_model_path(const std::string& name, const TempFolder& folder) {
  if (name == kMini) return source_path("models/strata-mini-q8_0.gguf");
  const std::string path = folder.file(name + ".gguf");
  tiny_model(name).write(path);
  return path;
}

const std::vector<std::string>& bits_models() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all{kMini};
    all.insert(all.end(), kArchitectures.begin(), kArchitectures.end());
    return all;
  }();
  return names;
}

BitsModel::BitsModel(const std::string& name, CpuIsa isa, const CacheOptions& caches)
    : small_(name != kMini),
      context_(small_ ? 200 : 400),
      caches_(caches),
      log_(LogLevel::Error),
      model_(Model::load(bits_model_path(name, folder_), {})) {
  for (int threads = 1; threads <= kMaxThreads; ++threads)
    passes_.emplace_back(model_, threads, isa, caches.anchored ? Activations::F32 : Activations::Int8, log_);
}

bool BitsModel::has_delta() const {
  return std::any_of(spec().layers.begin(), spec().layers.end(),
                     [](const LayerSpec& layer) { return layer.mixer != MixerKind::Attention; });
}

Tokens BitsModel::random_tokens(uint64_t seed, int64_t count) const {
  Random random(seed);
  Tokens tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(random.below(vocabulary())));
  return tokens;
}

Sequence BitsModel::sequence(PagePool pool, int64_t resident) const {
  CacheOptions caches = caches_;
  caches.resident = resident;
  return Sequence(spec(), context_, caches, std::move(pool));
}

PlainRun BitsModel::plain(std::span<const int32_t> tokens) {
  const auto rows = static_cast<int64_t>(tokens.size());
  Sequence fresh = sequence(PagePool(), 0);
  std::vector<float> logits(static_cast<size_t>(rows * vocabulary())), taps(static_cast<size_t>(rows * width()));
  if (rows > 0)
    forward(1).run(tokens, fresh, make_f32(logits.data(), {rows, vocabulary()}),
                   make_f32(taps.data(), {rows, width()}));
  PlainRun result;
  for (int64_t row = 0; row < rows; ++row) {
    result.logits.push_back(row_hash(logits.data() + row * vocabulary(), vocabulary()));
    result.taps.push_back(row_hash(taps.data() + row * width(), width()));
  }
  result.state = fresh.hash();
  return result;
}

const PlainRun& BitsModel::remembered(const Tokens& tokens) {
  auto found = plain_.find(tokens);
  if (found == plain_.end()) found = plain_.emplace(tokens, plain(tokens)).first;
  return found->second;
}

uint64_t BitsModel::hash(const Sequence& sequence) {
  Sequence copy = sequence;
  forward(1).settle(copy);
  return copy.hash();
}

std::string BitsModel::saved(const Sequence& sequence) {
  Sequence copy = sequence;
  forward(1).settle(copy);
  std::string bytes;
  ArchiveWriter writer([&](const void* data, size_t count) { bytes.append(static_cast<const char*>(data), count); });
  copy.save(writer);
  return bytes;
}

CallRows::CallRows(const BitsModel& model, Sequence& sequence, Tokens tokens, int64_t certain, int64_t wanted)
    : sequence_(&sequence),
      tokens_(std::move(tokens)),
      certain_(certain),
      wanted_(wanted < 0 ? rows() : wanted),
      vocabulary_(model.vocabulary()),
      width_(model.width()),
      logits_(static_cast<size_t>(wanted_ * vocabulary_)),
      taps_(static_cast<size_t>(rows() * width_)) {}

Segment CallRows::segment() {
  const Tensor logits = wanted_ == 0 ? Tensor{} : make_f32(logits_.data(), {wanted_, vocabulary_});
  return {sequence_, tokens_, logits, make_f32(taps_.data(), {rows(), width_}), certain_};
}

std::string CallRows::compare(const PlainRun& plain, int64_t first, int64_t count) const {
  for (int64_t row = 0; row < count; ++row) {
    const auto expected = static_cast<size_t>(first + row);
    const int64_t wanted = row - (rows() - wanted_);
    const char* differs = nullptr;
    if (wanted >= 0 && row_hash(logits_.data() + wanted * vocabulary_, vocabulary_) != plain.logits.at(expected))
      differs = "logits";
    else if (row_hash(taps_.data() + row * width_, width_) != plain.taps.at(expected))
      differs = "tap";
    if (differs != nullptr)
      return std::string(differs) + " of position " + std::to_string(first + row) + " (row " + std::to_string(row) +
             " of " + std::to_string(rows()) + ") have other bits than a plain run";
  }
  return {};
}

void run_together(Forward& forward, std::span<CallRows*> calls) {
  std::vector<Segment> segments;
  for (CallRows* call : calls) segments.push_back(call->segment());
  forward.run(segments);
}

void load_into(Sequence& sequence, std::string_view bytes) {
  ArchiveReader reader(std::as_bytes(std::span(bytes)), "a test");
  sequence.load(reader);
  if (!reader.done()) reader.fail("bytes are left over");
}

}  // namespace strata::test
