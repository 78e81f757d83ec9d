#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

// The first Ctrl-C or SIGTERM asks the command to stop, a second one before it did ends the process.
void on_interrupt(int number) {
  if (!g_interrupted.exchange(true)) return;
  signal(number, SIG_DFL);
  raise(number);
}

// Without SA_RESTART a blocking read returns on Ctrl-C.
void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  install_interrupt_handler();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return strata::cli::run_program(strata::cli::strata_program(), arguments, environ, g_interrupted);
}
