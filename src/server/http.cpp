// The only file that sees cpp-httplib. It listens, runs a thread for each connection and writes answers; what it is
// given to read was read and checked here before (http_head.h), so that limits and refusals are ours.
#include "server/http.h"

#include <fmt/format.h>
#include <httplib.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace strata::server {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Waits for an event of the socket; false when the time is over.
bool wait_for(int socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd one{socket, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (left <= 0) return false;
  }
}

// A connection: what the client sends is read here; cpp-httplib reads from `prepared_` alone.
class Connection : public httplib::Stream {
 public:
  Connection(int socket, const HttpLimits& limits, const std::atomic<bool>& stopping)
      : socket_(socket), limits_(limits), stopping_(stopping) {
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  enum class Next : uint8_t { Request, Closed, Refused };

  // The next request, its body included. Refused: `refusal` says why, and the connection cannot go on.
  Next next(HttpRefusal& refusal) {
    request_ = {};
    request_.gone = [this] { return gone(); };
    if (!wait_for_first_byte()) return Next::Closed;
    refusal = read_head();
    if (refusal.status == 0) refusal = read_body();
    if (closed_) return Next::Closed;
    if (refusal.status != 0) return Next::Refused;
    prepare();
    return Next::Request;
  }

  HttpRequest& request() { return request_; }

  bool gone() const {
    char byte = 0;
    const ssize_t got = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }

  bool send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      if (sent > 0 || (sent < 0 && errno == EINTR)) continue;
      if (sent == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return false;
      if (!wait_for(socket_, POLLOUT, after(limits_.write_seconds))) return false;
    }
    return true;
  }

  // Lets the client read the answer although it is still sending: closing with unread bytes would take it away.
  void linger() {
    ::shutdown(socket_, SHUT_WR);
    const auto deadline = after(0.5);
    size_t drained = 0;
    char chunk[16384];
    while (drained < size_t{4} << 20 && wait_for(socket_, POLLIN, deadline)) {
      const ssize_t got = ::recv(socket_, chunk, sizeof chunk, MSG_DONTWAIT);
      if (got <= 0) break;
      drained += static_cast<size_t>(got);
    }
  }

  bool is_readable() const override { return at_ < prepared_.size(); }
  bool is_writable() const override { return !gone(); }
  ssize_t read(char* to, size_t size) override {
    const size_t taken = std::min(size, prepared_.size() - at_);
    std::copy_n(prepared_.data() + at_, taken, to);
    at_ += taken;
    return static_cast<ssize_t>(taken);
  }
  ssize_t write(const char* from, size_t size) override {
    return send_all({from, size}) ? static_cast<ssize_t>(size) : -1;
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return 0; }  // never selected on
  int socket_number() const { return socket_; }

 private:
  bool wait_for_first_byte() {
    const auto deadline = after(limits_.keep_alive_seconds);
    while (in_.empty()) {
      if (stopping_) return false;
      const auto slice = std::min(deadline, after(0.2));
      if (wait_for(socket_, POLLIN, slice)) return receive(deadline);
      if (Clock::now() >= deadline) return false;
    }
    return true;
  }

  // More bytes into in_; false when there are none in time, or no more.
  bool receive(Clock::time_point deadline) {
    char chunk[16384];
    if (!wait_for(socket_, POLLIN, deadline)) return false;
    const ssize_t got = ::recv(socket_, chunk, sizeof chunk, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) {
      closed_ = true;
      return false;
    }
    in_.append(chunk, static_cast<size_t>(got));
    return true;
  }

  HttpRefusal read_head() {
    const auto deadline = after(limits_.head_seconds);
    size_t looked = 0;
    for (;;) {
      // Blank lines before a request are skipped: some clients send one behind a body.
      while (in_.starts_with("\r\n")) in_.erase(0, 2);
      const size_t end = in_.find("\r\n\r\n", looked);
      const size_t size = end == std::string::npos ? in_.size() : end + 4;
      if (size > limits_.head_bytes) {
        parse_head(in_.substr(0, in_.find("\r\n") + 2), limits_, request_.head);
        return {431, fmt::format("the head is larger than {} bytes", limits_.head_bytes)};
      }
      if (end != std::string::npos) break;
      looked = in_.size() < 3 ? 0 : in_.size() - 3;
      if (!receive(deadline)) return {408, "the head of the request did not come in time"};
      if (Clock::now() > deadline) return {408, "the head of the request did not come in time"};
    }
    const size_t size = in_.find("\r\n\r\n") + 4;
    const HttpRefusal refusal = parse_head(std::string_view(in_).substr(0, size), limits_, request_.head);
    in_.erase(0, size);
    return refusal;
  }

  HttpRefusal read_body() {
    const HttpHead& head = request_.head;
    if (!head.chunked && head.content_length == 0) return {};
    if (head.expects_continue && in_.empty() && !send_all("HTTP/1.1 100 Continue\r\n\r\n")) closed_ = true;
    const auto deadline = after(limits_.body_seconds);
    const HttpRefusal late{408, "the body of the request did not come in time"};
    ChunkedBody chunks(limits_.body_bytes);
    for (;;) {
      if (head.chunked) {
        std::string_view bytes = in_;
        if (!chunks.push(bytes, request_.body)) return chunks.refusal();
        in_.erase(0, in_.size() - bytes.size());
        if (chunks.done()) return {};
      } else {
        const auto wanted = static_cast<size_t>(head.content_length) - request_.body.size();
        const size_t taken = std::min(wanted, in_.size());
        request_.body.append(in_, 0, taken);
        in_.erase(0, taken);
        if (taken == wanted) return {};
      }
      if (!receive(deadline) || Clock::now() > deadline) return late;
    }
  }

  // One path for all: what is meant is in request().
  void prepare() {
    const HttpHead& head = request_.head;
    prepared_ = fmt::format("{} / {}\r\nConnection: {}\r\n\r\n", head.method, head.http11 ? "HTTP/1.1" : "HTTP/1.0",
                            head.keep_alive ? "Keep-Alive" : "close");
    if (head.method == "POST") prepared_.insert(prepared_.size() - 2, "Content-Length: 0\r\n");
    at_ = 0;
  }

  const int socket_;
  const HttpLimits& limits_;
  const std::atomic<bool>& stopping_;
  HttpRequest request_;
  std::string in_;        // received and not used yet
  std::string prepared_;  // for cpp-httplib
  size_t at_ = 0;
  bool closed_ = false;
};

// How a handler finds the connection of a request: cpp-httplib carries it in a field that servers do not use.
struct ConnectionOf {
  Connection* connection;
  bool operator()(uint64_t, uint64_t) const { return true; }
};

Connection& connection_of(const httplib::Request& request) {
  return *request.progress.target<ConnectionOf>()->connection;
}

// A thread for each connection at a time: kept for the next one, started when none is free. Above the limit a
// connection is worked off by the thread that accepts, which answers that there is no room.
class Threads : public httplib::TaskQueue {
 public:
  explicit Threads(int limit) : limit_(static_cast<size_t>(limit)) {}

  void enqueue(std::function<void()> task) override {
    {
      const std::lock_guard lock(mutex_);
      if (free_ > tasks_.size() || threads_.size() < limit_) {
        tasks_.push_back(std::move(task));
        if (free_ < tasks_.size()) threads_.emplace_back([this] { work(); });
        wake_.notify_one();
        return;
      }
    }
    task();
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        ++free_;
        wake_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
        --free_;
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  const size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  size_t free_ = 0;
  bool ends_ = false;
};

const char* reason_of(int status) { return status < 500 ? "Refused" : "Unavailable"; }

}  // namespace

class HttpServer::Impl : public httplib::Server {
 public:
  Impl(const HttpLimits& limits, HttpServer::Handler handler, HttpServer::Refuse refuse)
      : limits_(limits), handler_(std::move(handler)), refuse_(std::move(refuse)) {
    set_socket_options([](socket_t socket) {  // not SO_REUSEPORT: a second server on this port is an error
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    set_keep_alive_max_count(1'000'000).set_keep_alive_timeout(
        static_cast<time_t>(limits_.keep_alive_seconds));  // for its header
    new_task_queue = [this] { return new Threads(limits_.connections); };
    const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
      respond(handler_(connection_of(request).request()), connection_of(request), response);
    };
    Get("/", answer);
    Post("/", answer);
    Options("/", answer);
  }

  int bind(const std::string& host, int port) {
    const int bound = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
    if (bound < 0)
      throw Error(ErrorKind::Usage,
                  "cannot listen there: another program may use the port, or the address is not of this machine",
                  fmt::format("{}:{}", host, port));
    ::listen(svr_sock_, 1024);  // cpp-httplib's own queue holds 5 connections
    return bound;
  }

  void run() {
    accepting_ = std::this_thread::get_id();
    listen_after_bind();
  }

  void halt() {
    stopping_ = true;
    stop();
  }

 private:
  void respond(HttpResponse made, Connection& connection, httplib::Response& response) const {
    response.status = made.status;
    for (const auto& [name, value] : made.headers) response.set_header(name.c_str(), value);
    if (!made.stream) {
      response.set_content(made.body, made.type.c_str());
      return;
    }
    auto provider = [stream = std::move(made.stream)](size_t, httplib::DataSink& sink) {
      bool open = true;
      stream([&](std::string_view bytes) {
        open = open && (bytes.empty() || sink.write(bytes.data(), bytes.size()));
        return open;
      });
      if (open) sink.done();
      return open;
    };
    if (connection.request().head.http11) {
      response.set_chunked_content_provider(made.type.c_str(), provider);
    } else {
      response.set_content_provider(made.type.c_str(), provider);
      connection.request().head.keep_alive = false;
    }
  }

  void refuse(Connection& connection, const HttpRefusal& refusal) const {
    const HttpResponse made = refuse_(connection.request().head, refusal);
    std::string text = fmt::format("HTTP/1.1 {} {}\r\nConnection: close\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                                   made.status, reason_of(made.status), made.type, made.body.size());
    for (const auto& [name, value] : made.headers) text += fmt::format("{}: {}\r\n", name, value);
    text += "\r\n";
    if (connection.request().head.method != "HEAD") text += made.body;
    if (connection.send_all(text)) connection.linger();
  }

  bool process_and_close_socket(socket_t socket) override {
    {
      Connection connection(socket, limits_, stopping_);
      if (std::this_thread::get_id() == accepting_)
        refuse_full(connection);
      else
        serve(connection);
    }
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return true;
  }

  void refuse_full(Connection& connection) const {
    const HttpResponse made =
        refuse_({}, {503, fmt::format("all {} connections are in use: try again", limits_.connections)});
    connection.send_all(
        fmt::format("HTTP/1.1 503 Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: {}\r\n"
                    "Content-Length: {}\r\n\r\n{}",
                    made.type, made.body.size(), made.body));
    ::shutdown(connection.socket_number(), SHUT_WR);
  }

  void serve(Connection& connection) {
    for (;;) {
      HttpRefusal refusal;
      const Connection::Next next = connection.next(refusal);
      if (next == Connection::Next::Closed) return;
      if (next == Connection::Next::Refused) return refuse(connection, refusal);
      bool closed = false;
      const bool written =
          process_request(connection, !connection.request().head.keep_alive, closed,
                          [&](httplib::Request& request) { request.progress = ConnectionOf{&connection}; });
      if (!written || closed || !connection.request().head.keep_alive) return connection.linger();
    }
  }

  const HttpLimits limits_;
  const HttpServer::Handler handler_;
  const HttpServer::Refuse refuse_;
  std::atomic<bool> stopping_{false};
  std::thread::id accepting_;
};

HttpServer::HttpServer(const HttpLimits& limits, Handler handler, Refuse refuse)
    : impl_(std::make_unique<Impl>(limits, std::move(handler), std::move(refuse))) {}
HttpServer::~HttpServer() = default;
int HttpServer::bind(const std::string& host, int port) { return impl_->bind(host, port); }
void HttpServer::run() { impl_->run(); }
void HttpServer::stop() { impl_->halt(); }

}  // namespace strata::server
