#include "measure/model_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"
#include "measure/token_trace.h"
#include "runtime/plan.h"

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kWarmUpOutput = 1;   // tokens, enough to touch every weight
constexpr int64_t kWarmUpWindows = 8;  // tokens of output with drafts, so that windows of several sizes run once

auto key_of(const CacheOptions& caches) {
  return std::tuple(caches.keys, caches.values, caches.index_keys, caches.window, caches.anchored);
}

std::string mode_of(const ModelTest& test) {
  std::string name;
  if (test.prompt > 0) name = "pp" + std::to_string(test.prompt);
  if (test.prompt > 0 && test.output > 0) name += "+";
  if (test.output > 0) name += "tg" + std::to_string(test.output);
  return name;
}

void check_finite(std::span<const float> logits) {
  for (const float value : logits)
    if (!std::isfinite(value))
      throw Error(ErrorKind::Model, "the model gives logits that are not finite: its times mean nothing");
}

}  // namespace

std::string test_name(const ModelTest& test) {
  return mode_of(test) + (test.depth > 0 ? " @ d" + std::to_string(test.depth) : std::string());
}

void check_test(const ModelTest& test, const Model& model, uint64_t memory_floor, bool on_host) {
  const ModelSpec& spec = model.spec();
  const std::string name = test_name(test);
  if (test.prompt + test.output < 1) throw Error(ErrorKind::Usage, "a test needs a prompt (-p) or output (-n)");
  if (test.positions() > spec.context)
    throw Error(ErrorKind::Usage, name + " needs " + std::to_string(test.positions()) + " positions, the model has " +
                                      std::to_string(spec.context) + ": ask for less (-p, -n, -d)");
  check_cache_types(spec, test.caches);
  if (test.drafts.kind == DraftKind::Mtp && spec.mtp_layers < 1)
    throw Error(ErrorKind::Model, "this model has no MTP block to draft with (--draft mtp)");
  if (!on_host) return;
  const PlanRequest plan{test.positions(), 1, std::min(test.batch, test.micro_batch), test.caches};
  const std::string refusal = does_not_fit(spec, model.file(), plan, memory_floor);
  if (!refusal.empty()) throw Error(ErrorKind::Memory, name + ": " + refusal, model.file().path());
}

ModelBench::ModelBench(Engine& engine, BenchHooks hooks, std::vector<int32_t> trace)
    : engine_(engine), hooks_(std::move(hooks)), given_(std::move(trace)) {}

std::span<const int32_t> ModelBench::trace(int64_t first, int64_t count) {
  const auto wanted = static_cast<size_t>(first + count);
  if (trace_.size() < wanted) {
    trace_ = given_.empty() ? token_trace(engine_.model().spec().vocabulary, first + count) : given_;
    for (size_t i = trace_.size(); i < wanted; ++i) trace_.push_back(trace_[i - given_.size()]);
  }
  return std::span(trace_).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
}

void ModelBench::between(const char* what, int64_t done, int64_t total) const {
  if (hooks_.cancelled && hooks_.cancelled()) throw Error(ErrorKind::Interrupted, "interrupted");
  if (hooks_.progress) hooks_.progress({what, done, total, round_, rounds_});
}

// The prompt in micro-batches that do not cross the ends of batches; logits of its last token.
void ModelBench::read_prompt(const ModelTest& test, DraftTrial& trial, std::vector<float>& logits) {
  const int64_t vocabulary = engine_.model().spec().vocabulary;
  for (int64_t done = 0; done < test.prompt;) {
    const int64_t batch_left = test.batch - done % test.batch;
    const int64_t count = std::min({test.prompt - done, batch_left, test.micro_batch});
    const bool last = done + count == test.prompt;
    trial.prompt(trace(test.depth + done, count), last ? make_f32(logits.data(), {1, vocabulary}) : Tensor{});
    done += count;
    between("prompt", done, test.prompt);
  }
}

void ModelBench::follow_trace(const ModelTest& test, Sequence& sequence, std::vector<float>& logits) {
  const Tensor out = make_f32(logits.data(), {1, engine_.model().spec().vocabulary});
  for (int64_t i = 0; i < test.output; ++i) {
    engine_.forward().run(trace(test.depth + test.prompt + i, 1), sequence, out);
    between("output", i + 1, test.output);
  }
}

void ModelBench::choose_output(const ModelTest& test, DraftTrial& trial, int32_t newest) {
  for (int64_t done = 0; done < test.output;) {
    done += trial.window(newest, test.output - done);
    between("output", done, test.output);
  }
}

// A sequence that holds the first tokens of the trace. A deeper one continues from what is there.
const Sequence& ModelBench::at_depth(const ModelTest& test) {
  const bool usable = depth_ && depth_->with_mtp == (test.drafts.kind == DraftKind::Mtp) &&
                      depth_->sequence.length() <= test.depth &&
                      key_of(depth_->sequence.options()) == key_of(test.caches);
  const int64_t capacity = std::max<int64_t>(test.positions(), 1);
  if (!usable) {
    depth_.reset();
    depth_.emplace(Depth{Sequence(engine_.model().spec(), capacity, test.caches, engine_.pool()),
                         test.drafts.kind == DraftKind::Mtp});
  }
  Sequence& sequence = depth_->sequence;
  sequence.set_capacity(std::max(capacity, sequence.length()));
  if (sequence.length() == test.depth) return sequence;
  DraftTrial reader(engine_.forward(), sequence, test.drafts, trace(0, test.depth));
  while (sequence.length() < test.depth) {
    const int64_t first = sequence.length();
    reader.prompt(trace(first, std::min(test.micro_batch, test.depth - first)), {});
    between("depth", sequence.length(), test.depth);
  }
  engine_.forward().settle(sequence);
  return sequence;
}

ModelBench::Run ModelBench::once(const ModelTest& test) {
  Run run{0, 0, {}, at_depth(test)};
  Sequence& sequence = run.sequence;
  trace(0, test.positions());  // made before the clock starts
  std::vector<float> logits(static_cast<size_t>(engine_.model().spec().vocabulary));
  DraftTrial trial(engine_.forward(), sequence, test.drafts, trace(0, test.depth + test.prompt));
  sequence.prepare(1, 1);  // copies what the sequence shares with the one it began as

  const auto start = Clock::now();
  read_prompt(test, trial, logits);
  if (test.chosen && test.output > 0)
    choose_output(test, trial, test.prompt > 0 ? most_likely(logits) : trace(test.depth, 1).front());
  else
    follow_trace(test, sequence, logits);
  run.seconds = std::chrono::duration<double>(Clock::now() - start).count();

  const std::span<const float> last = test.chosen && test.output > 0 ? trial.logits() : std::span<const float>(logits);
  check_finite(last);
  run.checksum = hash64(last.data(), last.size_bytes());
  if (test.chosen)
    run.checksum = hash64(trial.history().data(), trial.history().size() * sizeof(int32_t), run.checksum);
  run.drafts = trial.counts();
  return run;
}

ModelTestResult ModelBench::repeat(const ModelTest& test, int repetitions, bool warm_up,
                                   std::optional<Sequence>* last) {
  ModelTestResult result;
  rounds_ = repetitions;
  try {
    if (warm_up) {
      ModelTest shorter = test;
      shorter.output = std::min(test.output, test.chosen ? kWarmUpWindows : kWarmUpOutput);
      round_ = 0;
      once(shorter);
    }
    for (int i = 0; i < repetitions; ++i) {
      round_ = i + 1;
      Run run = once(test);
      result.repeatable = result.repeatable && (i == 0 || run.checksum == result.checksum);
      result.checksum = run.checksum;
      result.seconds.push_back(run.seconds);
      result.drafts.add(run.drafts);
      result.state_bytes = run.sequence.bytes().total();
      if (last != nullptr && i + 1 == repetitions) last->emplace(std::move(run.sequence));
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Interrupted) throw;
    result.interrupted = true;
  }
  return result;
}

ModelTestResult ModelBench::run(const ModelTest& test, int repetitions, bool warm_up) {
  check_test(test, engine_.model(), engine_.options().memory_floor);
  return repeat(test, repetitions, warm_up, nullptr);
}

bool ModelBench::sweep(const ModelTest& test, const std::vector<int64_t>& depths, int repetitions, bool warm_up,
                       const std::function<void(const Point&)>& each) {
  for (size_t i = 0; i < depths.size(); ++i) {
    Point point;
    point.prompt = point.output = test;
    point.prompt.depth = point.output.depth = depths[i];
    point.prompt.output = point.output.prompt = 0;
    if (test.output > 0) {
      point.output_result = repeat(point.output, repetitions, warm_up && i == 0, nullptr);
      if (point.output_result.interrupted) return false;
    }
    std::optional<Sequence> walked;  // the last repetition's sequence is where the walk goes on
    if (test.prompt > 0) {
      point.prompt_result = repeat(point.prompt, repetitions, warm_up && i == 0, &walked);
      if (point.prompt_result.interrupted) return false;
    }
    each(point);
    if (walked && i + 1 < depths.size() && walked->length() <= depths[i + 1])
      depth_.emplace(Depth{std::move(*walked), test.drafts.kind == DraftKind::Mtp});
  }
  return true;
}

}  // namespace strata
