// Matrix instructions of a wave: WMMA of gfx11 and gfx12, MFMA of gfx942; D = A · B + C, 16 by 16.
//
// Order and rounding inside the instruction are not published: products are added in f32 from the first on.
#include "device/amdsim/lanes.h"

namespace strata::amdsim {
namespace {

using u32 = uint32_t;

// Where elements lie. Lane l holds row l % 16 of A, or column l % 16 of B; `depth` consecutive steps of K for each
// group of 16 lanes, or all of them in every group (gfx11).
struct Layout {
  int depth;     // of K in a lane
  bool all;      // each group of lanes holds the same
  int elements;  // of D in a lane
  // Row of element i in lane group g of D; its column is l % 16.
  int (*row)(int i, int g);
};
constexpr Layout gfx11(int k) {
  return {k, true, 8, [](int i, int g) { return 2 * i + g; }};
}
constexpr Layout gfx12(int k) {
  return {k / 2, false, 8, [](int i, int g) { return i + 8 * g; }};
}
constexpr Layout gfx9(int k) {
  return {k / 4, false, 4, [](int i, int g) { return 4 * g + i; }};
}

float half_value(u32 bits) {  // f16_to_f32 without branches
  const u32 magnitude = (bits & 0x7fffu) << 13;
  u32 wide = std::bit_cast<u32>(std::bit_cast<float>(magnitude) * 0x1p112f);
  wide |= (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(wide | (bits & 0x8000u) << 16);
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
template <Element element, int K>
void gather(Wave& wave, const Operand& operand, const Layout& layout, bool is_signed, Value<element> (*values)[16]) {
  constexpr int kPerWord = element == Element::Byte ? 4 : 2;
  const int groups = layout.all ? 1 : wave.lanes / 16;
  for (int word = 0; word < layout.depth / kPerWord; ++word) {
    const u32* row = wave.row(operand.reg + word);
    for (int g = 0; g < groups; ++g)
      for (int part = 0; part < kPerWord; ++part) {
        const int k = g * layout.depth + word * kPerWord + part;
        for (int line = 0; line < 16; ++line)
          values[k][line] = element_of<element>(row[g * 16 + line], part, is_signed);
      }
    if (!layout.all) continue;
    for (int l = 16; l < 32; ++l)
      if (row[l] != row[l - 16])
        wave.fail("lanes 16 to 31 of a matrix operand must hold what lanes 0 to 15 hold (register v" +
                      std::to_string(operand.reg + word) + ")",
                  l);
  }
}

template <Element element, int K>
void multiply(Wave& wave, const Instruction& i, const Layout& layout, bool sign_a, bool sign_b) {
  using T = Value<element>;
  if (wave.exec != wave.full) wave.fail("a matrix instruction runs with lanes off", std::countr_one(wave.exec));
  wave.need_defined(i.src[0], "operand A");
  wave.need_defined(i.src[1], "operand B");
  wave.need_defined(i.src[2], "operand C");
  alignas(64) T a[K][16], b[K][16], d[16][16];
  gather<element, K>(wave, i.src[0], layout, sign_a, a);
  gather<element, K>(wave, i.src[1], layout, sign_b, b);
  Source c;
  for (int e = 0; e < layout.elements; ++e) {
    Operand word = i.src[2];
    if (word.kind == Kind::Vector) word.reg = static_cast<uint16_t>(word.reg + e);
    load_plain(wave, word, Width::W32, c);
    for (int l = 0; l < wave.lanes; ++l) d[layout.row(e, l / 16)][l % 16] = std::bit_cast<T>(c.lo[l]);
  }
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < K; ++k) {
      const T factor = a[k][row];
      for (int column = 0; column < 16; ++column) d[row][column] += factor * b[k][column];
    }
  for (int e = 0; e < layout.elements; ++e) {
    u32* row = wave.row(i.dst.reg + e);
    for (int l = 0; l < wave.lanes; ++l) row[l] = std::bit_cast<u32>(d[layout.row(e, l / 16)][l % 16]);
  }
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
  const Layout layout = is_gfx12(wave.target) ? gfx12(16) : gfx11(16);
  const int words = layout.depth / (bytes ? 4 : 2);
  if (i.src[0].words != words || i.src[1].words != words || i.dst.words != 8)
    wave.fail("this form of a matrix instruction is unknown to the interpreter");
  multiply<element, 16>(wave, i, layout, (i.neg_lo & 1) != 0, (i.neg_lo & 2) != 0);
}
template <Element element, int K>
void mfma(Wave& wave, const Instruction& i) {
  need_plain(wave, i, false);
  multiply<element, K>(wave, i, gfx9(K), true, true);
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
