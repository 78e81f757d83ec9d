// Parity: does an arm stay inside its operator's derived bound, write what it must and nothing else, and keep the
// properties it declares? The runner is generic: an operator supplies cases with their oracle values and bounds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/random.h"
#include "device/device.h"
#include "evidence/arm.h"

namespace strata {

// What an output must hold: |value - expected| <= bound for each element in row-major order (0: exact). NaN must be
// NaN, an infinity the same infinity. Empty `written` means every element; 0 in it: the canary must still stand there.
struct ParityOutput {
  std::string name;
  Tensor tensor;  // f32, bf16, f16 or i32
  std::vector<double> expected, bound;
  std::vector<uint8_t> written;
};

// An input, for the controls that spoil it: floating-point tensors lose a lane, swap two rows, repeat a slice.
struct ParityInput {
  std::string name;
  Tensor tensor;
};

// The same outputs computed in another way that must give the same bits.
struct ParityVariant {
  std::string name;  // "rows one by one", "split at 31"
  std::function<void(Queue&)> run;
};

struct ParityCase {
  std::string name;
  std::vector<ParityInput> inputs;
  std::vector<ParityOutput> outputs;
  std::function<std::string(const std::string& arm)> refusal;  // empty: the arm can run this case
  std::function<void(Queue&)> run;                             // the public function of the operator
  std::vector<ParityVariant> variants;                         // for arms that declare row invariance
  // Discrete results that are more than numbers within a bound: empty when they are a valid answer, else what is wrong.
  // Adds to `force` the positions where the check could have failed.
  std::function<std::string(int64_t& force)> check;
  std::function<bool()> guards;                  // memory outside the elements is untouched
  std::vector<Tensor> restored;                  // inputs that the operator changes: as generated before every run
  std::vector<std::pair<void*, size_t>> ranges;  // whole pages that hold every tensor: for devices that read them
  std::shared_ptr<void> memory;                  // owns everything above
};

struct BenchShape;

// One operator's share in the evidence.
struct OperatorEvidence {
  std::string op;
  std::vector<ArmInfo> arms;
  // Cases from a seed. Built one at a time, since their oracle values may be large.
  std::vector<std::function<ParityCase()>> (*cases)(uint64_t seed);
  bool discrete = false;  // a run in which `check` never had force is a failure
  std::vector<std::function<BenchShape()>> (*shapes)() = nullptr;  // worth timing (evidence/bench.h)
  std::string folder = {};  // under src/ops, where it has another name than the operator
  std::vector<std::function<BenchShape()>> (*device_shapes)() = nullptr;  // for accelerators; null: `shapes`

  const std::string& source_folder() const { return folder.empty() ? op : folder; }
};

struct ParityFailure {
  std::string test_case, what;
};

struct ParityReport {
  std::string op, arm, device_class;
  uint64_t seed = 0;
  int cases = 0, refused = 0;
  double utilisation = 0;  // worst |error| / bound
  std::string worst_case;
  int64_t elements = 0;  // compared
  int64_t force = 0;
  int variants = 0;                     // ways compared bit for bit
  int controls = 0;                     // perturbed outputs that the checker refused
  int mutants = 0, mutants_caught = 0;  // kinds of spoiled inputs, over all cases
  std::vector<ParityFailure> failures;
  std::vector<std::string> refusals;  // distinct reasons
  double seconds = 0;

  bool ran() const { return cases > 0; }
  bool passed() const { return ran() && failures.empty(); }
};

struct ParityOptions {
  uint64_t seed = 1;
  int threads = 2;
  CpuFeatures cpu = cpu_features();
  std::shared_ptr<Accelerator> accelerator;  // where arms for accelerators run; null: those of the CPU
  std::function<void(int done, int total)> progress;
  std::function<bool()> cancelled;
  bool stop_at_failure = false;  // the first failure is enough
  // Case n is run where n mod parts = part: for slow tools. Of a part no controls are asked.
  int part = 0, parts = 1;
};

// Runs every case. Never throws for a defect of the arm: that is a failure in the report.
ParityReport run_parity(const OperatorEvidence& evidence, const ArmInfo& arm, const ParityOptions& options);

}  // namespace strata
