// Matrix instructions of a wave: WMMA of gfx11 and gfx12, MFMA of gfx942; D = A · B + C, 16 by 16.
//
// Order and rounding inside the instruction are not published: products are added in f32 from the first on.
#include <algorithm>

#include "device/amdsim/lanes.h"

namespace strata::amdsim {
namespace {

using u32 = uint32_t;

// Where elements lie. Lane l holds row l % 16 of A, or column l % 16 of B; `depth` consecutive steps of K for each
// group of 16 lanes, or all of them in every group (gfx11). row: of element i in lane group g of D; its column is
// l % 16.
template <int K>
struct Gfx11 {
  static constexpr int kDepth = K, kGroups = 2, kElements = 8;
  static constexpr bool kAll = true;
  static constexpr int row(int i, int g) { return 2 * i + g; }
};
template <int K>
struct Gfx12 {
  static constexpr int kDepth = K / 2, kGroups = 2, kElements = 8;
  static constexpr bool kAll = false;
  static constexpr int row(int i, int g) { return i + 8 * g; }
};
template <int K>
struct Gfx9 {
  static constexpr int kDepth = K / 4, kGroups = 4, kElements = 4;
  static constexpr bool kAll = false;
  static constexpr int row(int i, int g) { return 4 * g + i; }
};

// f16_to_f32 without branches and without subnormal numbers of f32, which are slow.
float half_value(u32 bits) {
  const u32 wide = ((bits & 0x7fffu) << 13) + (112u << 23);  // the exponent's other bias
  const float small = std::bit_cast<float>(wide + (1u << 23)) - 0x1p-14f;
  const u32 exponent = bits & 0x7c00u;
  const u32 choose = exponent == 0 ? ~0u : 0u, infinite = exponent == 0x7c00u ? 0x7f800000u : 0u;
  const u32 result = (std::bit_cast<u32>(small) & choose) | (wide & ~choose) | infinite;
  return std::bit_cast<float>(result | (bits & 0x8000u) << 16);
}

enum class Element : uint8_t { Half, Brain, Byte };
template <Element element>
using Value = std::conditional_t<element == Element::Byte, u32, float>;

template <Element element>
Value<element> element_of(u32 word, int part, bool is_signed) {
  if constexpr (element == Element::Half)
    return half_value(word >> 16 * part & 0xffffu);
  else if constexpr (element == Element::Brain)
    return std::bit_cast<float>(part == 0 ? word << 16 : word & 0xffff0000u);
  else {
    const auto byte = static_cast<uint8_t>(word >> 8 * part);
    return is_signed ? static_cast<u32>(static_cast<int8_t>(byte)) : byte;
  }
}

// values[k][line]: of A the line is a row, of B a column.
template <Element element, class Layout>
void gather(Wave& wave, const Operand& operand, bool is_signed, Value<element> (*values)[16]) {
  constexpr int kPerWord = element == Element::Byte ? 4 : 2;
  constexpr int kGroups = Layout::kAll ? 1 : Layout::kGroups;
  for (int word = 0; word < Layout::kDepth / kPerWord; ++word) {
    const u32* row = wave.row(operand.reg + word);
    for (int g = 0; g < kGroups; ++g)
      for (int part = 0; part < kPerWord; ++part) {
        const int k = g * Layout::kDepth + word * kPerWord + part;
        for (int line = 0; line < 16; ++line)
          values[k][line] = element_of<element>(row[g * 16 + line], part, is_signed);
      }
    if (!Layout::kAll || std::memcmp(row, row + 16, 16 * sizeof(u32)) == 0) continue;
    const auto l = static_cast<int>(std::mismatch(row, row + 16, row + 16).second - row);
    wave.fail("lanes 16 to 31 of a matrix operand must hold what lanes 0 to 15 hold (register v" +
                  std::to_string(operand.reg + word) + ")",
              l);
  }
}

template <Element element, class Layout, int K>
void multiply(Wave& wave, const Instruction& i, bool sign_a, bool sign_b) {
  using T = Value<element>;
  if (wave.exec != wave.full) wave.fail("a matrix instruction runs with lanes off", std::countr_one(wave.exec));
  wave.need_defined(i.src[0], "operand A");
  wave.need_defined(i.src[1], "operand B");
  wave.need_defined(i.src[2], "operand C");
  alignas(64) T a[K][16], b[K][16], d[16][16];
  gather<element, Layout>(wave, i.src[0], sign_a, a);
  gather<element, Layout>(wave, i.src[1], sign_b, b);
  Source c;
  for (int e = 0; e < Layout::kElements; ++e) {
    Operand word = i.src[2];
    if (word.kind == Kind::Vector) word.reg = static_cast<uint16_t>(word.reg + e);
    load_plain(wave, word, Width::W32, c);
    for (int g = 0; g < Layout::kGroups; ++g) std::memcpy(d[Layout::row(e, g)], c.lo + 16 * g, sizeof(d[0]));
  }
  for (int row = 0; row < 16; ++row) {
    alignas(64) T sums[16];
    std::copy_n(d[row], 16, sums);
    for (int k = 0; k < K; ++k)
      for (int column = 0; column < 16; ++column) sums[column] += a[k][row] * b[k][column];
    std::copy_n(sums, 16, d[row]);
  }
  for (int e = 0; e < Layout::kElements; ++e)
    for (int g = 0; g < Layout::kGroups; ++g)
      std::memcpy(wave.row(i.dst.reg + e) + 16 * g, d[Layout::row(e, g)], sizeof(d[0]));
  wave.set_undefined(i.dst, 0);
}

void need_plain(const Wave& wave, const Instruction& i, bool signs) {
  if (i.clamp || i.neg_hi != 0 || (!signs && i.neg_lo != 0) || (i.neg_lo & 4) != 0 || i.op_sel != 0)
    wave.fail("this form of a matrix instruction is unknown to the interpreter");
}

template <Element element>
void wmma(Wave& wave, const Instruction& i) {
  constexpr bool bytes = element == Element::Byte;
  need_plain(wave, i, bytes);
  const bool gfx12 = is_gfx12(wave.target);
  const int words = (gfx12 ? 8 : 16) / (bytes ? 4 : 2);
  if (i.src[0].words != words || i.src[1].words != words || i.dst.words != 8)
    wave.fail("this form of a matrix instruction is unknown to the interpreter");
  const auto run = gfx12 ? multiply<element, Gfx12<16>, 16> : multiply<element, Gfx11<16>, 16>;
  run(wave, i, (i.neg_lo & 1) != 0, (i.neg_lo & 2) != 0);
}
template <Element element, int K>
void mfma(Wave& wave, const Instruction& i) {
  need_plain(wave, i, false);
  multiply<element, Gfx9<K>, K>(wave, i, true, true);
}

}  // namespace

std::vector<OpEntry> matrix_ops() {
  return {
      own_op("v_wmma_f32_16x16x16_f16", wmma<Element::Half>, 1, Type::F32, Flow::Matrix),
      own_op("v_wmma_f32_16x16x16_bf16", wmma<Element::Brain>, 1, Type::F32, Flow::Matrix),
      own_op("v_wmma_i32_16x16x16_iu8", wmma<Element::Byte>, 1, Type::B32, Flow::Matrix),
      own_op("v_mfma_f32_16x16x16_f16", mfma<Element::Half, 16>, 1, Type::F32, Flow::Matrix),
      own_op("v_mfma_f32_16x16x16_bf16", mfma<Element::Brain, 16>, 1, Type::F32, Flow::Matrix),
      own_op("v_mfma_i32_16x16x32_i8", mfma<Element::Byte, 32>, 1, Type::B32, Flow::Matrix),
  };
}

}  // namespace strata::amdsim
