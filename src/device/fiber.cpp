#include "device/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#define STRATA_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STRATA_FIBER_ASAN 1
#endif
#endif

// Stacks change under the sanitizer's feet: it has to be told.
#ifdef STRATA_FIBER_ASAN
extern "C" void __sanitizer_start_switch_fiber(void** save, const void* bottom, size_t size);
extern "C" void __sanitizer_finish_switch_fiber(void* save, const void** bottom, size_t* size);
extern "C" void __asan_unpoison_memory_region(const volatile void* start, size_t size);
#endif

#if defined(__x86_64__)
// Saves what a function must keep, changes the stack, and restores it there: a system call less than swapcontext.
extern "C" void strata_switch_stack(void** save, void* to);
asm(R"(
.text
.globl strata_switch_stack
.type strata_switch_stack, @function
strata_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size strata_switch_stack, .-strata_switch_stack
)");
#endif

namespace strata {
namespace {

constexpr size_t kStackBytes = 64u << 10;

}  // namespace

struct Fiber::State {
  char* stack = nullptr;
  std::function<void()> run;
#if defined(__x86_64__)
  void* inside = nullptr;   // stack pointer while left
  void* outside = nullptr;  // of who entered
#else
  ucontext_t inside{}, outside{};
#endif
#ifdef STRATA_FIBER_ASAN
  const void* caller_bottom = nullptr;
  size_t caller_size = 0;
#endif

  State() {
    void* memory =
        ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw Error(ErrorKind::Memory, "no stack for an emulated thread");
    stack = static_cast<char*>(memory);
  }
  ~State() {
#ifdef STRATA_FIBER_ASAN
    __asan_unpoison_memory_region(stack, kStackBytes);  // what is mapped here next is no stack
#endif
    ::munmap(stack, kStackBytes);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void change(bool in) {
#ifdef STRATA_FIBER_ASAN
    void* fake = nullptr;
    if (in)
      __sanitizer_start_switch_fiber(&fake, stack, kStackBytes);
    else
      __sanitizer_start_switch_fiber(&fake, caller_bottom, caller_size);
#endif
#if defined(__x86_64__)
    if (in)
      strata_switch_stack(&outside, inside);
    else
      strata_switch_stack(&inside, outside);
#else
    if (in)
      swapcontext(&outside, &inside);
    else
      swapcontext(&inside, &outside);
#endif
#ifdef STRATA_FIBER_ASAN
    if (in)
      __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
    else
      __sanitizer_finish_switch_fiber(fake, &caller_bottom, &caller_size);
#endif
  }

  static void body(State* state) {
#ifdef STRATA_FIBER_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &state->caller_bottom, &state->caller_size);
#endif
    state->run();
    for (;;) state->change(false);
  }
};

#if defined(__x86_64__)
namespace {
// The first entry returns here, with the state in a saved register.
asm(R"(
.text
.type strata_fiber_entry, @function
strata_fiber_entry:
  movq %r12, %rdi
  callq *%r13
  ud2
.size strata_fiber_entry, .-strata_fiber_entry
)");
extern "C" void strata_fiber_entry();
}  // namespace
#endif

Fiber::Fiber() : state_(std::make_unique<State>()) {}
Fiber::~Fiber() = default;
Fiber::Fiber(Fiber&&) noexcept = default;
Fiber& Fiber::operator=(Fiber&&) noexcept = default;

void Fiber::start(std::function<void()> run) {
  state_->run = std::move(run);
#if defined(__x86_64__)
  // As strata_switch_stack leaves it: r15 r14 r13 r12 rbx rbp, the return address; then the stack as at a call.
  auto** top = reinterpret_cast<void**>(state_->stack + kStackBytes - 64);
  void (*body)(State*) = &State::body;
  top[-1] = top[-2] = nullptr;  // aligned to 16 bytes at the call
  top[-3] = reinterpret_cast<void*>(&strata_fiber_entry);
  for (int i = 4; i <= 9; ++i) top[-i] = nullptr;
  top[-6] = state_.get();                      // r12
  std::memcpy(&top[-7], &body, sizeof(body));  // r13
  state_->inside = top - 9;
#else
  getcontext(&state_->inside);
  state_->inside.uc_stack.ss_sp = state_->stack;
  state_->inside.uc_stack.ss_size = kStackBytes;
  state_->inside.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(state_.get());
  void (*entry)(unsigned, unsigned) = [](unsigned high, unsigned low) {
    State::body(reinterpret_cast<State*>((static_cast<uintptr_t>(high) << 32) | low));
  };
  makecontext(&state_->inside, reinterpret_cast<void (*)()>(entry), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
#endif
}

void Fiber::enter() { state_->change(true); }
void Fiber::leave() { state_->change(false); }

}  // namespace strata
