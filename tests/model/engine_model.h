// What an engine promises about bits: a model with runs to compare with. A plain run is an engine alone: one thread,
// one token at a time, no drafts, nothing kept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/bits_model.h"
#include "runtime/engine.h"

namespace strata::test {

// Tokens, a hash of the logits that each was chosen from, and the sequence at the end.
struct PlainText {
  Tokens tokens;
  std::vector<uint64_t> logits;
  FinishReason reason = FinishReason::Length;
  int64_t length = 0;  // of the sequence
  uint64_t state = 0;
};

class EngineModel {
 public:
  // name: of bits_models(). prompt: tokens that a plain run reads at a time.
  explicit EngineModel(const std::string& name, int64_t prompt = 1);

  bool small() const { return small_; }
  const ModelSpec& spec() { return plain_engine(false).model().spec(); }
  bool has_mtp() { return spec().mtp_layers > 0; }
  bool has_delta() { return spec().delta.value_heads > 0; }
  EngineOptions options() const;  // of a plain run
  std::unique_ptr<Engine> engine(const EngineOptions& options) { return std::make_unique<Engine>(options, log_); }
  Tokens random_tokens(uint64_t seed, int64_t count);
  // Of a request, whose drafts are left out.
  PlainText plain(GenerateRequest request, bool anchored = false);
  const TempFolder& folder() const { return folder_; }

 private:
  Engine& plain_engine(bool anchored);

  bool small_;
  int64_t prompt_;
  TempFolder folder_;
  std::string path_;
  Log log_{LogLevel::Error};
  std::unique_ptr<Engine> plain_[2];
};

// Drafts of `limit` tokens of which the first accepted(limit) go on as the plain run does, and the next does not.
std::function<Tokens(std::span<const int32_t>, int)> forced_drafts(size_t prompt, const PlainText& plain,
                                                                   int64_t vocabulary,
                                                                   std::function<int(int)> accepted);

// Compares a run with the plain one while it is going on.
class Watch {
 public:
  Watch() = default;
  explicit Watch(PlainText plain) : plain_(std::move(plain)) {}

  const PlainText& plain() const { return plain_; }
  void attach(GenerateCallbacks& callbacks);  // the watch stays where it is
  int64_t seen() const { return seen_; }      // logits compared
  // Empty when all bits agree, or what differs. whole: the run came to its end.
  std::string compare(const Tokens& tokens, FinishReason reason, bool whole = true) const;
  std::string compare(const HeldSequence& held) const;  // of a whole run
  const std::string& difference() const { return difference_; }

 private:
  PlainText plain_;
  int64_t seen_ = 0;
  std::string difference_;
};

}  // namespace strata::test
