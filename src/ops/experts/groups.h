// Which rows chose which expert. Internal to the CPU arms.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/experts/experts.h"

namespace strata {

// (row, slot) pairs of each expert, in order of row: pairs[start[e] .. start[e + 1]).
struct ExpertGroups {
  std::vector<int64_t> start;
  std::vector<int64_t> pairs;  // row · k + slot
};

ExpertGroups group_by_expert(const ExpertsArgs& args);  // cpu.cpp, as the next one

// y_t = sum of the weighted parts [rows · k, hidden], in the order of the slots.
void sum_expert_parts(Queue& queue, const ExpertsArgs& args, const std::vector<float>& parts);

}  // namespace strata
