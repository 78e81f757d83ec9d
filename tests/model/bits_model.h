// A model that promises about bits are tested on, and what a plain run gives: one call over all tokens, one thread, a
// fresh sequence in memory of its own, all of it in the first tier.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/forward.h"
#include "model/model.h"
#include "model/sequence.h"
#include "support/test_files.h"

namespace strata::test {

using Tokens = std::vector<int32_t>;

// "mini", the default model, and the tiny models of every family.
const std::vector<std::string>& bits_models();
// The file of one of them; tiny ones are written into the folder.
std::string bits_model_path(const std::string& name, const TempFolder& folder);

// Logits and taps of the rows of one run, a hash for each row; and the state after it.
struct PlainRun {
  std::vector<uint64_t> logits, taps;
  uint64_t state = 0;
};

class BitsModel {
 public:
  static constexpr int kMaxThreads = 3;

  // name: of bits_models(). isa: the most that arms may use. Activations are rounded, with anchored delta nets they are
  // not.
  explicit BitsModel(const std::string& name, CpuIsa isa = CpuIsa::Avx512Bf16, const CacheOptions& caches = {});

  const ModelSpec& spec() const { return model_.spec(); }
  int64_t vocabulary() const { return spec().vocabulary; }
  int64_t width() const { return spec().residual_width(); }
  bool has_delta() const;
  bool anchored() const { return has_delta() && caches_.anchored; }
  int64_t context() const { return context_; }  // beyond the budget of block selection where there is one
  bool small() const { return small_; }

  // A pass with so many threads, 1 to kMaxThreads.
  Forward& forward(int threads) { return passes_[static_cast<size_t>(threads - 1)].forward; }
  Sequence sequence(PagePool pool) const { return Sequence(spec(), context_, caches_, std::move(pool)); }
  Sequence sequence() const { return sequence(pool_); }
  Sequence sequence(PagePool pool, int64_t resident) const;  // with so many positions in the first tier, 0: all
  const PagePool& pool() const { return pool_; }             // of sequence()
  Tokens random_tokens(uint64_t seed, int64_t count) const;
  PlainRun plain(std::span<const int32_t> tokens);
  // The same, remembered: for runs that many tests share.
  const PlainRun& remembered(const Tokens& tokens);
  // Of the sequence once nothing waits to be applied; the sequence itself is left as it is.
  uint64_t hash(const Sequence& sequence);
  std::string saved(const Sequence& sequence);

 private:
  struct Pass {
    Pass(const Model& model, int threads, CpuIsa isa, Activations activations, Log& log)
        : queue(threads, log), forward(model, queue, options(activations)) {
      queue.cpu = cpu_features().limited_to(isa);
    }
    static ForwardOptions options(Activations activations) {
      ForwardOptions options;
      options.activations = activations;
      return options;
    }
    Queue queue;
    Forward forward;
  };

  bool small_;
  int64_t context_;
  CacheOptions caches_;
  PagePool pool_;
  TempFolder folder_;
  Log log_;
  Model model_;
  std::deque<Pass> passes_;
  std::map<Tokens, PlainRun> plain_;
};

// Tokens of one sequence in a call, with room for what comes out.
class CallRows {
 public:
  // Rows after the first `certain` may be taken back, -1: none. Logits of the last `wanted` rows, -1: of all; taps of
  // all.
  CallRows(const BitsModel& model, Sequence& sequence, Tokens tokens, int64_t certain = -1, int64_t wanted = -1);

  Segment segment();
  // Rows 0 .. rows - 1 of the call against rows first .. of a plain run: empty when all bits agree, or what differs.
  std::string compare(const PlainRun& plain, int64_t first, int64_t rows) const;
  int64_t rows() const { return static_cast<int64_t>(tokens_.size()); }

 private:
  Sequence* sequence_;
  Tokens tokens_;
  int64_t certain_, wanted_, vocabulary_, width_;
  std::vector<float> logits_, taps_;
};

void run_together(Forward& forward, std::span<CallRows*> calls);

void load_into(Sequence& sequence, std::string_view bytes);  // Error{Format}, also when bytes are left over

}  // namespace strata::test
