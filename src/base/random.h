// A counter-based generator: the same seed gives the same numbers on every machine.
#pragma once

#include <cstdint>

namespace strata {

// splitmix64: adds the golden increment, then mixes (models.md, section 4.10).
inline uint64_t splitmix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(splitmix64(seed)) {}
  void skip(uint64_t numbers) { state_ += numbers; }  // as if they had been drawn
  uint64_t next() { return splitmix64(state_++); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  float uniform(float low, float high) { return low + (high - low) * static_cast<float>(uniform()); }
  int64_t below(int64_t bound) { return static_cast<int64_t>(next() % static_cast<uint64_t>(bound)); }

 private:
  uint64_t state_;
};

}  // namespace strata
