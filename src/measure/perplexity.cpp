#include "measure/perplexity.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/buffer.h"
#include "base/error.h"
#include "measure/rows.h"

namespace strata {
namespace {

constexpr int64_t kMaxLogitBytes = int64_t{128} << 20;  // of one call

class Runner {
 public:
  Runner(Engine& engine, const ChunkedText& text, const PerplexityHooks& hooks, PerplexityRun& run)
      : engine_(engine), text_(text), hooks_(hooks), run_(run), vocabulary_(engine.model().spec().vocabulary) {
    const int64_t at_most = std::max<int64_t>(1, kMaxLogitBytes / (vocabulary_ * static_cast<int64_t>(sizeof(float))));
    rows_ = std::min({engine.options().micro_batch, text.layout.scored(), at_most});
    logits_ = Buffer(static_cast<size_t>(rows_ * vocabulary_) * sizeof(float));
  }

  void run() {
    engine_.model().file().check_sizes();
    const auto start = std::chrono::steady_clock::now();
    for (int64_t chunk = 0; chunk < text_.chunks() && run_.end == PerplexityRun::End::Complete; ++chunk) {
      run_chunk(chunk, start);
      if (run_.end != PerplexityRun::End::Complete) break;
      ++run_.chunks;
      if (hooks_.chunk) hooks_.chunk(run_.chunks);
    }
  }

 private:
  // All tokens but the last, which nobody asks.
  void run_chunk(int64_t chunk, std::chrono::steady_clock::time_point start) {
    const int64_t context = text_.layout.context, first = text_.layout.first();
    const auto begin = text_.tokens.begin() + static_cast<ptrdiff_t>(chunk * context);
    std::vector<int32_t> tokens(begin, begin + static_cast<ptrdiff_t>(context));
    if (text_.first) tokens.front() = *text_.first;
    Sequence sequence(engine_.model().spec(), context, engine_.options().caches, engine_.pool());
    for (int64_t done = 0; done < context - 1;) {
      if (stopped()) return;
      const int64_t limit = std::min(engine_.options().micro_batch, context - 1 - done);
      const int64_t count = std::min(limit, std::max<int64_t>(0, first - done) + rows_);
      const int64_t scored = std::min(count, done + count - first);
      const auto part = std::span(tokens).subspan(static_cast<size_t>(done), static_cast<size_t>(count));
      const Tensor out = scored > 0 ? logits_.f32({scored, vocabulary_}) : Tensor{};
      engine_.forward().run(part, sequence, out);
      done += count;
      run_.tokens += count;
      run_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (scored > 0) take(std::span(tokens).subspan(static_cast<size_t>(done - scored + 1)), scored);
      if (hooks_.progress) hooks_.progress(run_.tokens, text_.chunks() * (context - 1));
    }
  }

  bool stopped() {
    if (hooks_.interrupted != nullptr && hooks_.interrupted->load())
      run_.end = PerplexityRun::End::Interrupted;
    else if (engine_.below_memory_floor())
      run_.end = PerplexityRun::End::MemoryFloor;
    return run_.end != PerplexityRun::End::Complete;
  }

  // targets: the tokens that follow the rows.
  void take(std::span<const int32_t> targets, int64_t count) {
    const size_t before = run_.nll.size();
    const std::span<const float> logits{static_cast<const float*>(logits_.data()),
                                        static_cast<size_t>(count * vocabulary_)};
    run_.nll.resize(before + static_cast<size_t>(count));
    run_rows(engine_.queue().pool(), count, [&](int64_t row, int) {
      const auto index = static_cast<size_t>(row);
      const auto one = logits.subspan(index * static_cast<size_t>(vocabulary_), static_cast<size_t>(vocabulary_));
      run_.nll[before + index] = log_sum_exp(one) - one[static_cast<size_t>(targets[index])];
    });
    for (size_t i = before; i < run_.nll.size(); ++i)
      if (!std::isfinite(run_.nll[i])) refuse(static_cast<int64_t>(i));
    if (hooks_.rows) hooks_.rows({static_cast<int64_t>(before), logits});
  }

  [[noreturn]] void refuse(int64_t row) const {
    const ChunkLayout& layout = text_.layout;
    throw Error(ErrorKind::Model,
                "the logits give the next token no probability (not a number, or infinite) in chunk " +
                    std::to_string(row / layout.scored() + 1) + ", position " +
                    std::to_string(layout.first() + row % layout.scored()),
                engine_.options().model);
  }

  Engine& engine_;
  const ChunkedText& text_;
  const PerplexityHooks& hooks_;
  PerplexityRun& run_;
  int64_t vocabulary_, rows_ = 0;  // rows with logits in one call, at most
  Buffer logits_;
};

std::string real(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

ChunkedText cut_chunks(std::vector<int32_t> tokens, int64_t context, int64_t limit) {
  if (context < kMinChunk)
    throw Error(ErrorKind::Argument, "a chunk has at least " + std::to_string(kMinChunk) + " tokens");
  const auto given = static_cast<int64_t>(tokens.size());
  int64_t chunks = given / context;
  if (limit >= 0) chunks = std::min(chunks, limit);
  if (chunks < 1)
    throw Error(ErrorKind::Argument, "the text has " + std::to_string(given) + " tokens, a chunk " +
                                         std::to_string(context) +
                                         ": give a longer text or shorter chunks (-c), at least one chunk");
  tokens.resize(static_cast<size_t>(chunks * context));
  return {{context}, std::move(tokens), std::nullopt};
}

std::optional<int32_t> begin_token(const text::Tokenizer& tokenizer) {
  const std::vector<int32_t> added = tokenizer.encode("");
  return added.empty() ? std::nullopt : std::optional(added.front());
}

void run_perplexity(Engine& engine, const ChunkedText& text, const PerplexityHooks& hooks, PerplexityRun& run) {
  Runner(engine, text, hooks, run).run();
}

std::string bit_settings(const Engine& engine) {
  const EngineOptions& options = engine.options();
  const RopeParams& rope = engine.model().spec().rope;
  static constexpr const char* kScalings[] = {"none", "linear", "yarn"};
  std::string text;
  const auto line = [&text](const std::string& name, const std::string& value) { text += name + ": " + value + "\n"; };
  line("cache_type_k", std::string(to_string(options.caches.keys)));
  line("cache_type_v", std::string(to_string(options.caches.values)));
  line("qsa.keys", std::string(to_string(options.caches.index_keys)));
  line("qsa.select", options.forward.qsa == QsaSemantics::Blocks ? "blocks" : "fixed-width");
  line("matmul.activations", options.forward.activations == Activations::Int8 ? "int8" : "f32");
  line("gdn.form", options.caches.anchored ? "anchored" : "serial");
  line("rope", std::string(kScalings[static_cast<size_t>(rope.scaling)]) + " base " + real(rope.base) + " factor " +
                   real(rope.factor) + " context " + real(rope.original_context) + " attention " +
                   real(rope.attention_factor));
  for (const auto& [op, arm] : options.arms) line("arm." + op, arm);
  line("cpu", describe(options.cpu));
  return text;
}

}  // namespace strata
