#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void on_interrupt(int) { g_interrupted = true; }

// The first Ctrl-C asks the command to stop, the second ends the process. A blocking read returns on the first.
void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  install_interrupt_handler();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return strata::cli::run_program(strata::cli::strata_program(), arguments, environ, g_interrupted);
}
