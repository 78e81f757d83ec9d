// Single instructions in the interpreter: what tests/fixtures/amdsim/opcode_cases.txt says, a line a case.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace strata::amdsim {

struct OpcodeCase {
  std::vector<std::string> targets;
  std::string text;
  std::vector<unsigned char> code;
  uint64_t exec = 0;
  std::vector<std::string> before, after;
  int line = 0;
};
const std::vector<OpcodeCase>& opcode_cases();

// What is wrong; empty: as the case says.
std::string run_case(const OpcodeCase& one, const std::string& target);

}  // namespace strata::amdsim
