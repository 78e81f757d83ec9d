// The fixed matrix of what a request may meet in an engine: micro-batches, threads, company, every kind of draft, kept
// prompts, copies, sessions, a full context. Tokens, the logits they were chosen from and the state at the end are
// those of a plain run.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "model/engine_model.h"
#include "runtime/scheduler.h"
#include "runtime/session.h"

namespace strata::test {
namespace {

constexpr int64_t kPrefixes[] = {1, 63, 64, 65, 128};
constexpr uint64_t kMuch = uint64_t{1} << 30;

// none, lookup, MTP, and forced drafts of which 0 to 7 hold.
enum Draft { kNone, kLookup, kMtp, kForced };
constexpr int kDrafts = kForced + kMaxDrafts + 1;

std::string draft_name(int draft) {
  constexpr const char* kNames[] = {"no drafts", "lookup", "MTP"};
  return draft < kForced ? kNames[draft] : std::to_string(draft - kForced) + " drafts that hold";
}

class EngineMatrix : public testing::TestWithParam<std::string> {
 protected:
  GenerateRequest request(Tokens prompt, int64_t tokens, bool sampled) {
    GenerateRequest request;
    request.prompt = std::move(prompt);
    request.max_tokens = tokens;
    request.context = static_cast<int64_t>(request.prompt.size()) + tokens;
    request.ignore_end = true;
    if (!sampled) return request;
    request.sampler = {.temperature = 1.2, .top_k = 0, .top_p = 1, .min_p = 0, .repetition_penalty = 1.1, .seed = 9};
    return request;
  }

  // The same with drafts. False: the model has none of the kind.
  bool with_draft(GenerateRequest& request, int draft, const PlainText& plain) {
    if (draft == kMtp && !model.has_mtp()) return false;
    request.draft = draft == kLookup ? DraftKind::Lookup : draft == kMtp ? DraftKind::Mtp : DraftKind::None;
    request.draft_max = request.draft_min = kMaxDrafts;
    request.drafter = {};
    if (draft >= kForced)
      request.drafter = forced_drafts(request.prompt.size(), plain, model.spec().vocabulary,
                                      [draft](int) { return draft - kForced; });
    return true;
  }

  EngineOptions options(int threads, int64_t micro_batch, uint64_t cache = 0) {
    EngineOptions options = model.options();
    options.threads = threads;
    options.micro_batch = micro_batch;
    options.prompt_cache_bytes = cache;
    return options;
  }

  // Runs requests beside each other; the first may have a sequence to go on from.
  struct Job {
    GenerateRequest request;
    PlainText plain;
    GenerateResult result;
  };
  void run(Engine& engine, std::vector<Job*> jobs, HeldSequence* held = nullptr) {
    Scheduler scheduler(engine, {.slots = static_cast<int>(jobs.size())});
    std::deque<Watch> watches;
    for (Job* job : jobs) {
      watches.emplace_back(job->plain);
      ScheduledCallbacks callbacks;
      watches.back().attach(callbacks);
      callbacks.finished = [job](int64_t, GenerateResult result) { job->result = std::move(result); };
      callbacks.failed = [](int64_t, const Error& error) { ADD_FAILURE() << error.what(); };
      scheduler.add(job->request, callbacks, job == jobs[0] ? held : nullptr);
    }
    while (scheduler.step()) {
    }
    for (size_t i = 0; i < jobs.size(); ++i)
      EXPECT_EQ(watches[i].compare(jobs[i]->result.tokens, jobs[i]->result.reason), "") << "request " << i;
    if (held != nullptr) {
      EXPECT_EQ(watches[0].compare(*held), "");
    }
  }

  Job job(const GenerateRequest& request) { return {request, model.plain(request), {}}; }

  // The default model reads prompts one token at a time where the micro-batch is 1, and in engine_schedule_test.cpp.
  EngineModel model{GetParam(), GetParam() == "mini" ? 64 : 1};
  const int64_t count = model.small() ? 20 : 12;
};

// Small models run all of it. A token of the default model takes milliseconds: there each micro-batch, number of
// threads and company meets two of the drafts.
TEST_P(EngineMatrix, MicroBatchesThreadsCompanyAndDrafts) {
  const int64_t length = model.small() ? 130 : 40;
  Job jobs[] = {job(request(model.random_tokens(1, length), count, false)),
                job(request(model.random_tokens(1, length), count, true))};
  Job beside = job(request(model.random_tokens(2, model.small() ? 70 : 30), count, true));
  std::vector<int64_t> accepted(kDrafts);
  int turn = 0;
  for (const int threads : {1, 2, 3})
    for (const int64_t micro_batch : {1, 7, 64, 512}) {
      const auto engine = model.engine(options(threads, micro_batch));
      for (const bool company : {false, true})
        for (int draft = 0; draft < kDrafts; ++draft) {
          if (!model.small() && (draft + ++turn) % 5 != 0) continue;
          SCOPED_TRACE(std::to_string(threads) + " threads, micro-batch " + std::to_string(micro_batch) + ", " +
                       draft_name(draft) + (company ? ", in company" : ""));
          Job& one = jobs[(draft + company) % 2];
          if (!with_draft(one.request, draft, one.plain)) continue;
          HeldSequence held;
          run(*engine, company ? std::vector{&one, &beside} : std::vector{&one}, &held);
          for (const DraftLength::Position& position : one.result.drafts)
            accepted[static_cast<size_t>(draft)] += position.accepted;
        }
    }
  EXPECT_EQ(accepted[kForced], 0);
  for (size_t held = 1; held <= kMaxDrafts; ++held) EXPECT_GT(accepted[kForced + held], 0) << held;
}

// Nothing, a part and all of a prompt found among kept sequences; then copies of one side by side.
TEST_P(EngineMatrix, KeptPrompts) {
  for (const int64_t prefix : kPrefixes) {
    SCOPED_TRACE("a prefix of " + std::to_string(prefix));
    const Tokens text = model.random_tokens(static_cast<uint64_t>(prefix), prefix + 20);
    Tokens other = model.random_tokens(50, prefix + 9);
    std::copy_n(text.begin(), prefix, other.begin());
    const auto engine = model.engine(options(2, 64, kMuch));
    auto run_one = [&](const Tokens& prompt, bool sampled, int draft) {
      Job one = job(request(prompt, count, sampled));
      if (with_draft(one.request, draft, one.plain)) run(*engine, {&one});
      return one;
    };
    const Job miss = run_one(text, false, kMtp);
    const Job first = run_one(text, false, kNone);
    EXPECT_EQ(miss.result.cached_tokens, 0);
    EXPECT_EQ(first.result.cached_tokens, model.has_mtp() ? (prefix + 19) / 64 * 64 : 0);
    const Job part = run_one(other, true, kForced + 3);
    EXPECT_EQ(part.result.cached_tokens, prefix / 64 * 64);
    Tokens whole = text;
    whole.insert(whole.end(), first.result.tokens.begin(), first.result.tokens.end());
    const Job full = run_one(whole, true, kLookup);
    EXPECT_EQ(full.result.cached_tokens, static_cast<int64_t>(whole.size()) - 1);

    whole.insert(whole.end(), full.result.tokens.begin(), full.result.tokens.end());
    std::deque<Job> copies;
    std::vector<Job*> side_by_side;
    for (int i = 0; i < 3; ++i) {
      GenerateRequest one = request(whole, count, true);
      one.sampler.seed = static_cast<uint64_t>(i);
      copies.push_back(job(one));
      with_draft(copies.back().request, kForced + i * 3, copies.back().plain);
      side_by_side.push_back(&copies.back());
    }
    run(*engine, side_by_side);
    for (const Job& copy : copies) EXPECT_EQ(copy.result.cached_tokens, static_cast<int64_t>(whole.size()) - 1);
  }
}

// A session file goes on in another engine.
TEST_P(EngineMatrix, SavedAndResumed) {
  int draft = 0;
  for (const int64_t prefix : kPrefixes)
    for (const bool sampled : {false, true}) {
      SCOPED_TRACE("a prefix of " + std::to_string(prefix) + ", " + draft_name(draft));
      Job one = job(request(model.random_tokens(static_cast<uint64_t>(prefix), prefix), 4, sampled));
      with_draft(one.request, draft, one.plain);
      HeldSequence held;
      const std::string path = model.folder().file("matrix.session");
      {
        const auto engine = model.engine(options(1, 512));
        run(*engine, {&one}, &held);
        save_session(path, *engine, {held, 4, ""});
      }
      const auto engine = model.engine(options(3, 7, kMuch));
      Session session = load_session(path, *engine);
      GenerateRequest rest = request(session.held.tokens, count, sampled);
      rest.sampler.skip = static_cast<uint64_t>(session.sampled);
      Job next = job(rest);
      draft = (draft + 1) % kDrafts;
      with_draft(next.request, draft, next.plain);
      run(*engine, {&next}, &session.held);
      EXPECT_EQ(next.result.cached_tokens, prefix + 3);
      draft = (draft + 1) % kDrafts;

      GenerateRequest at_once = one.request;  // what a run that never ended gives
      at_once.max_tokens = 4 + count;
      at_once.context = prefix + 4 + count;
      Tokens together = one.result.tokens;
      together.insert(together.end(), next.result.tokens.begin(), next.result.tokens.end());
      EXPECT_EQ(together, model.plain(at_once).tokens);
    }
}

// The context ends where a window of drafts would go on. The output ends by length, with one token more than fit, since
// the last one need not be run; the sequence is whole, and goes on in a larger context.
TEST_P(EngineMatrix, AFullContextEndsByLengthAndTheSequenceIsWhole) {
  const auto engine = model.engine(options(2, 64));
  const Tokens prompt = model.random_tokens(3, 61);
  for (int64_t room = 0; room <= 12; room += model.small() ? 1 : 4)
    for (int draft = 0; draft < kDrafts; draft += model.small() ? 1 : 2) {
      SCOPED_TRACE("room for " + std::to_string(room) + ", " + draft_name(draft));
      GenerateRequest full = request(prompt, -1, draft % 2 == 1);
      full.context = 61 + room;
      Job one = job(full);
      if (!with_draft(one.request, draft, one.plain)) continue;
      HeldSequence held;
      run(*engine, {&one}, &held);
      EXPECT_EQ(one.result.reason, FinishReason::Length);
      EXPECT_EQ(static_cast<int64_t>(one.result.tokens.size()), room + 1);
      ASSERT_TRUE(held.sequence);
      EXPECT_EQ(held.sequence->length(), 61 + room);
      Job next = job(request(held.tokens, 5, false));
      with_draft(next.request, draft, next.plain);
      run(*engine, {&next}, &held);
      EXPECT_EQ(next.result.cached_tokens, 61 + room);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, EngineMatrix, testing::ValuesIn(bits_models()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace strata::test
