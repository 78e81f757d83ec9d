// Runs a program with its own environment and standard input, under a time limit.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace strata::test {

struct ProcessResult {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;      // the signal that ended it, 0 for an exit
  bool timed_out = false;
  std::string out;
  std::string err;
};

// Standard streams are files in memory, so that neither side can block on a full pipe.
class Process {
 public:
  // `environment` holds NAME=VALUE; nothing is inherited.
  Process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
          std::string_view input = {}) {
    write_all(in_.descriptor, input);
    ::lseek(in_.descriptor, 0, SEEK_SET);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in_.descriptor, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out_.descriptor, 1);
    ::posix_spawn_file_actions_adddup2(&actions, err_.descriptor, 2);
    const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
    const int error = ::posix_spawn(&pid_, arguments.front().c_str(), &actions, nullptr, argv.data(), envp.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("cannot start " + arguments.front() + ": " + std::strerror(error));
  }
  ~Process() {
    if (pid_ > 0) {
      send(SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }
  pid_t pid() const { return pid_; }
  std::string out() const { return contents(out_.descriptor); }
  std::string err() const { return contents(err_.descriptor); }

  // Waits for the end; kills the program when the limit is over.
  ProcessResult wait(std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    ProcessResult result;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (::waitpid(pid_, &status, result.timed_out ? 0 : WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) {
        result.timed_out = true;
        send(SIGKILL);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
    pid_ = -1;
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    result.out = out();
    result.err = err();
    return result;
  }

 private:
  struct MemoryFile {
    MemoryFile() : descriptor(::memfd_create("stream", MFD_CLOEXEC)) {
      if (descriptor < 0) throw std::runtime_error("cannot create a file in memory");
    }
    ~MemoryFile() { ::close(descriptor); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    int descriptor;
  };

  static void write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor, text.data(), text.size());
      if (written <= 0) throw std::runtime_error("cannot write to a file in memory");
      text.remove_prefix(static_cast<size_t>(written));
    }
  }

  // By position, for the program shares the offset.
  static std::string contents(int descriptor) {
    std::string text;
    char chunk[4096];
    ssize_t got = 0;
    while ((got = ::pread(descriptor, chunk, sizeof chunk, static_cast<off_t>(text.size()))) > 0)
      text.append(chunk, static_cast<size_t>(got));
    return text;
  }

  static std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
  }

  MemoryFile in_, out_, err_;
  pid_t pid_ = -1;
};

inline ProcessResult run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
                         std::string_view input = {}, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  return Process(arguments, environment, input).wait(limit);
}

}  // namespace strata::test
