// Sets of this machine's processors, and which of them threads run on.
#pragma once

#include <sched.h>

#include <bitset>
#include <string>
#include <string_view>

namespace strata {

class ProcessorSet {
 public:
  static constexpr int kMost = CPU_SETSIZE;

  ProcessorSet() = default;  // empty
  // "0xff" or "ff": a bit for each processor; 0 gives an empty set. Error{Usage} at `where` for another text.
  static ProcessorSet parse_mask(std::string_view mask, const std::string& where);
  // "2-5", "2-" (to the last one that is allowed), "-5" or "3". Error{Usage} at `where` for another text.
  static ProcessorSet parse_range(std::string_view range, const std::string& where);
  static ProcessorSet allowed();  // that the calling thread may use now

  bool empty() const { return bits_.none(); }
  int count() const { return static_cast<int>(bits_.count()); }
  bool contains(int processor) const { return bits_[static_cast<size_t>(processor)]; }
  void add(int processor) { bits_.set(static_cast<size_t>(processor)); }
  void add(const ProcessorSet& other) { bits_ |= other.bits_; }
  int nth(int index) const;      // the index-th lowest, index < count()
  std::string describe() const;  // "0-3,8"

  // Error{Usage} at `where` that names the first processor that this thread may not use.
  void check_allowed(const std::string& where) const;

 private:
  std::bitset<kMost> bits_;
};

// The calling thread runs on these processors for the life of this object, and so do threads it starts meanwhile. An
// empty set changes nothing.
class ThreadAffinity {
 public:
  explicit ThreadAffinity(const ProcessorSet& processors);
  ~ThreadAffinity();
  ThreadAffinity(const ThreadAffinity&) = delete;
  ThreadAffinity& operator=(const ThreadAffinity&) = delete;

 private:
  ProcessorSet before_;  // empty: nothing to restore
};

}  // namespace strata
