// `strata serve` as a child process on a free port of 127.0.0.1, and raw connections to it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/process.h"

namespace strata::test {

// A TCP connection whose bytes the test writes by itself.
class RawConnection {
 public:
  explicit RawConnection(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect to the server");
  }
  ~RawConnection() { close(); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Until `text` holds `end`, the connection ends, or the time is over.
  std::string receive(std::string_view end = {}, std::chrono::milliseconds limit = std::chrono::seconds(20)) const {
    std::string text;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (end.empty() || text.find(end) == std::string::npos) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
      pollfd one{socket_, POLLIN, 0};
      if (left <= 0 || ::poll(&one, 1, static_cast<int>(left)) <= 0) break;
      char chunk[16384];
      const ssize_t got = ::recv(socket_, chunk, sizeof chunk, 0);
      if (got <= 0) break;
      text.append(chunk, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  int socket_;
};

class ServerProcess {
 public:
  // Waits until the server says its port, and, unless told otherwise, until the model is loaded.
  explicit ServerProcess(std::vector<std::string> arguments = {}, bool loaded = true)
      : process_(with_program(std::move(arguments)), {}) {
    for (int i = 0; i < 5000 && port_ == 0; ++i) {
      const std::string out = process_.out();
      const size_t colon = out.find('\n') == std::string::npos ? std::string::npos : out.rfind(':');
      if (colon != std::string::npos) port_ = std::stoi(out.substr(colon + 1));
      if (port_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (port_ == 0) throw std::runtime_error("the server does not start: " + process_.err());
    for (int i = 0; loaded && i < 5000 && get("/health").find(" 200 ") == std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  ~ServerProcess() {  // what a sanitizer found would go unseen
    if (const std::string said = err(); said.find("Sanitizer") != std::string::npos) ADD_FAILURE() << said;
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string err() const { return process_.err(); }
  void send(int signal) const { process_.send(signal); }
  pid_t pid() const { return process_.pid(); }
  ProcessResult wait() { return process_.wait(); }

  // The whole answer, head included.
  std::string get(const std::string& path) const {
    return raw("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  }
  std::string raw(std::string_view request) const {
    const RawConnection connection(port_);
    connection.send(request);
    return connection.receive();
  }

 private:
  static std::vector<std::string> with_program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {STRATA_BINARY_DIR "/strata", "serve", "--port", "0"});
    return arguments;
  }
  Process process_;
  int port_ = 0;
};

}  // namespace strata::test
