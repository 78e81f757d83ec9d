// A function that can be left half-way and entered again, on a stack of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace strata {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(Fiber&&) noexcept;
  Fiber& operator=(Fiber&&) noexcept;

  // From the beginning; what was running before is forgotten, its objects are not destroyed. It must not throw.
  void start(std::function<void()> run);
  void enter();  // runs until it leaves or ends
  void leave();  // from inside

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strata
