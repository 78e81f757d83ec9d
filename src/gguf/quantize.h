// Re-encodes the tensors of a GGUF file: everything else is copied.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gguf/quant_scheme.h"

namespace strata::gguf {

struct QuantizeOptions {
  QuantScheme scheme;
  std::string importance;                        // file for Importance; empty: none
  int threads = 0;                               // that encode; 0: one per core. The bytes do not depend on it
  std::function<void(const std::string&)> warn;  // one line each; may be empty
  // Bytes written so far, bytes in all, tensor just begun; may be empty.
  std::function<void(uint64_t done, uint64_t total, const std::string& tensor)> progress;
  const std::atomic<bool>* cancelled = nullptr;  // polled; Error{Interrupted} when it becomes true
};

struct TensorReport {
  TensorInfo source;
  DType type = DType::F32;
  uint64_t bytes = 0;
  bool encoded = false;   // false: copied
  bool weighted = false;  // importance was used
  std::string note;       // why the type is not what the scheme says
  // Of encoded tensors, over finite values: √(Σ(x' - x)² / Σx²) and the largest |x' - x|.
  double relative_rms = 0, max_error = 0;
};

struct QuantizeReport {
  std::vector<TensorReport> tensors;
  uint64_t source_bytes = 0, bytes = 0, elements = 0;  // of all tensors
  double bits_per_weight() const {
    return elements == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(elements);
  }
};

// Writes `output`, or nothing at all. Tensors are streamed in runs of rows. Errors: {File}, {Format}, {Model}
// (importance that does not fit), {Argument} (output is the input), {Interrupted}.
QuantizeReport quantize(const std::string& input, const std::string& output, const QuantizeOptions& options);

// The same decisions without errors measured or anything written.
QuantizeReport plan_quantize(const std::string& input, const QuantizeOptions& options);

}  // namespace strata::gguf
