// Random schedules of an engine: requests with common beginnings that come, are cancelled and interrupted at any time,
// with every kind of draft, kept prompts, sessions and restarts, in much memory or little. Tokens, logits and states
// have to be those of a plain run.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/engine_model.h"

namespace strata::test {

// Harm done on purpose, once: the schedule has to fail.
enum class EngineDamage {
  None,
  Company,       // a row's result depends on the rows beside it
  Page,          // keys of a running request change
  Rejected,      // a token that was not chosen stays in the sequence
  WrongPrefix,   // a kept sequence is of another prompt
  WrongSession,  // a session's sequence is of another text
  RandomNumber,  // a draft costs a random number of the seed
};
const char* to_string(EngineDamage damage);

struct EngineScheduleOptions {
  int requests = 9;
  int64_t longest = 18;  // output
  EngineDamage damage = EngineDamage::None;
};

struct EngineScheduleResult {
  std::string failure;  // empty: every bit was right. Else seed, step and what differs
  std::string log;
  bool damaged = false;
  // How often things happened, over schedules.
  struct Counts {
    int64_t logits = 0;  // compared
    int64_t finished = 0, cancelled = 0, interrupted = 0, out_of_memory = 0;
    int64_t cached = 0;    // requests that found part of their prompt
    int64_t together = 0;  // steps with more than one request
    int64_t resumed = 0, loaded = 0, restarts = 0;
    int64_t sampled = 0, full = 0;               // finished with a temperature; by a full context
    std::array<int64_t, kMaxDrafts + 1> held{};  // forced drafts with so many right tokens
    int64_t lookup = 0, mtp = 0;                 // windows with their drafts
    void add(const Counts& other);
  } counts;
};

// The same seed gives the same schedule.
EngineScheduleResult run_engine_schedule(EngineModel& model, uint64_t seed, const EngineScheduleOptions& options = {});

}  // namespace strata::test
