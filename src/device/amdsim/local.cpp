// DS: shared memory, and exchange between lanes through its unit.
#include <algorithm>
#include <string>

#include "device/amdsim/lanes.h"

namespace strata::amdsim {
namespace {

using u32 = uint32_t;

// Bytes and registers of an access. Sub-word loads extend; d16 loads fill half a register.
enum class Fill : uint8_t { Zero, Sign, Low, High };
struct Access {
  u32 bytes;
  Fill fill = Fill::Zero;
};

u32 address_of(const Wave& wave, u32 base, u32 offset, u32 bytes, u32 alignment, int lane) {
  const u32 address = base + offset;  // of 32 bits: a base may be negative
  if (static_cast<uint64_t>(address) + bytes > wave.local->bytes())
    wave.fail("shared memory is accessed at " + std::to_string(address) + ", the work-group has " +
                  std::to_string(wave.local->bytes()) + " bytes",
              lane);
  if (address % alignment != 0)
    wave.fail("shared memory is accessed at " + std::to_string(address) + ", which is no multiple of " +
                  std::to_string(alignment),
              lane);
  return address;
}
u32 alignment_of(u32 bytes) { return bytes == 12 ? 16 : bytes; }

void check(const Wave& wave, const char* wrong, u32 address, int lane) {
  if (wrong != nullptr)
    wave.fail(std::string("the instruction ") + wrong + " (at " + std::to_string(address) + ")", lane);
}

// The access of one lane: registers from `reg` on.
void load_lane(Wave& wave, int reg, u32 address, Access access, int lane) {
  check(wave, wave.local->read(address, access.bytes, wave.id), address, lane);
  const unsigned char* from = wave.local->at(address);
  if (access.bytes >= 4) {
    for (u32 word = 0; word < access.bytes / 4; ++word)
      std::memcpy(wave.row(reg + static_cast<int>(word)) + lane, from + 4 * word, 4);
    return;
  }
  uint16_t value = 0;
  std::memcpy(&value, from, access.bytes);
  u32& to = wave.row(reg)[lane];
  switch (access.fill) {
    case Fill::Zero: to = value; break;
    case Fill::Sign:
      to = access.bytes == 1 ? static_cast<u32>(static_cast<int8_t>(static_cast<uint8_t>(value)))
                             : static_cast<u32>(static_cast<int16_t>(value));
      break;
    case Fill::Low: to = (to & 0xffff0000u) | value; break;
    case Fill::High: to = (to & 0xffffu) | static_cast<u32>(value) << 16; break;
  }
}
void store_lane(Wave& wave, const Operand& data, int word, u32 address, u32 bytes, int lane) {
  check(wave, wave.local->write(address, bytes, wave.id), address, lane);
  unsigned char* to = wave.local->at(address);
  for (u32 at = 0; at < bytes; at += 4)
    std::memcpy(to + at, wave.row(data.reg + word + static_cast<int>(at / 4)) + lane, std::min(bytes, 4u));
}

void issued(Wave& wave, const Operand* destination) {
  wave.issue(kLocal, false);
  wave.waits.last_local = wave.waits.issued[kLocal];
  if (destination == nullptr) return;
  wave.will_write(*destination, kLocal, false);
  wave.set_undefined(*destination, 0);
}

template <u32 bytes, Fill fill>
void load(Wave& wave, const Instruction& i) {
  wave.need_defined(i.src[0], "the address");
  u32 base[kMaxLanes];
  std::copy_n(wave.row(i.src[0].reg), wave.lanes, base);  // the destination may be the same register
  for (int l = 0; l < wave.lanes; ++l)
    if (wave.active[l] != 0)
      load_lane(wave, i.dst.reg, address_of(wave, base[l], static_cast<u32>(i.offset), bytes, alignment_of(bytes), l),
                {bytes, fill}, l);
  issued(wave, &i.dst);
}
template <u32 bytes>
void store(Wave& wave, const Instruction& i) {
  wave.need_defined(i.src[0], "the address");
  wave.need_defined(i.src[1], "what is stored");
  const u32* base = wave.row(i.src[0].reg);
  for (int l = 0; l < wave.lanes; ++l)
    if (wave.active[l] != 0)
      store_lane(wave, i.src[1], 0,
                 address_of(wave, base[l], static_cast<u32>(i.offset), bytes, alignment_of(bytes), l), bytes, l);
  issued(wave, nullptr);
}
template <u32 bytes, u32 stride>
void load_two(Wave& wave, const Instruction& i) {
  wave.need_defined(i.src[0], "the address");
  u32 base[kMaxLanes];
  std::copy_n(wave.row(i.src[0].reg), wave.lanes, base);
  for (int l = 0; l < wave.lanes; ++l) {
    if (wave.active[l] == 0) continue;
    for (int part = 0; part < 2; ++part) {
      const u32 offset = static_cast<u32>(part == 0 ? i.offset : i.offset1) * bytes * stride;
      load_lane(wave, i.dst.reg + part * static_cast<int>(bytes / 4),
                address_of(wave, base[l], offset, bytes, bytes, l), {bytes}, l);
    }
  }
  issued(wave, &i.dst);
}
template <u32 bytes, u32 stride>
void store_two(Wave& wave, const Instruction& i) {
  wave.need_defined(i.src[0], "the address");
  wave.need_defined(i.src[1], "what is stored");
  wave.need_defined(i.src[2], "what is stored");
  const u32* base = wave.row(i.src[0].reg);
  for (int l = 0; l < wave.lanes; ++l) {
    if (wave.active[l] == 0) continue;
    for (int part = 0; part < 2; ++part) {
      const u32 offset = static_cast<u32>(part == 0 ? i.offset : i.offset1) * bytes * stride;
      store_lane(wave, i.src[1 + part], 0, address_of(wave, base[l], offset, bytes, bytes, l), bytes, l);
    }
  }
  issued(wave, nullptr);
}

template <class F, bool returns>
void atomic(Wave& wave, const Instruction& i) {
  wave.need_defined(i.src[0], "the address");
  wave.need_defined(i.src[1], "what is stored");
  u32 base[kMaxLanes], data[kMaxLanes];
  std::copy_n(wave.row(i.src[0].reg), wave.lanes, base);
  std::copy_n(wave.row(i.src[1].reg), wave.lanes, data);
  for (int l = 0; l < wave.lanes; ++l) {
    if (wave.active[l] == 0) continue;
    const u32 address = address_of(wave, base[l], static_cast<u32>(i.offset), 4, 4, l);
    check(wave, wave.local->atomic(address, 4, wave.id), address, l);
    u32 before = 0;
    std::memcpy(&before, wave.local->at(address), 4);
    const u32 after = F{}(before, data[l]);
    std::memcpy(wave.local->at(address), &after, 4);
    if (returns) wave.row(i.dst.reg)[l] = before;
  }
  issued(wave, returns ? &i.dst : nullptr);
}

// Lane l gets the value of the lane that its address names; zero where that lane is off.
void bpermute(Wave& wave, const Instruction& i) {
  wave.need_defined(i.src[0], "the lane");
  const u32 *from = wave.row(i.src[0].reg), *values = wave.row(i.src[1].reg);
  const uint64_t unknown = wave.undefined_lanes(i.src[1]);
  alignas(64) u32 result[kMaxLanes];
  uint64_t result_unknown = 0;
  for (int l = 0; l < wave.lanes; ++l) {
    const u32 lane = (from[l] + static_cast<u32>(i.offset)) / 4 % static_cast<u32>(wave.lanes);
    result[l] = values[lane] & wave.active[lane];
    result_unknown |= (unknown >> lane & wave.exec >> lane & 1u) << l;
  }
  blend(wave, i.dst.reg, result);
  wave.issue(kLocal, false);
  wave.will_write(i.dst, kLocal, false);
  wave.set_undefined(i.dst, result_unknown);
}
// Each lane gives its value to the lane that its address names; the highest lane wins.
void permute(Wave& wave, const Instruction& i) {
  wave.need_defined(i.src[0], "the lane");
  const u32 *to = wave.row(i.src[0].reg), *values = wave.row(i.src[1].reg);
  const uint64_t unknown = wave.undefined_lanes(i.src[1]);
  alignas(64) u32 result[kMaxLanes] = {};
  uint64_t result_unknown = 0;
  for (int l = 0; l < wave.lanes; ++l) {
    if (wave.active[l] == 0) continue;
    const u32 lane = (to[l] + static_cast<u32>(i.offset)) / 4 % static_cast<u32>(wave.lanes);
    result[lane] = values[l];
    result_unknown = (result_unknown & ~(uint64_t{1} << lane)) | (unknown >> l & 1u) << lane;
  }
  blend(wave, i.dst.reg, result);
  wave.issue(kLocal, false);
  wave.will_write(i.dst, kLocal, false);
  wave.set_undefined(i.dst, result_unknown);
}

template <u32 bytes, Fill fill = Fill::Zero>
OpEntry load_op(const char* name) {
  OpEntry entry = own_op(name, load<bytes, fill>, 1, Type::B32);
  entry.keeps = fill >= Fill::Low;
  return entry;
}
template <class F>
void add_atomic(std::vector<OpEntry>& all, const char* name, const char* returning, F) {
  all.push_back(own_op(name, atomic<F, false>, 0, Type::B32));
  all.push_back(own_op(returning, atomic<F, true>, 1, Type::B32));
}

}  // namespace

std::vector<OpEntry> local_ops() {
  std::vector<OpEntry> all = {
      load_op<1>("ds_load_u8"),
      load_op<1>("ds_read_u8"),
      load_op<1, Fill::Sign>("ds_load_i8"),
      load_op<1, Fill::Sign>("ds_read_i8"),
      load_op<2>("ds_load_u16"),
      load_op<2>("ds_read_u16"),
      load_op<2, Fill::Sign>("ds_load_i16"),
      load_op<2, Fill::Sign>("ds_read_i16"),
      load_op<2, Fill::Low>("ds_load_u16_d16"),
      load_op<2, Fill::Low>("ds_read_u16_d16"),
      load_op<2, Fill::High>("ds_load_u16_d16_hi"),
      load_op<2, Fill::High>("ds_read_u16_d16_hi"),
      load_op<4>("ds_load_b32"),
      load_op<4>("ds_read_b32"),
      load_op<8>("ds_load_b64"),
      load_op<8>("ds_read_b64"),
      load_op<12>("ds_load_b96"),
      load_op<12>("ds_read_b96"),
      load_op<16>("ds_load_b128"),
      load_op<16>("ds_read_b128"),
      own_op("ds_load_2addr_b32", load_two<4, 1>, 1, Type::B32),
      own_op("ds_read2_b32", load_two<4, 1>, 1, Type::B32),
      own_op("ds_load_2addr_b64", load_two<8, 1>, 1, Type::B32),
      own_op("ds_read2_b64", load_two<8, 1>, 1, Type::B32),
      own_op("ds_load_2addr_stride64_b32", load_two<4, 64>, 1, Type::B32),
      own_op("ds_read2st64_b32", load_two<4, 64>, 1, Type::B32),
      own_op("ds_load_2addr_stride64_b64", load_two<8, 64>, 1, Type::B32),
      own_op("ds_read2st64_b64", load_two<8, 64>, 1, Type::B32),
      own_op("ds_store_b8", store<1>, 0, Type::B32),
      own_op("ds_write_b8", store<1>, 0, Type::B32),
      own_op("ds_store_b16", store<2>, 0, Type::B32),
      own_op("ds_write_b16", store<2>, 0, Type::B32),
      own_op("ds_store_b32", store<4>, 0, Type::B32),
      own_op("ds_write_b32", store<4>, 0, Type::B32),
      own_op("ds_store_b64", store<8>, 0, Type::B32),
      own_op("ds_write_b64", store<8>, 0, Type::B32),
      own_op("ds_store_b96", store<12>, 0, Type::B32),
      own_op("ds_write_b96", store<12>, 0, Type::B32),
      own_op("ds_store_b128", store<16>, 0, Type::B32),
      own_op("ds_write_b128", store<16>, 0, Type::B32),
      own_op("ds_store_2addr_b32", store_two<4, 1>, 0, Type::B32),
      own_op("ds_write2_b32", store_two<4, 1>, 0, Type::B32),
      own_op("ds_store_2addr_b64", store_two<8, 1>, 0, Type::B32),
      own_op("ds_write2_b64", store_two<8, 1>, 0, Type::B32),
      own_op("ds_store_2addr_stride64_b32", store_two<4, 64>, 0, Type::B32),
      own_op("ds_write2st64_b32", store_two<4, 64>, 0, Type::B32),
      own_op("ds_store_2addr_stride64_b64", store_two<8, 64>, 0, Type::B32),
      own_op("ds_write2st64_b64", store_two<8, 64>, 0, Type::B32),
      own_op("ds_bpermute_b32", bpermute, 1, Type::B32),
      own_op("ds_permute_b32", permute, 1, Type::B32),
  };
  add_atomic(all, "ds_add_u32", "ds_add_rtn_u32", [](u32 a, u32 b) { return a + b; });
  add_atomic(all, "ds_max_u32", "ds_max_rtn_u32", [](u32 a, u32 b) { return std::max(a, b); });
  add_atomic(all, "ds_min_u32", "ds_min_rtn_u32", [](u32 a, u32 b) { return std::min(a, b); });
  add_atomic(all, "ds_or_b32", "ds_or_rtn_b32", [](u32 a, u32 b) { return a | b; });
  add_atomic(all, "ds_and_b32", "ds_and_rtn_b32", [](u32 a, u32 b) { return a & b; });
  add_atomic(all, "ds_add_f32", "ds_add_rtn_f32",
             [](u32 a, u32 b) { return std::bit_cast<u32>(std::bit_cast<float>(a) + std::bit_cast<float>(b)); });
  return all;
}

}  // namespace strata::amdsim
