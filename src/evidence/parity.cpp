#include "evidence/parity.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "evidence/parity_case.h"
#include "evidence/parity_check.h"
#include "evidence/parity_controls.h"

namespace strata {
namespace {

constexpr size_t kMaxFailures = 20;  // listed; more of the same say nothing new

Queue make_queue(const ParityOptions& options, Log& log) {
  return options.accelerator != nullptr ? Queue(options.accelerator, log) : Queue(options.threads, log);
}

// The memory of a case, open to the accelerator.
class Registered {
 public:
  Registered(Accelerator* accelerator, const ParityCase& test) : accelerator_(accelerator) {
    if (accelerator == nullptr) return;
    for (const auto& [memory, bytes] : test.ranges) {
      accelerator->register_host(memory, bytes);
      memory_.push_back(memory);
    }
  }
  ~Registered() {
    for (void* memory : memory_) accelerator_->unregister_host(memory);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  Accelerator* accelerator_;
  std::vector<void*> memory_;
};

class Runner {
 public:
  Runner(const OperatorEvidence& evidence, const ArmInfo& arm, const ParityOptions& options)
      : evidence_(evidence), arm_(arm), options_(options), log_(LogLevel::Error), queue_(make_queue(options, log_)) {
    for (int threads : {1, 3})
      if (options.accelerator == nullptr && threads != options.threads)
        others_.push_back(std::make_unique<Queue>(threads, log_));
    for (const auto& other : others_) request(*other);
    report_.op = evidence.op;
    report_.arm = arm.name;
    report_.device_class = options.accelerator != nullptr ? options.accelerator->info().device_class : arm.device_class;
    report_.seed = options.seed;
    request(queue_);
  }

  ParityReport run() {
    const auto start = std::chrono::steady_clock::now();
    if (const std::string refusal = device_refusal(queue_, arm_.isa, arm_.image, arm_.arch); !refusal.empty()) {
      refuse(refusal);
      return std::move(report_);
    }
    const auto makers = evidence_.cases(options_.seed);
    int done = 0;
    for (size_t index = 0; index < makers.size(); ++index) {
      if (static_cast<int>(index % static_cast<size_t>(options_.parts)) != options_.part) continue;
      if (options_.cancelled && options_.cancelled()) {
        fail("-", "interrupted after " + std::to_string(done) + " of " + std::to_string(makers.size()) + " cases");
        break;
      }
      ParityCase test = makers[index]();
      const std::string refusal = test.refusal(arm_.name);
      if (refusal.empty())
        run_case(test);
      else
        refuse(refusal);
      if (options_.stop_at_failure && !report_.failures.empty()) break;
      if (options_.progress) options_.progress(++done, static_cast<int>(makers.size()));
    }
    finish();
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  void request(Queue& queue) const {
    queue.cpu = options_.cpu;
    queue.strict_arms = true;
    queue.request_arm(evidence_.op, arm_.name);
  }

  void fail(const std::string& test, const std::string& what) {
    if (report_.failures.size() < kMaxFailures) report_.failures.push_back({test, what});
  }

  void refuse(const std::string& reason) {
    ++report_.refused;
    if (std::find(report_.refusals.begin(), report_.refusals.end(), reason) == report_.refusals.end())
      report_.refusals.push_back(reason);
  }

  // Runs once from fresh outputs; false when the operator itself threw.
  bool execute(ParityCase& test, const CaseSnapshot& snapshot, const std::function<void(Queue&)>& run, Queue& queue) {
    snapshot.restore();
    clear_outputs(test);
    try {
      run(queue);
      if (queue.accelerator() != nullptr) queue.stream().wait();
      return true;
    } catch (const Error& error) {
      fail(test.name, error.what());
      return false;
    }
  }

  void run_case(ParityCase& test) {
    ++report_.cases;
    const Registered registered(options_.accelerator.get(), test);
    const CaseSnapshot snapshot(test);
    if (!execute(test, snapshot, test.run, queue_)) return;
    const CheckResult result = check_outputs(test);
    report_.elements += result.compared;
    if (!result.failure.empty()) fail(test.name, result.failure);
    if (const std::string changed = snapshot.changed_input(test); !changed.empty())
      fail(test.name, changed + " was written but is only read");
    if (result.utilisation > report_.utilisation) {
      report_.utilisation = result.utilisation;
      report_.worst_case = test.name;
    }
    if (test.check)
      if (const std::string wrong = test.check(report_.force); !wrong.empty()) fail(test.name, wrong);
    const std::vector<uint32_t> bits = output_bits(test);
    same_bits(test, snapshot, bits);
    if (options_.parts > 1) return;
    controls(test);
    mutants(test, snapshot);
  }

  void same_bits(ParityCase& test, const CaseSnapshot& snapshot, const std::vector<uint32_t>& bits) {
    auto compare = [&](const std::string& way, const std::function<void(Queue&)>& run, Queue& queue) {
      if (!execute(test, snapshot, run, queue)) return;
      ++report_.variants;
      if (output_bits(test) != bits) fail(test.name, way + ": other bits");
    };
    compare("the same call again", test.run, queue_);
    if (!arm_.row_invariant) return;
    for (const auto& other : others_) compare(std::to_string(other->pool().threads()) + " threads", test.run, *other);
    for (const ParityVariant& variant : test.variants) compare(variant.name, variant.run, queue_);
    if (options_.parts == 1) execute(test, snapshot, test.run, queue_);  // the controls start from the plain result
  }

  // The checker must refuse the arm's own output plus 2.5 bounds at one element.
  void controls(ParityCase& test) {
    Random random(options_.seed + static_cast<uint64_t>(report_.cases));
    for (size_t output = 0; output < test.outputs.size(); ++output) {
      const auto perturbation = perturb(test, output, random);
      if (!perturbation) continue;
      const bool refused = !check_outputs(test).failure.empty();
      perturbation->undo();
      if (refused)
        ++report_.controls;
      else
        fail(test.name, "the checker accepts " + test.outputs[output].name + " off by 2.5 bounds: it proves nothing");
    }
  }

  void mutants(ParityCase& test, const CaseSnapshot& snapshot) {
    for (const Mutant& mutant : mutants_of(test)) {
      bool& caught = mutants_[mutant.name];
      if (caught) continue;
      snapshot.restore();
      if (!mutant.apply()) continue;  // the change does nothing to this case
      clear_outputs(test);
      try {
        test.run(queue_);
        if (queue_.accelerator() != nullptr) queue_.stream().wait();
        caught = !check_outputs(test).failure.empty();
      } catch (const Error&) {
        caught = true;  // refused: told apart as well
      }
    }
    snapshot.restore();
  }

  void finish() {
    if (options_.parts > 1) return;
    report_.mutants = static_cast<int>(mutants_.size());
    for (const auto& [name, caught] : mutants_) {
      report_.mutants_caught += caught;
      if (!caught) fail("-", "no case tells apart: " + name);
    }
    if (evidence_.discrete && report_.ran() && report_.force == 0)
      fail("-", "the check of the discrete result never had force");
    if (report_.ran() && report_.controls == 0) fail("-", "no negative control could be run");
  }

  const OperatorEvidence& evidence_;
  const ArmInfo& arm_;
  const ParityOptions& options_;
  Log log_;
  Queue queue_;
  std::vector<std::unique_ptr<Queue>> others_;  // other thread counts: the same bits
  ParityReport report_;
  std::map<std::string, bool> mutants_;
};

}  // namespace

ParityReport run_parity(const OperatorEvidence& evidence, const ArmInfo& arm, const ParityOptions& options) {
  return Runner(evidence, arm, options).run();
}

}  // namespace strata
