// A client that measures: one request, and when each piece of its answer came.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata::server {

struct MeasuredAnswer {
  int status = 0;            // of HTTP; 0: no answer
  double first = 0;          // seconds to the first piece of text
  double whole = 0;          // and to the end
  std::vector<double> gaps;  // between pieces
  double client_cpu = 0;     // processor seconds that the client itself took
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;

  // Seconds a token behind the first, 0 where there is none.
  double per_token() const { return output_tokens > 1 ? (whole - first) / static_cast<double>(output_tokens - 1) : 0; }
};

// A streamed completion of exactly `output` tokens. Error{File} when the server cannot be reached.
MeasuredAnswer measured_completion(int port, const std::vector<int32_t>& prompt, int64_t output);

}  // namespace strata::server
