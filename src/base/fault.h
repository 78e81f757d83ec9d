// Faults that a build with STRATA_FAULTS can inject into CPU arms, one at a time, to prove that parity catches each
// (tests/faults). In every other build fault() is constant false and the compiler drops what hangs on it.
#pragma once

namespace strata {

enum class Fault {
  None,
  DropLane,             // one of the 16 lanes is missing from a sum
  TransposeTile,        // a tile is stored with rows and columns exchanged
  SkipTail,             // what does not fill a whole tile is left out
  GateAtChunkEnd,       // the decay is read at C - 1 instead of at the last row of a ragged chunk
  OverflowExp,          // e^(c_t - c_s) is taken as e^c_t · e^-c_s
  WrongHeadMapping,     // grouped heads where tiled ones are meant, and the reverse
  WritePastSet,         // one element more is written than the contract says
  SelectOneShort,       // one block fewer is selected
  MergeEmptySplit,      // a split without cells takes part in the merge
  RopeAtLastCell,       // a pooled key is rotated at its last cell instead of its first
  PooledInsteadOfDead,  // the spare row reads pooled[n] instead of the dead key
  Count,
};

#if defined(STRATA_FAULTS)
extern Fault active_fault;
extern int fault_hits;  // how often the active one was met
[[maybe_unused, gnu::always_inline]] static inline bool fault(Fault which) {
  if (active_fault != which) return false;
  __atomic_fetch_add(&fault_hits, 1, __ATOMIC_RELAXED);
  return true;
}
#else
[[maybe_unused]] static constexpr bool fault(Fault) { return false; }
#endif

}  // namespace strata
