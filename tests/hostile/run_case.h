// Runs a model file as the program does: engine, prompt, a step of generation, a draft.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "fuzz/malformed.h"

namespace strata::test {

struct CaseResult {
  bool loaded = false, generated = false;
  std::string error;   // empty when all went well
  std::string defect;  // what no case may do; empty when there is none
  double seconds = 0;
  size_t file_bytes = 0, peak_bytes = 0;  // of all files; allocated above what was there before
};

// Never throws. `path` of a file that exists.
CaseResult run_model(const std::string& path, size_t file_bytes);
CaseResult run_case(const MalformedCase& one);

// Why the result is not what the case asks for; empty when it is.
std::string verdict(const MalformedCase& one, const CaseResult& result);

// After a fatal signal the name of the running case goes to standard error.
void name_case_on_signals();

}  // namespace strata::test
