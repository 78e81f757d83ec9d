// HTTP alone: connections, limits, whole and streamed answers. What requests mean is decided by the handler.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http_head.h"

namespace strata::server {

struct HttpRequest {
  HttpHead head;
  std::string body = {};
  std::function<bool()> gone;  // the client has closed the connection; safe to ask while the handler works
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  // Instead of a body: writes pieces until it returns. `write` gives false once the client has left.
  using Write = std::function<bool(std::string_view)>;
  std::function<void(const Write&)> stream = {};
};

class HttpServer {
 public:
  // Both are called on threads of connections, many at a time; neither may throw. `refuse` shapes what the server
  // answers by itself: limits, malformed heads.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  using Refuse = std::function<HttpResponse(const HttpHead&, const HttpRefusal&)>;
  HttpServer(const HttpLimits& limits, Handler handler, Refuse refuse);
  ~HttpServer();

  int bind(const std::string& host, int port);  // 0: any port; gives the port. Error{Usage} when it cannot
  void run();                                   // until stop()
  void stop();                                  // from any thread; answers in progress are cut off

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata::server
