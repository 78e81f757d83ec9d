// The head of an HTTP/1.1 request, read strictly: what two readers could understand differently is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::server {

struct HttpHead {
  std::string method, path, query;  // path and query as they were sent
  bool http11 = true, keep_alive = true, chunked = false, expects_continue = false;
  uint64_t content_length = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  const std::string* find(std::string_view name) const;  // null: there is none; of several the first
  std::string value(std::string_view name) const;        // "" when there is none
  std::string query_value(std::string_view name) const;  // "" when there is none; not decoded
};

struct HttpLimits {
  size_t target_bytes = 8192;
  size_t head_bytes = 64 << 10;
  size_t headers = 100;
  uint64_t body_bytes = uint64_t{64} << 20;
  double head_seconds = 10;   // from its first byte
  double body_seconds = 60;   // from the end of the head
  double write_seconds = 30;  // without progress
  double keep_alive_seconds = 60;
  int connections = 512;
};

// Why a request is answered by the server itself, before any handler.
struct HttpRefusal {
  int status = 0;  // 0: none
  std::string message;
};

// `text` ends with the empty line. What could be read stays in `head`, so that a refusal fits the path that was meant.
HttpRefusal parse_head(std::string_view text, const HttpLimits& limits, HttpHead& head);

// Decodes a chunked body piece by piece.
class ChunkedBody {
 public:
  explicit ChunkedBody(uint64_t limit) : limit_(limit) {}
  // Takes bytes from the front of `in`; adds to `body`. False: malformed or above the limit, see refusal().
  bool push(std::string_view& in, std::string& body);
  bool done() const { return state_ == State::Done; }
  const HttpRefusal& refusal() const { return refusal_; }

 private:
  enum class State : uint8_t { Size, Data, DataEnd, Trailer, Done };
  bool line(std::string_view& in);
  bool size_line();
  bool refuse(int status, std::string message);

  uint64_t limit_, left_ = 0, total_ = 0;
  size_t trailers_ = 0;
  State state_ = State::Size;
  std::string line_;
  HttpRefusal refusal_;
};

// Whether a Host header names this server: an address, localhost, or one of `names`; the port does not matter. A page
// of another site that points its own name here is refused so.
bool host_allowed(std::string_view host, const std::vector<std::string>& names);

// The same for an Origin header: the page came from here, or from one of `origins` ("*": anywhere).
bool origin_allowed(std::string_view origin, std::string_view host, const std::vector<std::string>& origins);

bool equal_in_constant_time(std::string_view given, std::string_view secret);

}  // namespace strata::server
