#include "hostile/run_case.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "hostile/allocations.h"
#include "runtime/engine.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

constexpr size_t kMemoryAllowance = size_t{64} << 20;  // beyond the bytes of the file
#if defined(__SANITIZE_ADDRESS__)
constexpr double kSecondsAllowance = 20;
#else
constexpr double kSecondsAllowance = 3;  // a few ms, or 100 MB of file; the machine may be busy
#endif

char g_running[256];

void on_signal(int signal) {
  const char* text = "\nsignal while running the case: ";
  static_cast<void>(!::write(2, text, std::strlen(text)));
  static_cast<void>(!::write(2, g_running, std::strlen(g_running)));
  static_cast<void>(!::write(2, "\n", 1));
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// The rules for every message: one line of printable text that is not a page.
std::string message_defect(const Error& error, const std::string& path, bool loading) {
  const std::string text = error.what();
  if (exit_code(error.kind()) != 1) return "exit code " + std::to_string(exit_code(error.kind())) + " for: " + text;
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e)
      return "unprintable byte in: " + text;
  if (text.size() > 1000) return "message of " + std::to_string(text.size()) + " bytes: " + text.substr(0, 200);
  if (!loading) return {};
  const std::string folder = path.substr(0, path.rfind('/'));
  if (text.find(folder) == std::string::npos) return "does not name the file: " + text;
  if (error.kind() == ErrorKind::Memory) return "ran out of memory: " + text;
  return {};
}

void draft(Engine& engine, std::span<const int32_t> tokens) {
  const ModelSpec& spec = engine.model().spec();
  const auto rows = static_cast<int64_t>(tokens.size());
  Sequence state(spec, rows);
  const Buffer tap(static_cast<size_t>(rows * spec.residual_width()) * sizeof(float));
  const Buffer logits(static_cast<size_t>(spec.vocabulary) * sizeof(float));
  const Tensor taps = tap.f32({rows, spec.residual_width()}), row = logits.f32({1, spec.vocabulary});
  engine.forward().run(tokens, state, row, taps);
  engine.forward().draft(taps, tokens, 0, state, row);
}

// What a user asks first: a short prompt, then two tokens.
void generate(Engine& engine) {
  const auto last = static_cast<int32_t>(std::min<int64_t>(engine.model().spec().vocabulary, 1000) - 1);
  GenerateRequest request;
  if (engine.has_tokenizer()) request.prompt = engine.tokenizer().encode("hello <|im_end|> \xff");
  if (request.prompt.empty()) request.prompt = {std::min(1, last), std::min(7, last), last};
  request.max_tokens = 2;
  request.context = static_cast<int64_t>(request.prompt.size()) + 2;
  request.ignore_end = true;
  engine.generate(request);
  if (engine.model().spec().mtp_layers > 0) draft(engine, request.prompt);
}

}  // namespace

void name_case_on_signals() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, on_signal);
}

CaseResult run_model(const std::string& path, size_t file_bytes) {
  CaseResult result;
  result.file_bytes = file_bytes;
  const auto start = std::chrono::steady_clock::now();
  const size_t before = allocated_bytes();
  reset_peak();
  std::string text;
  try {
    Log log(LogLevel::Error);
    EngineOptions options;
    options.model = path;
    options.threads = 1;
    Engine engine(options, log);
    result.loaded = true;
    generate(engine);
    result.generated = true;
  } catch (const Error& error) {
    result.error = error.what();
    result.defect = message_defect(error, path, !result.loaded);
  } catch (const std::exception& error) {
    result.error = error.what();
    result.defect = std::string("not an Error: ") + error.what();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.peak_bytes = peak_bytes() - std::min(before, peak_bytes());
  if (!result.defect.empty()) return result;
  if (result.seconds > kSecondsAllowance) result.defect = "took " + std::to_string(result.seconds) + " s";
  if (result.peak_bytes > file_bytes + kMemoryAllowance)
    result.defect =
        "took " + std::to_string(result.peak_bytes) + " bytes of memory for a file of " + std::to_string(file_bytes);
  return result;
}

CaseResult run_case(const MalformedCase& one) {
  std::strncpy(g_running, one.name.c_str(), sizeof g_running - 1);
  std::vector<NamedBytes> files = one.files();
  size_t total = 0;
  for (const NamedBytes& file : files) total += file.bytes.size();
  if (files.size() == 1) {
    const MemoryFile memory(files[0].bytes);
    files.clear();
    return run_model(memory.path(), total);
  }
  const TempFolder folder;
  for (const NamedBytes& file : files) folder.write(file.name, file.bytes);
  return run_model(folder.file(files[0].name), total);
}

std::string verdict(const MalformedCase& one, const CaseResult& result) {
  if (!result.defect.empty()) return result.defect;
  const bool not_finite = result.error.find("is not finite") != std::string::npos;
  // Once loaded, only the values of weights may stop the generation.
  const bool odd = result.loaded && !result.generated && !not_finite &&
                   result.error.find("no token may be sampled") == std::string::npos;
  if (odd) return "loaded, then failed: " + result.error;
  switch (one.expected) {
    case Expected::Refused:
      if (result.loaded) return "was loaded";
      break;
    case Expected::Loads:
      if (!result.generated) return "should load and generate: " + result.error;
      break;
    case Expected::NotFinite:
      if (!result.loaded || !not_finite) return "should end with a logit that is not finite: " + result.error;
      break;
    case Expected::Survives: break;
  }
  if (result.generated) return {};
  for (const std::string& part : one.parts)
    if (result.error.find(part) == std::string::npos) return "'" + part + "' is not in: " + result.error;
  return {};
}

}  // namespace strata::test
