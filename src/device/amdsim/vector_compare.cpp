// VOPC: comparisons of all types, into a mask of lanes or EXEC.
#include <deque>
#include <string>

#include "device/amdsim/lanes.h"

namespace strata::amdsim {
namespace {

float plain(Half x) { return x.value; }
template <class T>
T plain(T x) {
  return x;
}

// Two entries of one comparison.
class Comparisons {
 public:
  template <class F>
  void add(const std::string& condition, const std::string& type, F f) {
    for (const char* prefix : {"v_cmp_", "v_cmpx_"}) {
      OpEntry entry = vector_op(name(prefix + condition + "_" + type), f);
      entry.destinations = std::string(prefix) == "v_cmp_" ? 1 : 0;
      entries.push_back(entry);
    }
  }
  template <class T>
  void whole(const std::string& type) {
    add("lt", type, [](T a, T b) { return plain(a) < plain(b); });
    add("eq", type, [](T a, T b) { return plain(a) == plain(b); });
    add("le", type, [](T a, T b) { return plain(a) <= plain(b); });
    add("gt", type, [](T a, T b) { return plain(a) > plain(b); });
    add("ne", type, [](T a, T b) { return plain(a) != plain(b); });
    add("ge", type, [](T a, T b) { return plain(a) >= plain(b); });
  }
  template <class T>
  void floating(const std::string& type) {
    whole<T>(type);
    add("lg", type, [](T a, T b) { return plain(a) < plain(b) || plain(a) > plain(b); });
    add("o", type, [](T a, T b) { return plain(a) == plain(a) && plain(b) == plain(b); });
    add("u", type, [](T a, T b) { return plain(a) != plain(a) || plain(b) != plain(b); });
    add("nge", type, [](T a, T b) { return !(plain(a) >= plain(b)); });
    add("nlg", type, [](T a, T b) { return !(plain(a) < plain(b) || plain(a) > plain(b)); });
    add("ngt", type, [](T a, T b) { return !(plain(a) > plain(b)); });
    add("nle", type, [](T a, T b) { return !(plain(a) <= plain(b)); });
    add("neq", type, [](T a, T b) { return !(plain(a) == plain(b)); });
    add("nlt", type, [](T a, T b) { return !(plain(a) < plain(b)); });
  }

  std::vector<OpEntry> entries;

 private:
  static const char* name(const std::string& text) {
    static std::deque<std::string> names;  // entries point at them as long as the program runs
    names.push_back(text);
    return names.back().c_str();
  }
};

// A bit for each kind of number: signalling and quiet NaN, then from -infinity to +infinity.
template <class T>
bool of_class(T value, uint32_t mask, bool quiet) {
  int kind = 0;
  switch (std::fpclassify(value)) {
    case FP_NAN: return (mask >> (quiet ? 1 : 0) & 1u) != 0;
    case FP_INFINITE: kind = 0; break;
    case FP_NORMAL: kind = 1; break;
    case FP_SUBNORMAL: kind = 2; break;
    default: kind = 3; break;
  }
  return (mask >> (std::signbit(value) ? 2 + kind : 9 - kind) & 1u) != 0;
}

}  // namespace

std::vector<OpEntry> vector_compare_ops() {
  Comparisons all;
  all.floating<float>("f32");
  all.floating<double>("f64");
  all.floating<Half>("f16");
  all.whole<int32_t>("i32");
  all.whole<uint32_t>("u32");
  all.whole<int64_t>("i64");
  all.whole<uint64_t>("u64");
  all.whole<int16_t>("i16");
  all.whole<uint16_t>("u16");
  all.add("class", "f32",
          [](float a, uint32_t b) { return of_class(a, b, (std::bit_cast<uint32_t>(a) >> 22 & 1u) != 0); });
  all.add("class", "f64",
          [](double a, uint32_t b) { return of_class(a, b, (std::bit_cast<uint64_t>(a) >> 51 & 1u) != 0); });
  return all.entries;
}

}  // namespace strata::amdsim
