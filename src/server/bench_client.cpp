#include "server/bench_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "server/json.h"

namespace strata::server {
namespace {

using Clock = std::chrono::steady_clock;

// A connection to this machine.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      ::close(socket_);
      throw Error(ErrorKind::File, "cannot reach the server", fmt::format("port {}", port));
    }
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) throw Error(ErrorKind::File, "the server closed the connection");
      text.remove_prefix(static_cast<size_t>(sent));
    }
  }
  bool receive(std::string& text) const {  // false: the end
    char chunk[16384];
    const ssize_t got = ::recv(socket_, chunk, sizeof chunk, 0);
    if (got > 0) text.append(chunk, static_cast<size_t>(got));
    return got > 0;
  }

 private:
  int socket_;
};

double thread_cpu() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

MeasuredAnswer measured_completion(int port, const std::vector<int32_t>& prompt, int64_t output) {
  const double cpu = thread_cpu();
  const std::string body = to_text({{"prompt", prompt},
                                    {"max_tokens", output},
                                    {"ignore_eos", true},
                                    {"repeat_limit", 0},
                                    {"stream", true},
                                    {"stream_options", {{"include_usage", true}}}});
  const Client client(port);
  MeasuredAnswer answer;
  const Clock::time_point start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  client.send(
      fmt::format("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
                  "{}\r\n\r\n{}",
                  body.size(), body));
  std::string received;
  size_t read = 0;
  double last = 0;
  while (client.receive(received)) {
    if (answer.status == 0 && received.size() > 12) answer.status = std::atoi(received.c_str() + 9);
    for (size_t at; (at = received.find("data: {", read)) != std::string::npos;) {
      const size_t end = received.find("\n\n", at);
      if (end == std::string::npos) break;
      const Json event = Json::parse(received.begin() + static_cast<std::ptrdiff_t>(at) + 6,
                                     received.begin() + static_cast<std::ptrdiff_t>(end));
      read = end;
      if (const auto usage = event.find("usage"); usage != event.end()) {
        answer.prompt_tokens = usage->at("prompt_tokens");
        answer.output_tokens = usage->at("completion_tokens");
        answer.cached_tokens = usage->at("prompt_tokens_details").at("cached_tokens");
      }
      const Json choices = event.value("choices", Json::array());
      if (choices.empty() || choices[0].value("text", "").empty()) continue;
      const double now = seconds();
      if (answer.first == 0)
        answer.first = now;
      else
        answer.gaps.push_back(now - last);
      last = now;
    }
  }
  answer.whole = last > 0 ? last : seconds();
  if (answer.first == 0) answer.first = answer.whole;
  answer.client_cpu = thread_cpu() - cpu;
  return answer;
}

}  // namespace strata::server
