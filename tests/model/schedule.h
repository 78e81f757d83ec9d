// Random schedules: several sequences in one memory pool that are run, drafted, taken back, copied, saved, resumed and
// dropped in any order, alone and together. Every row has to have the bits of a plain run of the same tokens.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/bits_model.h"

namespace strata::test {

enum class Action { Run, Start, Copy, Drop, SaveAndLoad, Checkpoint, Resume };
inline constexpr size_t kActions = 7;

// Harm done on purpose, to one sequence, once: the schedule has to fail.
enum class Damage {
  None,
  NoTruncate,    // a rejected draft stays in the caches
  PageWrite,     // a write to keys that does not look whether a copy shares them
  MatrixWrite,   // the same of the state of a delta net
  History,       // an input of the convolution is lost
  ArchiveByte,   // a saved value changes on its way
  LostPage,      // keys in the second tier are gone
  OtherContext,  // a resumed checkpoint is of another prefix
};
const char* to_string(Damage damage);

struct ScheduleOptions {
  int steps = 24;
  int forks = 4;             // streams that leave another one where a copy is made
  int64_t check_drafts = 4;  // 1 of so many: rows of wrong guesses are compared too
  Damage damage = Damage::None;
};

struct ScheduleResult {
  std::string failure;                           // empty: every bit was right. Else seed, step, action and what differs
  std::string log;                               // every step
  int64_t rows = 0, rejected = 0, together = 0;  // compared; taken back; in calls of more than one sequence
  uint64_t released = 0, read = 0;               // pages that left memory, and that came back
  std::array<int64_t, kActions> actions{};
  bool damaged = false;
};

// The same seed gives the same schedule.
ScheduleResult run_schedule(BitsModel& model, uint64_t seed, const ScheduleOptions& options = {});

}  // namespace strata::test
