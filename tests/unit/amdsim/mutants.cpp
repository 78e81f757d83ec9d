#include "unit/amdsim/mutants.h"

#include <cstring>
#include <string_view>

#include "base/error.h"
#include "device/amdsim/decoder.h"
#include "evidence/parity_check.h"
#include "ops/registry.h"

namespace strata::amdsim {
namespace {

constexpr uint32_t kNop = 0xbf800000u;
constexpr uint64_t kSeed = 1;

template <class T>
T read(const std::vector<unsigned char>& bytes, size_t at) {
  T value{};
  if (at + sizeof(T) > bytes.size()) throw Error(ErrorKind::Format, "the code object ends early");
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

}  // namespace

std::span<const unsigned char> shipped_code(const std::string& image, const std::string& target) {
  for (const KernelImage* one : kernel_images())
    for (const AmdCode& code : one->amd)
      if (image == one->name && target == code.target) return code.code;
  return {};
}

// By the loaded segments of the file.
size_t PatchedCode::offset_of(uint64_t address) const {
  constexpr size_t kHeaders = 0x20, kSize = 0x36, kCount = 0x38;
  const auto first = read<uint64_t>(bytes_, kHeaders);
  for (size_t k = 0; k < read<uint16_t>(bytes_, kCount); ++k) {
    const size_t header = first + k * read<uint16_t>(bytes_, kSize);
    const auto begin = read<uint64_t>(bytes_, header + 16), size = read<uint64_t>(bytes_, header + 32);
    if (read<uint32_t>(bytes_, header) == 1 && address >= begin && address < begin + size)
      return read<uint64_t>(bytes_, header + 8) + (address - begin);
  }
  throw Error(ErrorKind::Argument, "the address is in no segment of the code object");
}
uint32_t PatchedCode::word(uint64_t address) const { return read<uint32_t>(bytes_, offset_of(address)); }
void PatchedCode::set_word(uint64_t address, uint32_t value) {
  std::memcpy(bytes_.data() + offset_of(address), &value, sizeof(value));
}
void PatchedCode::no_operation(uint64_t address, uint64_t end) {
  for (; address < end; address += 4) set_word(address, kNop);
}

std::vector<uint32_t> instructions_of(const Program& program, const std::string& begin) {
  std::vector<uint32_t> found;
  for (uint32_t k = 0; k + 1 < program.size(); ++k)
    if (program[k].name != nullptr && std::string_view(program[k].name).starts_with(begin)) found.push_back(k);
  return found;
}

std::string kernel_at(const Program& program, uint64_t address) {
  const Kernel* found = nullptr;
  for (const Kernel& kernel : program.object().kernels)
    if (kernel.entry <= address && (found == nullptr || kernel.entry > found->entry)) found = &kernel;
  return found == nullptr ? "no kernel" : found->name;
}

CaseRunner::CaseRunner(const std::string& op, const std::string& arm) {
  for (const OperatorEvidence& evidence : operator_evidence())
    for (const ArmInfo& info : evidence.arms)
      if (evidence.op == op && info.name == arm) evidence_ = &evidence, arm_ = &info;
  if (evidence_ == nullptr) throw Error(ErrorKind::Usage, "there is no arm " + arm + " of " + op);
}

const std::vector<std::function<ParityCase()>>& CaseRunner::makers() const {
  if (makers_.empty()) makers_ = evidence_->cases(kSeed);
  return makers_;
}

bool CaseRunner::refused(size_t index) const { return !makers()[index]().refusal(arm_->name).empty(); }

std::string CaseRunner::failure(size_t index, const std::shared_ptr<Accelerator>& device) const {
  ParityCase test = makers()[index]();
  if (const std::string refusal = test.refusal(arm_->name); !refusal.empty()) return "refused: " + refusal;
  Log log(LogLevel::Error);
  Queue queue(device, log);
  queue.strict_arms = true;
  queue.request_arm(evidence_->op, arm_->name);
  for (const auto& [memory, bytes] : test.ranges) device->register_host(memory, bytes);
  std::string wrong;
  try {
    clear_outputs(test);
    test.run(queue);
    queue.stream().wait();
    wrong = check_outputs(test).failure;
    int64_t force = 0;
    if (wrong.empty() && test.check) wrong = test.check(force);
    if (wrong.empty() && test.guards && !test.guards()) wrong = "memory outside of the elements is written";
  } catch (const Error& error) {
    wrong = error.what();
  }
  for (const auto& [memory, bytes] : test.ranges) device->unregister_host(memory);
  return wrong;
}

}  // namespace strata::amdsim
