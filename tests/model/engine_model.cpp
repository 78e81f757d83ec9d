#include "model/engine_model.h"

#include <algorithm>

#include "base/hash.h"

namespace strata::test {
namespace {

uint64_t hash_of(std::span<const float> logits) { return hash64(logits.data(), logits.size_bytes()); }

}  // namespace

EngineModel::EngineModel(const std::string& name, int64_t prompt)
    : small_(name != "mini"), prompt_(prompt), path_(bits_model_path(name, folder_)) {}

EngineOptions EngineModel::options() const {
  EngineOptions options;
  options.model = path_;
  options.threads = 1;
  options.micro_batch = prompt_;
  options.forward.activations = Activations::Int8;
  return options;
}

Engine& EngineModel::plain_engine(bool anchored) {
  if (plain_[anchored] == nullptr) {
    EngineOptions own = options();
    own.caches.anchored = anchored;
    plain_[anchored] = engine(own);
  }
  return *plain_[anchored];
}

Tokens EngineModel::random_tokens(uint64_t seed, int64_t count) {
  Random random(seed);
  Tokens tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(random.below(spec().vocabulary)));
  return tokens;
}

PlainText EngineModel::plain(GenerateRequest request, bool anchored) {
  request.draft = DraftKind::None;
  request.drafter = {};
  PlainText plain;
  GenerateCallbacks callbacks;
  callbacks.logits = [&](std::span<const float> logits) { plain.logits.push_back(hash_of(logits)); };
  HeldSequence held;
  const GenerateResult result = plain_engine(anchored).generate(request, callbacks, &held);
  plain.tokens = result.tokens;
  plain.reason = result.reason;
  plain.length = held.sequence->length();
  plain.state = held.sequence->hash();
  return plain;
}

std::function<Tokens(std::span<const int32_t>, int)> forced_drafts(size_t prompt, const PlainText& plain,
                                                                   int64_t vocabulary,
                                                                   std::function<int(int)> accepted) {
  return [prompt, tokens = plain.tokens, vocabulary, accepted = std::move(accepted)](std::span<const int32_t> text,
                                                                                     int limit) {
    const size_t right = static_cast<size_t>(std::min(accepted(limit), limit));
    Tokens drafts;
    for (size_t i = 0; i < static_cast<size_t>(limit); ++i) {
      const size_t at = text.size() - prompt + i;
      const int32_t token = at < tokens.size() ? tokens[at] : static_cast<int32_t>(i);
      drafts.push_back(i == right ? (token + 1) % static_cast<int32_t>(vocabulary) : token);
    }
    return drafts;
  };
}

void Watch::attach(GenerateCallbacks& callbacks) {
  callbacks.logits = [this](std::span<const float> logits) {
    const auto at = static_cast<size_t>(seen_++);
    if (!difference_.empty()) return;
    if (at >= plain_.logits.size())
      difference_ = "it goes on where a plain run ends";
    else if (hash_of(logits) != plain_.logits[at])
      difference_ = "logits of token " + std::to_string(at) + " have other bits than a plain run";
  };
}

std::string Watch::compare(const Tokens& tokens, FinishReason reason, bool whole) const {
  if (!difference_.empty()) return difference_;
  const auto equal = std::mismatch(tokens.begin(), tokens.end(), plain_.tokens.begin(), plain_.tokens.end());
  if (equal.first != tokens.end())
    return "token " + std::to_string(equal.first - tokens.begin()) + " is not that of a plain run";
  if (static_cast<size_t>(seen_) != tokens.size())
    return std::to_string(tokens.size()) + " tokens from the logits of " + std::to_string(seen_);
  if (whole && tokens.size() != plain_.tokens.size())
    return "it ends after " + std::to_string(tokens.size()) + " tokens, a plain run after " +
           std::to_string(plain_.tokens.size());
  if (whole && reason != plain_.reason)
    return std::string("it ends by ") + to_string(reason) + ", a plain run by " + to_string(plain_.reason);
  return {};
}

std::string Watch::compare(const HeldSequence& held) const {
  if (!held.sequence) return "no sequence is left";
  if (held.sequence->length() != plain_.length)
    return "its sequence holds " + std::to_string(held.sequence->length()) + " tokens, that of a plain run " +
           std::to_string(plain_.length);
  return held.sequence->hash() == plain_.state ? "" : "its sequence has not the state of a plain run";
}

}  // namespace strata::test
