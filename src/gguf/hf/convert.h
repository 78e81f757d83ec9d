// Converts a Hugging Face checkpoint directory to one GGUF file (gguf.md, section 5).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/dtype.h"
#include "gguf/hf/config.h"

namespace strata::gguf::hf {

struct ConvertOptions {
  DType type = DType::F16;  // any type with an encoder; what stays F32 does so whatever is asked
  Warn warn;                // one line each; may be empty
  // Bytes written so far, bytes in all, tensor just begun; may be empty.
  std::function<void(uint64_t done, uint64_t total, const std::string& tensor)> progress;
  const std::atomic<bool>* cancelled = nullptr;  // polled; Error{Interrupted} when it becomes true
  int threads = 0;                               // that encode; 0: one per core. The bytes do not depend on it
};

struct ConversionSummary {
  std::string architecture;
  uint64_t tensors = 0;
  uint64_t tensor_bytes = 0;
  uint64_t mtp_blocks = 0;
  bool vocabulary = false;
};

// Writes `output`, or nothing at all. Tensors are streamed in runs of rows: some 10 MB of buffers whatever the model.
// Error{File}, Error{Format}, Error{Model}, Error{Argument} (a type without encoder), Error{Interrupted}.
void convert(const std::string& directory, const std::string& output, const ConvertOptions& options);

// The same checks and warnings without writing anything.
ConversionSummary describe_conversion(const std::string& directory, const ConvertOptions& options);

}  // namespace strata::gguf::hf
