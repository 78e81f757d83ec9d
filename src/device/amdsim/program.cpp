#include "device/amdsim/program.h"

#include "base/error.h"
#include "device/amdsim/decoder.h"
#include "device/amdsim/wave.h"

namespace strata::amdsim {
namespace {

void no_instruction(Wave& wave, const Instruction&) { wave.fail("the machine code is not decodable"); }

}  // namespace

Program::Program(std::span<const unsigned char> file) : object_(load_code_object(file)) {
  if (object_.code.size() != 1) throw Error(ErrorKind::Format, "a code object with one code segment is needed");
  code_ = object_.code[0];
  index_.assign((code_.end - code_.begin) / 4 + 1, -1);
  decode(code_);
  for (Instruction& one : instructions_)
    if (one.target >= 0) one.target = index_at(static_cast<uint64_t>(one.target));
}

void Program::decode(const CodeRange& range) {
  Decoder decoder(object_.target);
  std::string text;
  for (uint64_t at = range.begin; at + 4 <= range.end;) {
    size_t size = decoder.decode(object_.at(at), range.end - at, at, text);
    index_[(at - range.begin) / 4] = static_cast<int32_t>(instructions_.size());
    std::vector<Instruction> parsed;
    if (size > 0)
      parsed = parse_instruction(text, object_.target, static_cast<uint32_t>(at), static_cast<uint32_t>(size));
    if (size == 0) {
      size = 4;
      parsed.resize(1);
      parsed[0].run = no_instruction;
      parsed[0].flow = Flow::Own;
      parsed[0].address = static_cast<uint32_t>(at);
    }
    for (const Instruction& one : parsed) {
      instructions_.push_back(one);
      instructions_.back().next = static_cast<uint32_t>(instructions_.size());
    }
    at += size;
  }
  Instruction end;
  end.run = no_instruction;
  end.flow = Flow::Own;
  end.address = static_cast<uint32_t>(range.end);
  instructions_.push_back(end);
}

int32_t Program::index_at(uint64_t address) const {
  if (address < code_.begin || address >= code_.end || address % 4 != 0) return -1;
  return index_[(address - code_.begin) / 4];
}

std::string Program::text_at(uint32_t address) const {
  Decoder decoder(object_.target);
  std::string text;
  if (address >= code_.end || decoder.decode(object_.at(address), code_.end - address, address, text) == 0)
    return "no instruction";
  return text;
}

}  // namespace strata::amdsim
