// Builds the arguments of a parity case: owned tensors between canaries, and the ways to run them.
#pragma once

#include <cmath>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "evidence/parity.h"

namespace strata {

inline constexpr uint32_t kCanary = 0x7fdeadc5;  // as f32 a NaN: written over it shows, read it poisons the result

// Tensors that live as long as the case. All memory starts as canaries, before, between and behind the elements.
class CaseMemory {
 public:
  // pads[axis]: canary elements (blocks) between the end of one index of that axis and the next.
  Tensor tensor(DType dtype, const std::vector<int64_t>& extents, const std::vector<int64_t>& pads = {});
  Tensor f32(const std::vector<int64_t>& extents, Random& random, float low = -1, float high = 1,
             const std::vector<int64_t>& pads = {});
  Tensor i32(const std::vector<int32_t>& values);
  // A copy of the tensor in pages of `rows` of its outermost indices, at shuffled places.
  RowPages paged(const Tensor& tensor, int64_t rows, Random& random);
  // A table of addresses in memory that devices read.
  const void* const* table(const std::vector<const void*>& addresses);
  bool guards_intact() const;
  // Whole pages of memory that hold everything above, and nothing else.
  std::vector<std::pair<void*, size_t>> ranges() const;
  // Those of `ranges` that hold addresses: the tables of paged tensors.
  const std::vector<void*>& tables() const { return tables_; }

 private:
  struct Pages {
    Buffer buffer;
    char* start = nullptr;  // of a page
    size_t bytes = 0;       // a multiple of the size of a page
  };
  struct Block {
    Pages pages;
    Tensor tensor;
  };
  static Pages take(size_t bytes);
  std::vector<Block> blocks_;
  std::vector<Pages> paged_;  // memory and tables of paged tensors
  std::vector<void*> tables_;
};

// Calls visit(start of row) for each row along the last axis, in row-major order.
void for_each_row(const Tensor& tensor, const std::function<void(void*)>& visit);

// Roundings (evidence of the f32 arms): u = 2^-24, and the relative error of k roundings in a row.
inline constexpr double kUnitRoundoff = 0x1p-24;
inline double gamma(double k) { return k * kUnitRoundoff / (1 - k * kUnitRoundoff); }

// Arguments with named members, so that a row slice or a changed input is the same code for every operator.
template <class Args>
class CaseBuilder {
 public:
  CaseBuilder(std::string name, void (*run)(Queue&, const Args&), std::span<const Arm<Args>> arms)
      : memory_(std::make_shared<State>()), run_(run), arms_(arms) {
    result_.name = std::move(name);
  }

  CaseMemory& memory() { return memory_->tensors; }
  Args& args() { return memory_->args; }

  void input(std::string name, Tensor Args::*member) { result_.inputs.push_back({std::move(name), args().*member}); }
  void output(std::string name, Tensor Args::*member, std::vector<double> expected, std::vector<double> bound,
              std::vector<uint8_t> written = {}) {
    result_.outputs.push_back(
        {std::move(name), args().*member, std::move(expected), std::move(bound), std::move(written)});
  }
  // From the operator's own oracle and bound, on the arguments as they are now; without a bound the output is exact.
  void output(std::string name, Tensor Args::*member, void (*oracle)(const Args&, double*),
              void (*bound)(const Args&, double*) = nullptr) {
    std::vector<double> expected(static_cast<size_t>((args().*member).elements())), limits(expected.size(), 0.0);
    oracle(args(), expected.data());
    if (bound != nullptr) bound(args(), limits.data());
    output(std::move(name), member, std::move(expected), std::move(limits));
  }
  // A view that is no member, for instance of the words of a quantised tensor.
  void output(std::string name, const Tensor& tensor, std::vector<double> expected, std::vector<uint8_t> written) {
    std::vector<double> exact(expected.size(), 0.0);
    result_.outputs.push_back({std::move(name), tensor, std::move(expected), std::move(exact), std::move(written)});
  }
  void restored(Tensor Args::*member) { result_.restored.push_back(args().*member); }

  // The members that hold one index per row along their outermost axis: rows may be computed one by one.
  void rows(std::initializer_list<Tensor Args::*> members) {
    const std::vector<Tensor Args::*> list(members);
    const int64_t count = (args().*list.front()).extent(0);
    for (int64_t step : {int64_t{1}, int64_t{3}}) {
      if (count <= step) continue;
      variant("rows by " + std::to_string(step), [state = memory_, run = run_, list, count, step](Queue& queue) {
        for (int64_t first = 0; first < count; first += step) {
          Args part = state->args;
          for (Tensor Args::*member : list)
            if (!(part.*member).empty()) part.*member = (part.*member).slice(first, std::min(step, count - first));
          run(queue, part);
        }
      });
    }
  }
  void variant(std::string name, std::function<void(Queue&)> run) {
    result_.variants.push_back({std::move(name), std::move(run)});
  }
  // A value that lives as long as the case, for arguments that only point to it.
  template <class T>
  T* keep(T value) {
    auto kept = std::make_shared<T>(std::move(value));
    memory_->kept.push_back(kept);
    return kept.get();
  }
  void check(std::function<std::string(int64_t&)> check) { result_.check = std::move(check); }

  ParityCase build() {
    result_.run = [state = memory_, run = run_](Queue& queue) { run(queue, state->args); };
    result_.refusal = [state = memory_, arms = arms_](const std::string& arm) {
      return refusal_of(arms, arm, state->args);
    };
    result_.guards = [state = memory_] { return state->tensors.guards_intact(); };
    result_.ranges = memory_->tensors.ranges();
    result_.memory = memory_;
    return std::move(result_);
  }

 private:
  struct State {
    CaseMemory tensors;
    Args args{};
    std::vector<std::shared_ptr<void>> kept;
  };
  std::shared_ptr<State> memory_;
  void (*run_)(Queue&, const Args&);
  std::span<const Arm<Args>> arms_;
  ParityCase result_;
};

}  // namespace strata
