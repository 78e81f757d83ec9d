#include "unit/amdsim/single.h"

#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "device/amdsim/decoder.h"
#include "device/amdsim/machine.h"
#include "device/amdsim/wave.h"

namespace strata::amdsim {
namespace {

std::vector<std::string> parts_of(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) {
    const size_t begin = part.find_first_not_of(' '), end = part.find_last_not_of(' ');
    parts.push_back(begin == std::string::npos ? "" : part.substr(begin, end - begin + 1));
  }
  return parts;
}
uint64_t hex(const std::string& text) { return std::stoull(text, nullptr, 16); }
std::vector<unsigned char> bytes_of(const std::string& text) {
  std::vector<unsigned char> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) bytes.push_back(static_cast<unsigned char>(hex(text.substr(i, 2))));
  return bytes;
}
std::vector<unsigned char> pattern(size_t bytes) {
  std::vector<unsigned char> result(bytes);
  for (size_t n = 0; n < bytes; ++n) result[n] = static_cast<unsigned char>(37 * n + 11);
  return result;
}

Target target_named(const std::string& name) {
  for (const Target target : {Target::Gfx942, Target::Gfx1100, Target::Gfx1151, Target::Gfx1201})
    if (name == processor_of(target)) return target;
  throw Error(ErrorKind::Argument, "unknown target " + name);
}

// A wave with memory, and tokens of a case written to it or compared with it.
class Bench {
 public:
  explicit Bench(Target target) : global_(1024), cache_(regions()) {
    prepare_wave(wave, target, 64);
    local_.start(4096);
    wave.local = &local_;
    wave.regions = &cache_;
    wave.kernel = "case";
  }

  void set(const std::string& token) {
    if (token == "g*") return put_global(0, pattern(256));
    if (token == "l*") return put_local(0, pattern(512));
    const auto [name, value] = halves(token);
    if (name == "scc") {
      wave.scc = hex(value) != 0;
      wave.scc_undefined = false;
    } else if (name[0] == '@') {
      const int reg = std::stoi(name.substr(2));
      std::vector<uint64_t> addresses = values_of(value);
      for (uint64_t& one : addresses) one += reinterpret_cast<uint64_t>(global_.data());
      if (name[1] == 's') return wave.write_scalar64(reg, addresses[0]);
      put_row(reg, addresses, 0);
      put_row(reg + 1, addresses, 32);
    } else if (name[0] == 's') {
      wave.write_scalar(std::stoi(name.substr(1)), static_cast<uint32_t>(hex(value)));
    } else if (name[0] == 'v' || name[0] == 'a') {
      put_row(std::stoi(name.substr(1)) + (name[0] == 'a' ? kAccumulators : 0), values_of(value), 0);
    } else if (name[0] == 'g') {
      put_global(hex(name.substr(1)), bytes_of(value));
    } else if (name[0] == 'l') {
      put_local(static_cast<uint32_t>(hex(name.substr(1))), bytes_of(value));
    } else if (name[0] == 'p') {
      const size_t word = hex(name.substr(1)) / 4;
      const auto values = values_of(value);
      for (int l = 0; l < wave.lanes; ++l) scratch_at(word, l) = static_cast<uint32_t>(at(values, l));
      wave.scratch_undefined[word] = 0;
    }
  }

  std::string compare(const std::string& token) {
    const auto [name, value] = halves(token);
    if (name == "scc") return same(name, wave.scc ? 1 : 0, hex(value));
    if (name == "exec") return same(name, wave.exec, hex(value));
    if (name[0] == 's') return same(name, wave.s[std::stoi(name.substr(1))], hex(value));
    if (name[0] == 'g' || name[0] == 'l') {
      const auto wanted = bytes_of(value);
      const size_t offset = hex(name.substr(1));
      const unsigned char* got = name[0] == 'g' ? global_.data() + offset : local_.at(static_cast<uint32_t>(offset));
      for (size_t k = 0; k < wanted.size(); ++k)
        if (got[k] != wanted[k]) return same(name + "+" + std::to_string(k), got[k], wanted[k]);
      return {};
    }
    const auto values = values_of(value);
    for (int l = 0; l < wave.lanes; ++l) {
      if ((wave.exec_at_start >> l & 1u) == 0 && l >= static_cast<int>(values.size())) continue;
      const int reg = std::stoi(name.substr(1), nullptr, name[0] == 'p' ? 16 : 10);
      const uint32_t got = name[0] == 'p' ? scratch_at(static_cast<size_t>(reg) / 4, l)
                                          : wave.row(reg + (name[0] == 'a' ? kAccumulators : 0))[l];
      const std::string wrong = same(name + " of lane " + std::to_string(l), got, at(values, l) & 0xffffffffu);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  struct TestWave : Wave {
    uint64_t exec_at_start = 0;
  } wave;

 private:
  static std::pair<std::string, std::string> halves(const std::string& token) {
    const size_t equals = token.find('=');
    return {token.substr(0, equals), token.substr(equals + 1)};
  }
  static std::vector<uint64_t> values_of(const std::string& text) {
    std::vector<uint64_t> values;
    for (const std::string& part : parts_of(text, ',')) values.push_back(hex(part));
    return values;
  }
  // The last value is that of all further lanes.
  static uint64_t at(const std::vector<uint64_t>& values, int lane) {
    return values[std::min(static_cast<size_t>(lane), values.size() - 1)];
  }
  static std::string same(const std::string& what, uint64_t got, uint64_t wanted) {
    if (got == wanted) return {};
    char text[64] = {};
    std::snprintf(text, sizeof(text), " is %llx, should be %llx", static_cast<unsigned long long>(got),
                  static_cast<unsigned long long>(wanted));
    return what + text;
  }
  std::vector<Region> regions() const {
    const auto begin = reinterpret_cast<uint64_t>(global_.data());
    return {{begin, begin + global_.size(), true}};
  }
  uint32_t& scratch_at(size_t word, int lane) {
    return wave.scratch[word * static_cast<size_t>(wave.lanes) + static_cast<size_t>(lane)];
  }
  void put_row(int reg, const std::vector<uint64_t>& values, int shift) {
    for (int l = 0; l < wave.lanes; ++l) wave.row(reg)[l] = static_cast<uint32_t>(at(values, l) >> shift);
    wave.undefined[static_cast<size_t>(reg)] = 0;
  }
  void put_global(size_t offset, const std::vector<unsigned char>& bytes) {
    std::memcpy(global_.data() + offset, bytes.data(), bytes.size());
  }
  void put_local(uint32_t offset, const std::vector<unsigned char>& bytes) {
    (void)local_.write(offset, static_cast<uint32_t>(bytes.size()), 0);
    std::memcpy(local_.at(offset), bytes.data(), bytes.size());
  }

  alignas(64) std::vector<unsigned char> global_;
  LocalMemory local_;
  RegionCache cache_;
};

}  // namespace

const std::vector<OpcodeCase>& opcode_cases() {
  static const std::vector<OpcodeCase> cases = [] {
    std::vector<OpcodeCase> all;
    std::ifstream file(STRATA_SOURCE_DIR "/tests/fixtures/amdsim/opcode_cases.txt");
    int number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      const auto fields = parts_of(line, ';');
      if (fields.size() != 6) throw Error(ErrorKind::Format, "line " + std::to_string(number) + " is no case");
      all.push_back({parts_of(fields[0], ','), fields[1], bytes_of(fields[2]), hex(fields[3]), parts_of(fields[4], ' '),
                     parts_of(fields[5], ' '), number});
    }
    return all;
  }();
  return cases;
}

std::string run_case(const OpcodeCase& one, const std::string& target_name) {
  const Target target = target_named(target_name);
  Decoder decoder(target);
  std::string text;
  if (decoder.decode(one.code.data(), one.code.size(), 0, text) != one.code.size()) return "is not decoded";
  const auto parsed = parse_instruction(text, target, 0, static_cast<uint32_t>(one.code.size()));
  Bench bench(target);
  Bench::TestWave& wave = bench.wave;
  wave.write_scalar64(kExec, one.exec);
  for (const std::string& token : one.before) bench.set(token);
  wave.exec_at_start = wave.exec;
  try {
    if (parsed[0].pair == 2)
      run_exchange(wave, parsed[0], parsed[1]);
    else
      for (const Instruction& i : parsed) run_instruction(wave, i);
  } catch (const Error& error) {
    return error.what();
  }
  for (const std::string& token : one.after) {
    if (token.empty()) continue;
    const std::string wrong = bench.compare(token);
    if (!wrong.empty()) return text + ": " + wrong;
  }
  return {};
}

}  // namespace strata::amdsim
