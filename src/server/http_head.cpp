#include "server/http_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace strata::server {
namespace {

bool is_token_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; }

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return made;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

HttpRefusal parse_request_line(std::string_view line, const HttpLimits& limits, HttpHead& head) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return {400, "the request line is malformed"};
  const std::string_view method = line.substr(0, first), target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (method.empty() || !std::all_of(method.begin(), method.end(), is_token_char))
    return {400, "the method is malformed"};
  head.method = method;
  const size_t query = std::min(target.find('?'), target.size());
  head.path = target.substr(0, query);
  if (query < target.size()) head.query = target.substr(query + 1);
  if (target.size() > limits.target_bytes)
    return {414, fmt::format("the path is longer than {} bytes", limits.target_bytes)};
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return {400, "only HTTP/1.1 and HTTP/1.0 are spoken here"};
  head.http11 = version == "HTTP/1.1";
  const bool plain = std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c != 0x7F; });
  if (!target.starts_with('/') || !plain) return {400, "the path is malformed: it begins with / and holds no blanks"};
  if (method != "GET" && method != "HEAD" && method != "POST" && method != "OPTIONS")
    return {405, fmt::format("the method {} is not supported", method.substr(0, 20))};
  return {};
}

HttpRefusal parse_header(std::string_view line, HttpHead& head) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return {400, "a header without a name or a colon"};
  const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
  if (!std::all_of(name.begin(), name.end(), is_token_char)) return {400, "the name of a header is malformed"};
  if (std::any_of(value.begin(), value.end(), is_control))
    return {400, fmt::format("the header {} holds control characters", name.substr(0, 40))};
  head.headers.emplace_back(lower(name), value);
  return {};
}

HttpRefusal parse_length(const HttpLimits& limits, HttpHead& head) {
  const std::string* length = head.find("content-length");
  if (length == nullptr) return {};
  const char* const end = length->data() + length->size();
  const auto [stopped, error] = std::from_chars(length->data(), end, head.content_length);
  const bool digits = !length->empty() && length->find_first_not_of("0123456789") == std::string::npos;
  if (!digits) return {400, "Content-Length is no number"};
  if (error != std::errc() || stopped != end || head.content_length > limits.body_bytes)
    return {413, fmt::format("the body is larger than {} bytes", limits.body_bytes)};
  return {};
}

HttpRefusal check_headers(const HttpLimits& limits, HttpHead& head) {
  for (const char* once : {"host", "content-length", "transfer-encoding", "authorization", "content-type", "expect"}) {
    const auto count = std::count_if(head.headers.begin(), head.headers.end(),
                                     [once](const auto& header) { return header.first == once; });
    if (count > 1) return {400, fmt::format("the header {} stands there {} times", once, count)};
  }
  if (head.http11 && head.find("host") == nullptr) return {400, "the header Host is missing"};
  if (const std::string* coding = head.find("transfer-encoding")) {
    if (head.find("content-length") != nullptr) return {400, "Content-Length and Transfer-Encoding exclude each other"};
    if (!head.http11) return {400, "Transfer-Encoding needs HTTP/1.1"};
    if (lower(*coding) != "chunked") return {400, "of transfer encodings only chunked is supported"};
    head.chunked = true;
  }
  if (const std::string* coding = head.find("content-encoding"); coding != nullptr && lower(*coding) != "identity")
    return {415, "the body must not be compressed"};
  if (const std::string* expect = head.find("expect")) {
    if (lower(*expect) != "100-continue") return {417, "of expectations only 100-continue is supported"};
    head.expects_continue = head.http11;
  }
  const std::string connection = lower(head.value("connection"));
  head.keep_alive =
      head.http11 ? connection.find("close") == std::string::npos : connection.find("keep-alive") != std::string::npos;
  return parse_length(limits, head);
}

// "example.org" of "example.org:8080"; "[::1]" of "[::1]:8080".
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, std::min(host.find(']'), host.size() - 1) + 1);
  return host.substr(0, std::min(host.find(':'), host.size()));
}

bool is_address(std::string_view name) {
  if (name.starts_with('[')) return name.ends_with(']');
  return !name.empty() && name.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

const std::string* HttpHead::find(std::string_view name) const {
  for (const auto& [key, held] : headers)
    if (key == name) return &held;
  return nullptr;
}

std::string HttpHead::value(std::string_view name) const {
  const std::string* found = find(name);
  return found == nullptr ? std::string() : *found;
}

std::string HttpHead::query_value(std::string_view name) const {
  for (std::string_view rest = query; !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) == name) return std::string(pair.substr(std::min(equals + 1, pair.size())));
  }
  return {};
}

HttpRefusal parse_head(std::string_view text, const HttpLimits& limits, HttpHead& head) {
  bool first = true;
  while (!text.empty()) {
    const size_t end = text.find("\r\n");
    if (end == std::string_view::npos) return {400, "a line of the head does not end with CR and LF"};
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 2);
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos)
      return {400, "a line of the head holds control characters"};
    HttpRefusal refusal;
    if (first)
      refusal = parse_request_line(line, limits, head);
    else if (!line.empty())
      refusal = parse_header(line, head);
    if (refusal.status != 0) return refusal;
    if (head.headers.size() > limits.headers) return {431, fmt::format("over {} headers", limits.headers)};
    first = false;
    if (line.empty()) break;
  }
  return check_headers(limits, head);
}

bool ChunkedBody::refuse(int status, std::string message) {
  refusal_ = {status, std::move(message)};
  return false;
}

// True when a whole line is in line_.
bool ChunkedBody::line(std::string_view& in) {
  const size_t end = in.find('\n');
  const size_t taken = end == std::string_view::npos ? in.size() : end + 1;
  line_ += in.substr(0, taken);
  in.remove_prefix(taken);
  return end != std::string_view::npos;
}

bool ChunkedBody::size_line() {
  uint64_t size = 0;
  const size_t end = std::min(line_.find_first_of(";\r \t"), line_.size());
  const auto [stopped, error] = std::from_chars(line_.data(), line_.data() + end, size, 16);
  if (end == 0 || error != std::errc() || stopped != line_.data() + end || !line_.ends_with("\r\n"))
    return refuse(400, "the length of a chunk is malformed");
  if (size > limit_ - total_) return refuse(413, fmt::format("the body is larger than {} bytes", limit_));
  total_ += size;
  left_ = size;
  state_ = size == 0 ? State::Trailer : State::Data;
  return true;
}

bool ChunkedBody::push(std::string_view& in, std::string& body) {
  constexpr size_t kMaxLine = 1024, kMaxTrailers = 32;
  while (!in.empty() && state_ != State::Done) {
    if (state_ == State::Data) {
      const size_t taken = static_cast<size_t>(std::min<uint64_t>(left_, in.size()));
      body += in.substr(0, taken);
      in.remove_prefix(taken);
      left_ -= taken;
      if (left_ == 0) state_ = State::DataEnd;
      continue;
    }
    const bool whole = line(in);
    if (line_.size() > kMaxLine) return refuse(400, "a line between chunks is too long");
    if (!whole) return true;
    switch (state_) {
      case State::Size:
        if (!size_line()) return false;
        break;
      case State::DataEnd:
        if (line_ != "\r\n") return refuse(400, "a chunk is longer than it says");
        state_ = State::Size;
        break;
      case State::Trailer:
        if (line_ == "\r\n")
          state_ = State::Done;
        else if (++trailers_ > kMaxTrailers)
          return refuse(431, "too many lines behind the last chunk");
        break;
      case State::Data:
      case State::Done: break;
    }
    line_.clear();
  }
  return true;
}

bool host_allowed(std::string_view host, const std::vector<std::string>& names) {
  const std::string name = lower(without_port(trimmed(host)));
  if (name == "localhost" || is_address(name)) return true;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& known) { return known == "*" || lower(known) == name; });
}

bool origin_allowed(std::string_view origin, std::string_view host, const std::vector<std::string>& origins) {
  for (const std::string& known : origins)
    if (known == "*" || lower(known) == lower(origin)) return true;
  const size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && lower(origin.substr(scheme + 3)) == lower(trimmed(host));
}

bool equal_in_constant_time(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i) {
    const char c = i < given.size() ? given[i] : '\0';
    difference |= static_cast<unsigned>(static_cast<unsigned char>(c ^ secret[i]));
  }
  return difference == 0;
}

}  // namespace strata::server
