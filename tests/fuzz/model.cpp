// Any bytes as a model: refused with one line, or it runs a prompt and a step. The seeds are whole models.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "fuzz/check.h"
#include "runtime/engine.h"
#include "support/test_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strata;
  const strata::test::MemoryFile file(std::string_view(reinterpret_cast<const char*>(data), size));
  try {
    Log log(LogLevel::Error);
    EngineOptions options;
    options.model = file.path();
    options.threads = 1;
    Engine engine(options, log);
    GenerateRequest request;
    if (engine.has_tokenizer()) request.prompt = engine.tokenizer().encode("hello <|im_end|>");
    if (request.prompt.empty()) request.prompt = {0};
    request.max_tokens = 2;
    request.context = static_cast<int64_t>(request.prompt.size()) + 2;
    engine.generate(request);
  } catch (const Error& error) {
    strata::test::require_one_line(error);
    strata::test::require(exit_code(error.kind()) == 1 && error.kind() != ErrorKind::Memory);
  }
  return 0;
}
