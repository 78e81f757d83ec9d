#include "runtime/mtp_drafter.h"

#include <algorithm>

namespace strata {

MtpDrafter::MtpDrafter(Forward& forward, Sequence& sequence)
    : forward_(forward),
      sequence_(sequence),
      width_(forward.spec().residual_width()),
      logits_(static_cast<size_t>(forward.spec().vocabulary)),
      held_first_(sequence.length()),
      fed_(sequence.mtp_length()) {}

Tensor MtpDrafter::taps(int64_t rows) {
  pass_.resize(static_cast<size_t>(rows * width_));
  return make_f32(pass_.data(), {rows, width_});
}

void MtpDrafter::keep(int64_t first, int64_t kept) {
  if (held_.empty()) held_first_ = first;
  held_.insert(held_.end(), pass_.begin(), pass_.begin() + kept * width_);
}

void MtpDrafter::drop_guesses() {
  if (sequence_.mtp_length() > fed_) sequence_.truncate_mtp(fed_);
}

void MtpDrafter::feed(std::span<const int32_t> history) {
  drop_guesses();
  const auto known = static_cast<int64_t>(history.size()) - 1;  // pairs p < known have their next token
  const int64_t held = static_cast<int64_t>(held_.size()) / width_, count = std::min(held, known - held_first_);
  if (count <= 0) return;
  forward_.draft(make_f32(held_.data(), {count, width_}),
                 history.subspan(static_cast<size_t>(held_first_ + 1), static_cast<size_t>(count)), held_first_,
                 sequence_, {});
  held_.erase(held_.begin(), held_.begin() + count * width_);
  held_first_ += count;
  fed_ = sequence_.mtp_length();
}

std::vector<int32_t> MtpDrafter::propose(std::span<const int32_t> history, int limit) {
  drop_guesses();
  const auto last = static_cast<int64_t>(history.size()) - 1;  // the position of the newest token, not run yet
  int64_t count = static_cast<int64_t>(held_.size()) / width_;
  if (limit < 1 || count < 1 || held_first_ + count != last) return {};
  if (sequence_.capacity() - sequence_.mtp_length() < count + limit) return {};
  const Tensor logits = make_f32(logits_.data(), {1, forward_.spec().vocabulary});
  next_.resize(static_cast<size_t>(count * width_));
  std::vector<int32_t> drafts;
  forward_.draft(make_f32(held_.data(), {count, width_}),
                 history.subspan(static_cast<size_t>(held_first_ + 1), static_cast<size_t>(count)), held_first_,
                 sequence_, logits, make_f32(next_.data(), {count, width_}));
  held_.clear();
  fed_ = sequence_.mtp_length();
  std::vector<float> tap(next_.end() - width_, next_.end());
  for (;;) {
    const auto best = std::max_element(logits_.begin(), logits_.end());
    drafts.push_back(static_cast<int32_t>(best - logits_.begin()));
    if (static_cast<int>(drafts.size()) == limit) return drafts;
    next_.resize(static_cast<size_t>(width_));
    const int64_t position = last + static_cast<int64_t>(drafts.size()) - 1;
    forward_.draft(make_f32(tap.data(), {1, width_}), {&drafts.back(), 1}, position, sequence_, logits,
                   make_f32(next_.data(), {1, width_}));
    tap = next_;
  }
}

}  // namespace strata
