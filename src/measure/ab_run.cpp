#include "measure/ab_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>

#include "base/error.h"
#include "base/hash.h"
#include "evidence/ab_gates.h"
#include "measure/disturbance.h"
#include "measure/model_hash.h"
#include "measure/token_trace.h"

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxKeptLogits = size_t{64} << 20;  // bytes of a side at a length, for the comparison of outputs

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string joined(const std::string& names, const std::string& name) {
  return names.empty() ? name : names + "+" + name;
}

// Arms of the profiler's rows by operator, of one phase.
void collect_arms(const ProfileReport& report, std::vector<AbArmUse>& uses, AbSide side, int64_t length) {
  for (const StageReport& stage : report.stages) {
    if (stage.stage == Stage::Run || stage.stage == Stage::Load) continue;
    for (const ProfilePart& part : stage.parts) {
      if (part.kind != PartKind::Operator || part.arm.empty() || part.arm == "host") continue;
      auto use = std::find_if(uses.begin(), uses.end(), [&](const AbArmUse& one) {
        return one.side == side && one.length == length && one.op == part.name;
      });
      if (use == uses.end()) {
        uses.push_back({side, length, part.name, {}, {}, {}});
        use = uses.end() - 1;
      }
      std::string& names = stage.stage == Stage::Prompt ? use->prefill : use->decode;
      if (("+" + names + "+").find("+" + part.arm + "+") == std::string::npos) names = joined(names, part.arm);
    }
  }
}

}  // namespace

struct AbRunner::Side {
  AbSide name;
  AbEngineOptions options;
  Engine engine;

  Side(AbSide which, const AbEngineOptions& wanted, Log& log)
      : name(which), options(wanted), engine(wanted.engine, log) {}
  int64_t vocabulary() const { return engine.model().spec().vocabulary; }
};

// One prompt and its output.
struct AbRunner::Run {
  struct Phase {
    bool ran = false;
    double seconds = 0;
    uint64_t output = 0;
    std::vector<std::string> flags;
  };
  std::array<Phase, 2> phases;  // by AbMetric
  std::string failure;          // of the first phase that did not run
};

// What a warm-up keeps.
struct AbRunner::Probe {
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // rows: the prompt's last, then one for each token but the first
  Profiler profiler;

  void keep(std::span<const float> row) {
    if ((logits.size() + row.size()) * sizeof(float) <= kMaxKeptLogits)
      logits.insert(logits.end(), row.begin(), row.end());
  }
};

AbRunner::AbRunner(const AbPlan& plan, const std::array<AbEngineOptions, 2>& sides, Log& log) : plan_(plan) {
  int64_t vocabulary = std::numeric_limits<int64_t>::max();
  for (const AbSide name : kAbSides) {
    const auto index = static_cast<size_t>(name);
    sides_[index] = std::make_unique<Side>(name, sides[index], log);
    const ModelSpec& spec = sides_[index]->engine.model().spec();
    vocabulary = std::min(vocabulary, spec.vocabulary);
    const int64_t wanted = plan.lengths.back() + plan.generate + 1;
    if (wanted > spec.context)
      throw Error(ErrorKind::Usage,
                  "length " + length_text(plan.lengths.back()) + " and " + std::to_string(plan.generate) +
                      " generated tokens are more than the " + std::to_string(spec.context) +
                      " positions that the model was trained for",
                  sides[index].engine.model);
  }
  trace_ = token_trace(vocabulary, plan.lengths.back(), static_cast<uint64_t>(plan.seed));
}

AbRunner::~AbRunner() = default;

const Queue& AbRunner::queue() const { return sides_[0]->engine.queue(); }

std::string AbRunner::model_hash() const {
  uint64_t hash = 0;
  for (const auto& side : sides_) {
    const uint64_t one = strata::model_hash(side->engine.model().file());
    hash = hash64(&one, sizeof one, hash);
  }
  return hash_hex(hash);
}

void AbRunner::tell(const std::string& what) const {
  if (hooks_.interrupted != nullptr && hooks_.interrupted->load()) throw Error(ErrorKind::Interrupted, "interrupted");
  const auto runs = static_cast<int64_t>(plan_.lengths.size()) * plan_.pairs * plan_.slots * 2;
  if (hooks_.progress) hooks_.progress(done_, runs, what);
}

void AbRunner::run_prompt(Side& side, Slot& slot, Run& run, Probe* probe) {
  Run::Phase& phase = run.phases[static_cast<size_t>(AbMetric::Prefill)];
  Segment segment;
  while (slot.in_prompt()) {
    tell(std::string(to_string(side.name)) + ", prompt at " + std::to_string(slot.sequence().length()) + " of " +
         length_text(slot.prompt_size()));
    const Clock::time_point start = Clock::now();
    {
      ProfileSpan span(side.engine.queue().profiler, Stage::Prompt);
      segment = slot.next(side.options.engine.micro_batch);
      side.engine.reserve(slot, segment);
      side.engine.forward().run({&segment, 1});
      slot.consume_prompt();
    }
    phase.seconds += seconds_since(start);
    if (side.engine.below_memory_floor()) throw Error(ErrorKind::Memory, "free memory fell below the floor");
  }
  const std::span<const float> row(segment.logits.f32(), static_cast<size_t>(side.vocabulary()));
  phase.output = hash64(row.data(), row.size_bytes());
  if (probe != nullptr) probe->keep(row);
  slot.choose();  // the first token: nobody's time
  phase.ran = true;
}

void AbRunner::run_decode(Side& side, Slot& slot, Run& run, Probe* probe) {
  Run::Phase& phase = run.phases[static_cast<size_t>(AbMetric::Decode)];
  const auto vocabulary = static_cast<size_t>(side.vocabulary());
  while (!slot.done()) {
    tell(std::string(to_string(side.name)) + ", output");
    const size_t before = slot.history().size();
    const Clock::time_point start = Clock::now();
    Segment segment;
    {
      ProfileSpan span(side.engine.queue().profiler, Stage::Decode);
      segment = slot.next(1);
      side.engine.reserve(slot, segment);
      side.engine.forward().run({&segment, 1});
      slot.consume_prompt();
      if (slot.chooses()) slot.choose();
    }
    phase.seconds += seconds_since(start);
    // Rows of rejected drafts are not part of the output.
    const size_t taken = slot.history().size() - before;
    const std::span<const float> rows(segment.logits.f32(), taken * vocabulary);
    phase.output = hash64(rows.data(), rows.size_bytes(), phase.output);
    if (probe != nullptr) probe->keep(rows);
    if (side.engine.below_memory_floor()) throw Error(ErrorKind::Memory, "free memory fell below the floor");
  }
  const size_t generated = slot.history().size() - static_cast<size_t>(slot.prompt_size());
  if (generated != static_cast<size_t>(plan_.generate) + 1)
    throw Error(ErrorKind::Model, "the output ended after " + std::to_string(generated) + " tokens");
  phase.output = hash64(slot.history().data(), slot.history().size() * sizeof(int32_t), phase.output);
  phase.ran = true;
}

AbRunner::Run AbRunner::run_once(Side& side, int64_t length, Probe* probe) {
  Run run;
  try {
    GenerateRequest request;
    request.prompt.assign(trace_.begin(), trace_.begin() + length);
    request.max_tokens = plan_.generate + 1;
    request.context = length + plan_.generate + 1;
    request.sampler.temperature = 0;
    request.ignore_end = true;
    request.draft = side.options.draft;
    request.draft_max = side.options.draft_max;
    const std::unique_ptr<Slot> slot = side.engine.open(request, {});
    const LoadReading start = read_load();
    run_prompt(side, *slot, run, probe);
    const LoadReading middle = read_load();
    run_decode(side, *slot, run, probe);
    const LoadReading end = read_load();
    run.phases[0].flags = disturbances(start, middle, fastest_);
    run.phases[1].flags = disturbances(middle, end, fastest_);
    fastest_ = std::max({fastest_, middle.megahertz, end.megahertz});
    if (probe != nullptr) probe->tokens.assign(slot->history().begin() + length, slot->history().end());
    side.engine.close(*slot);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted || error.kind() == ErrorKind::Usage ||
        error.kind() == ErrorKind::Argument)
      throw;
    run.failure = error.what();
  } catch (const std::bad_alloc&) {
    run.failure = "out of memory";
  }
  return run;
}

namespace {

AbOutputs compare_outputs(int64_t length, const std::vector<int32_t>& a_tokens, const std::vector<int32_t>& b_tokens,
                          std::span<const float> a, std::span<const float> b, size_t vocabulary) {
  AbOutputs outputs{.length = length};
  const size_t same = static_cast<size_t>(
      std::mismatch(a_tokens.begin(), a_tokens.end(), b_tokens.begin(), b_tokens.end()).first - a_tokens.begin());
  if (same < a_tokens.size()) outputs.first_token = static_cast<int64_t>(same);
  // Row i gave token i: rows up to the first token that differs had the same input.
  const size_t rows = std::min({a.size() / vocabulary, b.size() / vocabulary, same + 1, a_tokens.size()});
  outputs.rows = static_cast<int64_t>(rows);
  bool equal = outputs.first_token < 0;
  for (size_t i = 0; i < rows * vocabulary; ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i])) continue;
    equal = false;
    outputs.max_difference = std::isnan(difference) ? HUGE_VAL : std::max(outputs.max_difference, difference);
  }
  outputs.same_bits = equal;
  return outputs;
}

}  // namespace

void AbRunner::warm_up(AbTrial& trial) {
  for (const int64_t length : plan_.lengths) {
    std::array<Probe, 2> probes;
    for (const AbSide name : kAbSides) {
      Side& side = *sides_[static_cast<size_t>(name)];
      Probe& probe = probes[static_cast<size_t>(name)];
      tell("warm-up at " + length_text(length) + ", side " + std::string(to_string(name)));
      side.engine.queue().profiler = &probe.profiler;
      Run run;
      try {
        run = run_once(side, length, &probe);
      } catch (...) {
        side.engine.queue().profiler = nullptr;
        throw;
      }
      side.engine.queue().profiler = nullptr;
      if (!run.failure.empty())
        throw Error(ErrorKind::Evidence, "the warm-up at " + length_text(length) + " failed on side " +
                                             std::string(to_string(name)) + ": " + run.failure);
      std::vector<AbArmUse> uses;
      collect_arms(probe.profiler.report(), uses, name, length);
      for (const auto& [op, arm] : side.options.engine.arms) {
        auto use =
            std::find_if(uses.begin(), uses.end(), [&, wanted = op](const AbArmUse& one) { return one.op == wanted; });
        if (use == uses.end()) use = uses.insert(uses.end(), {name, length, op, {}, {}, {}});
        use->requested = arm;
      }
      std::sort(uses.begin(), uses.end(), [](const AbArmUse& a, const AbArmUse& b) { return a.op < b.op; });
      trial.arms.insert(trial.arms.end(), uses.begin(), uses.end());
    }
    if (sides_[0]->vocabulary() == sides_[1]->vocabulary())
      trial.outputs.push_back(compare_outputs(length, probes[0].tokens, probes[1].tokens, probes[0].logits,
                                              probes[1].logits, static_cast<size_t>(sides_[0]->vocabulary())));
  }
}

void AbRunner::add_cells(AbTrial& trial, const AbCell& place, const Run& run) {
  for (const AbMetric metric : kAbMetrics) {
    const Run::Phase& phase = run.phases[static_cast<size_t>(metric)];
    AbCell cell = place;
    cell.metric = metric;
    if (phase.ran) {
      cell.tokens = metric == AbMetric::Prefill ? cell.length : plan_.generate;
      cell.seconds = phase.seconds;
      cell.output = hash_hex(phase.output);
      cell.flags = phase.flags;
    } else {
      cell.failure = run.failure;
    }
    trial.cells.push_back(cell);
    if (hooks_.cell) hooks_.cell(cell);
    if (!phase.ran) return;
  }
}

// Both sides, in the order of the plan; false when one failed.
bool AbRunner::run_attempt(AbTrial& trial, AbCell place) {
  const AbSide first = first_side(place.pair, place.slot);
  for (const AbSide side : {first, first == AbSide::A ? AbSide::B : AbSide::A}) {
    place.side = side;
    place.order = order_++;
    const Run run = run_once(*sides_[static_cast<size_t>(side)], place.length, nullptr);
    add_cells(trial, place, run);
    if (!run.failure.empty()) return false;
  }
  return true;
}

bool AbRunner::run_slot(AbTrial& trial, AbCell place) {
  for (place.attempt = 0; place.attempt <= plan_.retries; ++place.attempt)
    if (run_attempt(trial, place)) {
      done_ += 2;
      return true;
    }
  trial.stopped = "all " + std::to_string(plan_.retries + 1) + " attempts failed at " + length_text(place.length) +
                  ": " + trial.cells.back().failure;
  return false;
}

void AbRunner::run(AbTrial& trial, const AbHooks& hooks) {
  hooks_ = hooks;
  try {
    warm_up(trial);
    for (int64_t pair = 0; pair < plan_.pairs; ++pair)
      for (const int64_t length : plan_.lengths)
        for (int64_t slot = 0; slot < plan_.slots; ++slot) {
          AbCell place;
          place.length = length;
          place.pair = pair;
          place.slot = slot;
          if (!run_slot(trial, place)) return;
        }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Interrupted && error.kind() != ErrorKind::Evidence) throw;
    trial.stopped = error.message();
  }
}

}  // namespace strata
