#include "device/amdsim/lanes.h"

#include <algorithm>

namespace strata::amdsim {
namespace {

const uint32_t* word_of(Wave& wave, const Operand& operand, int word, uint32_t* own) {
  if (operand.kind == Kind::Vector) return wave.row(operand.reg + word);
  uint32_t value = 0;
  if (operand.kind == Kind::Value)
    value = static_cast<uint32_t>(operand.value >> 32 * word);
  else if (operand.reg != kNull)
    value = wave.read_scalar(operand.reg + word);
  std::fill_n(own, wave.lanes, value);
  return own;
}

uint32_t selected(uint32_t value, Select select, bool sign) {
  switch (select) {
    case Select::Dword: return value;
    case Select::Word0:
    case Select::Word1: {
      const auto half = static_cast<uint16_t>(value >> (select == Select::Word1 ? 16 : 0));
      return sign ? static_cast<uint32_t>(static_cast<int16_t>(half)) : half;
    }
    default: {
      const auto byte = static_cast<uint8_t>(value >> 8 * (static_cast<int>(select) - 1));
      return sign ? static_cast<uint32_t>(static_cast<int8_t>(byte)) : byte;
    }
  }
}

// The lane that lane l reads, or -1.
int dpp_lane(const Instruction& i, int l) {
  const int row = l & ~15, in_row = l & 15, n = i.dpp_argument;
  switch (i.dpp) {
    case Dpp::None: return l;
    case Dpp::QuadPerm: return (l & ~3) | (n >> 2 * (l & 3) & 3);
    case Dpp::RowShl: return in_row + n < 16 ? l + n : -1;
    case Dpp::RowShr: return in_row >= n ? l - n : -1;
    case Dpp::RowRor: return row | ((in_row - n) & 15);
    case Dpp::RowMirror: return row | (15 - in_row);
    case Dpp::RowHalfMirror: return (l & ~7) | (7 - (l & 7));
    case Dpp::RowShare: return row | (n & 15);
    case Dpp::RowXmask: return row | (in_row ^ n);
  }
  return -1;
}

void apply_dpp(const Wave& wave, const Instruction& i, uint32_t* values, uint64_t& write) {
  uint32_t before[kMaxLanes];
  std::copy_n(values, wave.lanes, before);
  for (int l = 0; l < wave.lanes; ++l) {
    const int from = dpp_lane(i, l);
    const bool there = from >= 0 && (i.fetch_inactive || (wave.exec >> from & 1u) != 0);
    values[l] = there ? before[from] : 0;
    const bool masked = (i.row_mask >> l / 16 & 1) == 0 || (i.bank_mask >> l % 16 / 4 & 1) == 0;
    if (masked || (!there && !i.bound_zero)) write &= ~(uint64_t{1} << l);
  }
}

}  // namespace

void load_plain(Wave& wave, const Operand& operand, Width width, Source& source) {
  source.lo = word_of(wave, operand, 0, source.own_lo);
  if (width == Width::W64) source.hi = word_of(wave, operand, 1, source.own_hi);
}

void load_modified(Wave& wave, const Instruction& i, int n, Width width, Source& source, uint64_t& write) {
  load_plain(wave, i.src[n], width, source);
  auto own = [&](const uint32_t*& values, uint32_t* copy) {
    if (values != copy) std::copy_n(values, wave.lanes, copy);
    values = copy;
  };
  own(source.lo, source.own_lo);
  uint32_t* lo = source.own_lo;
  if (n == 0 && i.dpp != Dpp::None) {
    apply_dpp(wave, i, lo, write);
    if (width == Width::W64) wave.fail("DPP of 64 bits is unknown to the interpreter");
  }
  if (i.sdwa && n < 2) {
    const bool sign = (i.sext >> n & 1) != 0;
    for (int l = 0; l < wave.lanes; ++l) lo[l] = selected(lo[l], i.src_sel[n], sign);
  }
  if (width == Width::W16 && (i.op_sel >> n & 1) != 0)
    for (int l = 0; l < wave.lanes; ++l) lo[l] >>= 16;
  const bool magnitude = (i.abs >> n & 1) != 0, negative = (i.neg >> n & 1) != 0;
  if (!magnitude && !negative) return;
  uint32_t* sign_word = lo;
  if (width == Width::W64) {
    own(source.hi, source.own_hi);
    sign_word = source.own_hi;
  }
  const uint32_t sign = width == Width::W16 ? 0x8000u : 0x80000000u;
  for (int l = 0; l < wave.lanes; ++l) {
    if (magnitude) sign_word[l] &= ~sign;
    if (negative) sign_word[l] ^= sign;
  }
}

void modify_result(const Instruction& i, Width width, bool is_float, uint32_t* lo, uint32_t* hi, int lanes) {
  if (!is_float) return;
  const double factor = i.omod == 1 ? 2 : i.omod == 2 ? 4 : i.omod == 3 ? 0.5 : 1;
  auto modified = [&](auto value) {
    value *= static_cast<decltype(value)>(factor);
    if (!i.clamp) return value;
    return value > 0 ? std::min(value, decltype(value){1}) : decltype(value){0};  // NaN becomes 0
  };
  for (int l = 0; l < lanes; ++l) {
    if (width == Width::W64)
      put<double>(modified(make<double>(lo, hi, l)), lo, hi, l);
    else if (width == Width::W32)
      put<float>(modified(make<float>(lo, hi, l)), lo, hi, l);
    else
      put<Half>({modified(make<Half>(lo, hi, l).value)}, lo, hi, l);
  }
}

void store_modified(Wave& wave, const Instruction& i, const uint32_t* lo, uint64_t write, Width width) {
  uint32_t* row = wave.row(i.dst.reg);
  uint32_t keep = 0;
  int shift = 0;
  if (i.sdwa) {
    const int select = static_cast<int>(i.dst_sel);
    if (i.dst_sel != Select::Dword) {
      const bool word = i.dst_sel >= Select::Word0;
      shift = word ? (i.dst_sel == Select::Word1 ? 16 : 0) : 8 * (select - 1);
      const uint32_t field = (word ? 0xffffu : 0xffu) << shift;
      keep = ~field;
    }
    for (int l = 0; l < wave.lanes; ++l) {
      if ((write >> l & 1u) == 0) continue;
      uint32_t value = (lo[l] << shift) & ~keep;
      if (i.unused == 2) value |= row[l] & keep;
      if (i.unused == 1) wave.fail("SDWA with sign extension of the rest is unknown to the interpreter");
      row[l] = value;
    }
    return;
  }
  if (width == Width::W16) {
    const bool high = (i.op_sel >> 3 & 1) != 0;
    shift = high ? 16 : 0;
    // The half that is not written stays, but for the upper one on gfx9.
    keep = high ? 0xffffu : is_gfx9(wave.target) ? 0 : 0xffff0000u;
  }
  for (int l = 0; l < wave.lanes; ++l)
    if ((write >> l & 1u) != 0) row[l] = (lo[l] << shift) | (row[l] & keep);
}

uint64_t pack_bits(const unsigned char* bytes, int lanes) {
  uint64_t result = 0;
  for (int l = 0; l < lanes; l += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, bytes + l, sizeof(eight));
    result |= (eight * 0x0102040810204080u >> 56) << l;
  }
  return result;
}

void finish_compare(Wave& wave, const Instruction& i, uint64_t bits) {
  uint64_t lanes_undefined = wave.undefined_lanes(i.src[0]) | wave.undefined_lanes(i.src[1]);
  lanes_undefined &= wave.exec;
  bits &= wave.exec;
  if (i.dst.kind == Kind::None)  // v_cmpx
    wave.write_mask(kExec, bits, lanes_undefined);
  else
    wave.write_mask(i.dst.reg, bits, lanes_undefined);
}

}  // namespace strata::amdsim
