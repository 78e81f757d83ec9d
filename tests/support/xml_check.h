// A checker of well-formed XML, for documents that the program writes: tags nest, attributes are quoted and unique,
// entities are the five of XML, no control characters, valid UTF-8.
#pragma once

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace strata::test {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // directly inside
};

class XmlCheck {
 public:
  // Every element in order of its start. std::runtime_error says what is wrong.
  static std::vector<XmlElement> elements(std::string_view document) {
    XmlCheck check(document);
    check.run();
    return std::move(check.elements_);
  }

 private:
  explicit XmlCheck(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at byte " + std::to_string(at_) + ": " + std::string(text_.substr(at_, 40)));
  }
  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool skip(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  void spaces() {
    while (peek() == ' ' || peek() == '\n') ++at_;
  }

  std::string name() {
    const size_t start = at_;
    while ((peek() >= 'a' && peek() <= 'z') || (peek() >= 'A' && peek() <= 'Z') || peek() == '-' ||
           (at_ > start && peek() >= '0' && peek() <= '9'))
      ++at_;
    if (at_ == start) fail("no name");
    return std::string(text_.substr(start, at_ - start));
  }

  std::string characters(char end) {
    std::string out;
    while (!done() && peek() != end) {
      if (peek() == '&') {
        const std::pair<std::string_view, char> kEntities[] = {
            {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
        bool known = false;
        for (const auto& [entity, c] : kEntities)
          if (!known && skip(entity)) {
            out += c;
            known = true;
          }
        if (!known) fail("a bare &");
        continue;
      }
      const auto c = static_cast<unsigned char>(peek());
      if (c == '<' || c == '>') fail("bare markup");
      if ((c < 0x20 && c != '\n') || c == 0x7F) fail("a control character");
      size_t more = c < 0x80 ? 0 : c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
      if (c >= 0x80 && (c < 0xC2 || c > 0xF4)) fail("no UTF-8");
      out += text_[at_++];
      for (; more > 0; --more) {
        if (done() || (static_cast<unsigned char>(peek()) & 0xC0) != 0x80) fail("no UTF-8");
        out += text_[at_++];
      }
    }
    return out;
  }

  void start_tag() {
    XmlElement element{name(), {}, {}};
    for (;;) {
      spaces();
      const bool empty = skip("/>");
      if (empty || skip(">")) {
        elements_.push_back(element);
        if (!empty) open_.push_back(elements_.size() - 1);
        return;
      }
      const std::string key = name();
      if (!skip("=\"")) fail("an attribute without a quoted value");
      if (!element.attributes.emplace(key, characters('"')).second) fail("attribute " + key + " twice");
      if (!skip("\"")) fail("an open attribute");
    }
  }

  void run() {
    do {
      if (skip("</")) {
        if (open_.empty() || elements_[open_.back()].name != name() || !skip(">")) fail("a wrong end tag");
        open_.pop_back();
      } else if (skip("<")) {
        if (open_.empty() && !elements_.empty()) fail("a second root");
        start_tag();
      } else {
        const std::string inside = characters('<');
        if (open_.empty() && inside.find_first_not_of(" \n") != std::string::npos) fail("text outside the root");
        if (!open_.empty()) elements_[open_.back()].text += inside;
      }
    } while (!done());
    if (!open_.empty()) fail("element " + elements_[open_.back()].name + " is not closed");
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<size_t> open_;
  std::vector<XmlElement> elements_;
};

}  // namespace strata::test
