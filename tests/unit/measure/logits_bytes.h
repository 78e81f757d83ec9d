// Files of logits written byte by byte, as their layout says.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace strata::test {

class Bytes {
 public:
  template <class T>
  Bytes& put(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Bytes& text(std::string_view text) {
    text_ += text;
    return *this;
  }
  Bytes& pad(size_t alignment) {
    text_.append((alignment - text_.size() % alignment) % alignment, '\0');
    return *this;
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

// One chunk of 4 tokens (0, 1, 2, 1) over 3 tokens: position 2 is scored, by token 1.
struct CodedFile {
  uint32_t context = 4;
  int32_t vocabulary = 3, chunks = 1;
  std::vector<int32_t> tokens{0, 1, 2, 1};
  float scale = 0.5f, low = -3;
  std::vector<uint16_t> codes{0, 2, 5, 0};  // ln p -3, -2, -0.5, and padding

  std::string bytes() const {
    Bytes out;
    out.text("_logits_").put(context).put(vocabulary).put(chunks);
    for (const int32_t token : tokens) out.put(token);
    out.put(scale).put(low);
    for (const uint16_t code : codes) out.put(code);
    return out.str();
  }
};

struct FullFile {
  uint32_t version = 1, context = 4, vocabulary = 3, chunks = 1;
  uint64_t model = 7;
  std::string settings = "a: b\n";
  std::vector<int32_t> tokens{0, 1, 2, 1};
  std::vector<float> logits{1, 2, 3};
  uint64_t rows = 1;

  std::string bytes() const {
    Bytes out;
    out.text("STRLOGIT").put(version).put(context).put(vocabulary).put(chunks).put(model);
    out.put(static_cast<uint32_t>(settings.size())).put(uint32_t{0}).text(settings).pad(8);
    for (const int32_t token : tokens) out.put(token);
    out.pad(64);
    for (const float logit : logits) out.put(logit);
    return out.text("ENDLOGIT").put(rows).str();
  }
};

}  // namespace strata::test
