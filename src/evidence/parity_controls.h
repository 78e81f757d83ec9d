// Controls: a checker that accepts a perturbed output, or cases that cannot tell a spoiled input, prove nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evidence/parity.h"

namespace strata {

struct Perturbation {
  std::function<void()> undo;
};
// Moves one element of an output by 2.5 times its bound (at least to the next representable value). Empty when no
// element can be moved: nothing is written, or nothing is finite.
std::optional<Perturbation> perturb(ParityCase& test, size_t output, Random& random);

// A change of one input that stands for a typical defect of a kernel.
struct Mutant {
  std::string name;             // "x: lane dropped"
  std::function<bool()> apply;  // false: it would change nothing here
};
std::vector<Mutant> mutants_of(ParityCase& test);

}  // namespace strata
