#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/half.h"
#include "device/amdsim/program.h"
#include "device/amdsim/wave.h"

namespace strata::amdsim {
namespace {

void unknown_opcode(Wave& wave, const Instruction&) { wave.fail("the opcode is unknown to the interpreter"); }
void unknown_form(Wave& wave, const Instruction&) {
  wave.fail("this form of the opcode is unknown to the interpreter");
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      if (text[i] == '[' || text[i] == '(') ++depth;
      if (text[i] == ']' || text[i] == ')') --depth;
      if (text[i] != at || depth > 0) continue;
    }
    std::string_view part = text.substr(begin, i - begin);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (!part.empty()) parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

bool number(std::string_view text, int64_t& value) {
  const bool minus = text.starts_with('-');
  if (minus) text.remove_prefix(1);
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  uint64_t parsed = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), parsed, hex ? 16 : 10);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return false;
  value = static_cast<int64_t>(minus ? 0 - parsed : parsed);
  return true;
}

uint64_t float_bits(double value, Type type) {
  switch (type) {
    case Type::F64:
    case Type::B64:
    case Type::I64: return std::bit_cast<uint64_t>(value);
    case Type::F16:
    case Type::B16:
    case Type::Pair16: return f32_to_f16(static_cast<float>(value));
    default: return std::bit_cast<uint32_t>(static_cast<float>(value));
  }
}

bool parse_value(std::string_view text, Type type, Operand& operand) {
  operand.kind = Kind::Value;
  int64_t value = 0;
  if (number(text, value)) {
    const bool literal = text.starts_with("0x");
    operand.value = static_cast<uint64_t>(value);
    if (type == Type::F64) {
      // A literal is the upper half; a small number is a bit pattern of 64 bits.
      if (literal) operand.value <<= 32;
    } else if (type == Type::I64 && literal) {
      operand.value = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(value)));
    } else if (type != Type::I64 && type != Type::B64) {
      operand.value &= 0xffffffffu;
    }
    return true;
  }
  for (const double known : {0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0}) {
    char name[8] = {};
    *std::to_chars(name, name + 7, known, std::chars_format::fixed, 1).ptr = 0;
    if (text == name) {
      operand.value = float_bits(known, type);
      return true;
    }
  }
  if (text.starts_with("0.159")) {  // 1 / (2 pi)
    operand.value = type == Type::F64 ? 0x3fc45f306dc9c882u : float_bits(0.15915494309189532, type);
    return true;
  }
  return false;
}

struct NamedScalar {
  std::string_view name;
  uint16_t reg;
  uint8_t words;
};
constexpr NamedScalar kNamed[] = {{"vcc", kVcc, 2},     {"vcc_lo", kVcc, 1},   {"vcc_hi", kVcc + 1, 1},
                                  {"exec", kExec, 2},   {"exec_lo", kExec, 1}, {"exec_hi", kExec + 1, 1},
                                  {"m0", kM0, 1},       {"null", kNull, 1},    {"scc", kScc, 1},
                                  {"src_scc", kScc, 1}, {"off", kNull, 1}};

// "v5", "a[0:3]", "s[2:3]", "ttmp9".
bool parse_registers(std::string_view text, Operand& operand) {
  struct Prefix {
    std::string_view name;
    Kind kind;
    int first, limit;
  };
  constexpr Prefix kPrefixes[] = {{"ttmp", Kind::Scalar, kTrap, 16},
                                  {"v", Kind::Vector, 0, 256},
                                  {"a", Kind::Vector, kAccumulators, 256},
                                  {"s", Kind::Scalar, 0, 108}};
  for (const Prefix& prefix : kPrefixes) {
    if (!text.starts_with(prefix.name)) continue;
    std::string_view rest = text.substr(prefix.name.size());
    int64_t first = 0, last = 0;
    if (rest.starts_with('[') && rest.ends_with(']')) {
      rest = rest.substr(1, rest.size() - 2);
      const size_t colon = rest.find(':');
      if (!number(rest.substr(0, colon), first)) continue;
      last = first;
      if (colon != std::string_view::npos && !number(rest.substr(colon + 1), last)) continue;
    } else if (rest.empty() || rest[0] < '0' || rest[0] > '9' || !number(rest, first)) {
      continue;
    } else {
      last = first;
    }
    if (first < 0 || last < first || last >= prefix.limit || last - first >= 32) return false;
    operand.kind = prefix.kind;
    operand.reg = static_cast<uint16_t>(prefix.first + first);
    operand.words = static_cast<uint8_t>(last - first + 1);
    return true;
  }
  return false;
}

// Aperture bases of flat addresses (wave.h says where they lead).
bool parse_base(std::string_view text, Operand& operand) {
  operand.kind = Kind::Value;
  operand.words = 2;
  if (text == "src_private_base")
    operand.value = kPrivateBase;
  else if (text == "src_shared_base")
    operand.value = kSharedBase;
  else
    return false;
  return true;
}

bool parse_operand(std::string_view text, Type type, Operand& operand) {
  for (const NamedScalar& one : kNamed)
    if (text == one.name) {
      operand.kind = Kind::Scalar;
      operand.reg = one.reg;
      operand.words = one.words;
      return true;
    }
  return parse_registers(text, operand) || parse_base(text, operand) || parse_value(text, type, operand);
}

// With signs and magnitude: "-v3", "|v3|", "-|s2|", "sext(v3)".
bool parse_source(std::string_view text, int index, Type type, Instruction& i) {
  Operand& operand = i.src[index];
  if (parse_operand(text, type, operand)) return true;
  if (text.starts_with("sext(") && text.ends_with(')')) {
    i.sext |= static_cast<uint8_t>(1u << index);
    return parse_operand(text.substr(5, text.size() - 6), type, operand);
  }
  if (text.starts_with('-')) {
    i.neg |= static_cast<uint8_t>(1u << index);
    text.remove_prefix(1);
  }
  if (text.size() > 2 && text.starts_with('|') && text.ends_with('|')) {
    i.abs |= static_cast<uint8_t>(1u << index);
    text = text.substr(1, text.size() - 2);
  }
  return parse_operand(text, type, operand);
}

uint8_t bits_of_list(std::string_view text) {  // "[0,1,1]"
  uint8_t bits = 0;
  int index = 0;
  for (const char c : text)
    if (c == '0' || c == '1') bits |= static_cast<uint8_t>((c - '0') << index++);
  return bits;
}

bool parse_select(std::string_view text, Select& select) {
  constexpr std::string_view kNames[] = {"DWORD", "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1"};
  for (size_t k = 0; k < std::size(kNames); ++k)
    if (text == kNames[k]) {
      select = static_cast<Select>(k);
      return true;
    }
  return false;
}

bool parse_dpp(std::string_view key, std::string_view value, Instruction& i) {
  struct Form {
    std::string_view name;
    Dpp dpp;
  };
  constexpr Form kForms[] = {{"row_shl", Dpp::RowShl},
                             {"row_shr", Dpp::RowShr},
                             {"row_ror", Dpp::RowRor},
                             {"row_mirror", Dpp::RowMirror},
                             {"row_half_mirror", Dpp::RowHalfMirror},
                             {"row_share", Dpp::RowShare},
                             {"row_newbcast", Dpp::RowShare},
                             {"row_xmask", Dpp::RowXmask}};
  if (key == "quad_perm") {
    i.dpp = Dpp::QuadPerm;
    int index = 0;
    for (const char c : value)
      if (c >= '0' && c <= '3' && index < 4) i.dpp_argument |= static_cast<uint8_t>((c - '0') << 2 * index++);
    return true;
  }
  for (const Form& form : kForms)
    if (key == form.name) {
      int64_t argument = 0;
      if (!value.empty() && !number(value, argument)) return false;
      i.dpp = form.dpp;
      i.dpp_argument = static_cast<uint8_t>(argument);
      return true;
    }
  return false;
}

bool parse_modifier(std::string_view word, Instruction& i) {
  const size_t colon = word.find(':');
  const std::string_view key = word.substr(0, colon);
  const std::string_view value = colon == std::string_view::npos ? std::string_view() : word.substr(colon + 1);
  int64_t n = 0;
  const bool has_number = number(value, n);
  if (key == "offset" || key == "offset0") return has_number && (i.offset = static_cast<int32_t>(n), true);
  if (key == "offset1") return has_number && (i.offset1 = static_cast<int32_t>(n), true);
  if (key == "op_sel") return i.op_sel = bits_of_list(value), true;
  if (key == "op_sel_hi") return i.op_sel_hi = bits_of_list(value), true;
  if (key == "neg_lo") return i.neg_lo = bits_of_list(value), true;
  if (key == "neg_hi") return i.neg_hi = bits_of_list(value), true;
  if (key == "clamp") return i.clamp = true;
  if (key == "mul") return has_number && (i.omod = n == 2 ? 1 : 2, true);
  if (key == "div") return i.omod = 3, true;
  if (key == "dst_sel") return i.sdwa = true, parse_select(value, i.dst_sel);
  if (key == "src0_sel") return i.sdwa = true, parse_select(value, i.src_sel[0]);
  if (key == "src1_sel") return i.sdwa = true, parse_select(value, i.src_sel[1]);
  if (key == "dst_unused") {
    i.unused = value == "UNUSED_PAD" ? 0 : value == "UNUSED_SEXT" ? 1 : 2;
    return true;
  }
  if (key == "row_mask") return has_number && (i.row_mask = static_cast<uint8_t>(n), true);
  if (key == "bank_mask") return has_number && (i.bank_mask = static_cast<uint8_t>(n), true);
  if (key == "bound_ctrl") return i.bound_zero = true;
  if (key == "fi") return i.fetch_inactive = true;
  // How caches are used, and hints.
  for (const std::string_view hint : {"glc", "slc", "dlc", "sc0", "sc1", "nt", "th", "scope"})
    if (key == hint) return true;
  return parse_dpp(key, value, i);
}

std::string_view base_name(std::string_view name) {
  for (const std::string_view suffix : {"_e64_dpp", "_e32", "_e64", "_sdwa", "_dpp"})
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  return name;
}

std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

// "v_dual_mov_b32" computes what v_mov_b32 does.
std::string undual(std::string_view name) {
  constexpr std::string_view kDual = "v_dual_";
  if (name.starts_with(kDual)) return "v_" + std::string(name.substr(kDual.size()));
  return std::string(base_name(name));
}

// Instructions whose text is not a list of operands.
bool parse_special(std::string_view name, std::string_view rest, Instruction& i) {
  i.src[0].kind = Kind::Value;
  if (name == "s_waitcnt") {
    // Counts per field, all ones: not waited for.
    uint32_t loads = 0xff, local = 0xff;
    for (const std::string_view part : split(rest, ' ')) {
      const size_t open = part.find('(');
      int64_t n = 0;
      if (open == std::string_view::npos || !number(part.substr(open + 1, part.size() - open - 2), n)) continue;
      const std::string_view field = part.substr(0, open);
      if (field == "vmcnt") loads = static_cast<uint32_t>(n);
      if (field == "lgkmcnt") local = static_cast<uint32_t>(n);
    }
    int64_t all = 0;
    if (number(rest, all)) loads = local = 0;  // every field, as a number: the strictest that it can be
    i.src[0].value = loads | local << 8;
    return !(number(rest, all) && all != 0);
  }
  for (const std::string_view ignored : {"s_delay_alu", "s_sendmsg", "s_clause", "s_nop", "s_code_end",
                                         "s_set_inst_prefetch_distance", "s_waitcnt_depctr", "s_setprio", "s_sleep"})
    if (name == ignored) return true;
  return false;
}

bool parse_operands(std::string_view rest, const OpEntry& entry, Instruction& i) {
  int index = 0;
  for (std::string_view part : split(rest, ',')) {
    const std::vector<std::string_view> words = split(part, ' ');
    size_t next = 0;
    bool modifier = words[0].find(':') != std::string_view::npos && words[0].find('[') > words[0].find(':');
    if (index == 0 && words[0] == "clamp") modifier = true;
    if (!modifier) {
      next = 1;
      if (index < entry.destinations) {
        Operand& operand = index == 0 ? i.dst : i.dst2;
        if (!parse_operand(words[0], entry.types[0], operand) || operand.kind == Kind::Value) return false;
      } else {
        const int source = index - entry.destinations;
        if (source >= 4 || !parse_source(words[0], source, entry.types[1 + source], i)) return false;
      }
      ++index;
    }
    for (; next < words.size(); ++next)
      if (!parse_modifier(words[next], i)) return false;
  }
  return true;
}

// Atomic operations of memory have one name with and without a result.
bool returns_value(const std::string& name, std::string_view text) {
  if (name.find("_atomic_") == std::string::npos) return false;
  return split(text, ',').size() == (name.starts_with("flat") ? 3 : 4);
}

Instruction parse_one(std::string_view text, uint32_t address, uint32_t bytes) {
  Instruction i;
  i.address = address;
  i.flow = Flow::Own;
  const std::string_view written = first_word(text);
  std::string name = undual(written);
  if (returns_value(name, text)) name += " returning";
  const OpEntry* entry = find_op(name.c_str());
  if (entry == nullptr) {
    i.run = unknown_opcode;
    return i;
  }
  i.name = entry->name;
  i.run = entry->run;
  i.flow = entry->flow;
  i.keeps = entry->keeps;
  const std::string_view rest = written.size() < text.size() ? text.substr(written.size() + 1) : std::string_view();
  i.op_sel_hi = name.starts_with("v_fma_mix") ? 0 : 7;
  if (!parse_special(name, rest, i)) {
    i.src[0] = {};
    if (!parse_operands(rest, *entry, i) || name == "s_waitcnt") {
      i.run = unknown_form;
      i.flow = Flow::Own;
    }
  }
  i.vector_load = name.starts_with("global_load") || name.starts_with("scratch_load");
  i.plain = (i.neg | i.abs | i.op_sel | i.neg_lo | i.neg_hi | i.omod | i.sext) == 0 && !i.clamp && !i.sdwa &&
            i.dpp == Dpp::None;
  if (name.starts_with("s_branch") || name.starts_with("s_cbranch"))
    i.target = static_cast<int32_t>(address + bytes) + static_cast<int16_t>(i.src[0].value) * 4;
  return i;
}

bool reads(const Instruction& i, const Operand& written) {
  auto overlaps = [&](const Operand& operand) {
    return operand.kind == Kind::Vector && operand.reg < written.reg + written.words &&
           written.reg < operand.reg + operand.words;
  };
  return overlaps(i.src[0]) || overlaps(i.src[1]) || overlaps(i.src[2]) || (i.keeps && overlaps(i.dst));
}

}  // namespace

std::vector<Instruction> parse_instruction(const std::string& text, Target, uint32_t address, uint32_t bytes) {
  const size_t dual = text.find(" :: ");
  if (dual == std::string::npos) return {parse_one(text, address, bytes)};
  std::vector<Instruction> both = {parse_one(std::string_view(text).substr(0, dual), address, bytes),
                                   parse_one(std::string_view(text).substr(dual + 4), address, bytes)};
  // Both read before either writes: the one whose result the other reads runs last.
  if (reads(both[1], both[0].dst)) {
    std::swap(both[0], both[1]);
    if (reads(both[1], both[0].dst)) both[0].pair = 2;
  }
  if (both[0].pair == 0) both[0].pair = 1;
  return both;
}

std::vector<std::string> opcode_names(const std::string& text) {
  const size_t dual = text.find(" :: ");
  if (dual == std::string::npos) return {undual(first_word(text))};
  return {undual(first_word(text)), undual(first_word(std::string_view(text).substr(dual + 4)))};
}

}  // namespace strata::amdsim
