#include "measure/needle_text.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "base/error.h"
#include "base/random.h"

namespace strata {
namespace {

constexpr const char* kFiller[] = {
    "The program reads the file from the start to the end.",
    "A user may change the name of a folder at any time.",
    "The table in the kitchen is made of old wood.",
    "Each line of the list holds one name and one value.",
    "The wind came from the north and the lake was cold.",
    "When the buffer is full, the data is written to the disk.",
    "Some people walk to work and others take the bus.",
    "The second option is the same as the first one.",
    "A small boat lay on the sand near the water.",
    "The system checks the size of the file before it is copied.",
    "Most of the books on this shelf are about plants.",
    "The command prints the result and returns to the shell.",
    "Two birds sat on the roof and looked at the street.",
    "An error in the script stops the process at once.",
    "The road goes through the forest and over a bridge.",
    "The page shows the names of all the functions.",
    "In the morning the shop sells bread and milk.",
    "This setting has no effect when the network is down.",
    "The teacher wrote a short word on the board.",
    "A message is sent to the server and the client waits.",
    "The light in the hall stays on all night.",
    "Every package has a version and a list of files.",
    "The old man told a story about the sea.",
    "The value is stored in memory until the program ends.",
    "Her brother plays the piano in the next room.",
    "The output of one command is the input of the next.",
    "There is snow on the hills until the end of spring.",
    "The library is loaded when the program needs it.",
    "He put the letters in a box under the bed.",
    "The thread sleeps until there is work to do.",
    "A long train passed the station without a stop.",
    "The type of the field is given in the first column.",
    "The children built a house of stones and sticks.",
    "If the path does not exist, a new folder is made.",
    "The coffee was hot and the room was quiet.",
    "The device sends a signal when it is ready.",
    "They planted apples and pears behind the barn.",
    "The log says which user was the last one.",
    "A map of the city hangs on the wall.",
    "The test runs every day and takes a few minutes.",
};

constexpr const char* kNames[] = {"red",    "green", "blue", "yellow", "white", "black", "brown", "orange",
                                  "purple", "grey",  "pink", "silver", "gold",  "dark",  "light", "clear"};
static_assert(std::size(kNames) == kMaxMarkers);

constexpr size_t kMostTries = 200;  // encodings of a whole text, while it is cut to its length
constexpr uint64_t kFillerDraw = 0x66696c6c6572, kKeyDraw = 0x6b6579;

uint64_t mixed(std::initializer_list<uint64_t> values) {
  uint64_t hash = 0;
  for (const uint64_t value : values) hash = splitmix64(hash ^ value);
  return hash;
}

uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

// "pass key", or "red pass key" where there are several.
std::string key_name(const NeedleCase& which, int64_t marker) {
  return (which.markers == 1 ? std::string() : std::string(kNames[marker]) + " ") + "pass key";
}

std::string marker_text(const NeedleCase& which, int64_t marker, const std::string& key) {
  const std::string name = key_name(which, marker);
  return "The " + name + " is " + key + ". Remember it. " + key + " is the " + name + ".";
}

std::string question(const NeedleCase& which, bool chat) {
  if (!which.ask_all || which.markers == 1) {
    const std::string name = key_name(which, which.asked);
    return "What is the " + name + "?" + (chat ? "" : " The " + name + " is");
  }
  std::string names;
  for (int64_t i = 0; i < which.markers; ++i)
    names += (i == 0 ? "" : i + 1 < which.markers ? ", " : " and ") + std::string(kNames[i]);
  return "What are the " + names + " pass keys, in this order?" + (chat ? "" : " They are");
}

double depth_of(const NeedleCase& which, int64_t marker) {
  const int64_t first = which.ask_all ? 0 : which.asked;
  const int64_t steps = (marker - first + which.markers) % which.markers;
  if (steps == 0) return static_cast<double>(which.depth);
  return std::fmod(
      static_cast<double>(which.depth) + 100.0 * static_cast<double>(steps) / static_cast<double>(which.markers),
      100.0);
}

}  // namespace

// The filler and where markers stand in it.
struct NeedleText::Layout {
  const NeedleCase& which;
  bool chat;
  std::vector<std::string> markers;
  Random draw;
  std::vector<size_t> sentences{};
  std::string rest{};  // what the last sentence is cut to

  size_t next() { return static_cast<size_t>(draw.below(static_cast<int64_t>(std::size(kFiller)))); }

  // Each marker stands behind as many whole sentences as come nearest to its depth.
  std::string text(const std::vector<int64_t>& costs) const {
    std::vector<int64_t> ends{0};
    for (const size_t sentence : sentences) ends.push_back(ends.back() + costs[sentence]);
    std::vector<std::vector<size_t>> after(ends.size());
    for (size_t i = 0; i < markers.size(); ++i) {
      const double wanted = depth_of(which, static_cast<int64_t>(i)) / 100 * static_cast<double>(ends.back());
      const auto nearest = std::min_element(ends.begin(), ends.end(), [&](int64_t a, int64_t b) {
        return std::abs(static_cast<double>(a) - wanted) < std::abs(static_cast<double>(b) - wanted);
      });
      after[static_cast<size_t>(nearest - ends.begin())].push_back(i);
    }
    std::string text;
    const auto add = [&](const std::string& piece, bool own_line) {
      if (!text.empty()) text += own_line || text.back() == '\n' ? "" : " ";
      if (own_line && !text.empty() && text.back() != '\n') text += '\n';
      text += piece;
      if (own_line) text += '\n';
    };
    for (size_t place = 0; place < ends.size(); ++place) {
      if (place > 0) add(kFiller[sentences[place - 1]], false);
      if (place + 1 == ends.size() && !rest.empty()) add(rest, false);
      for (const size_t marker : after[place]) add(markers[marker], true);
    }
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return text + "\n\n" + question(which, chat);
  }
};

std::span<const char* const> needle_filler() { return kFiller; }

std::vector<std::string> needle_keys(const NeedleCase& which) {
  Random random(mixed({kKeyDraw, which.seed, bits(which.length), bits(which.depth), bits(which.sample)}));
  std::vector<std::string> keys;
  while (static_cast<int64_t>(keys.size()) < which.markers) {
    const std::string key = std::to_string(10000 + random.below(90000));
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

NeedleText::NeedleText(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat, text::ChatRequest request)
    : tokenizer_(tokenizer), chat_(chat), request_(std::move(request)), costs_(std::size(kFiller), -1) {}

NeedleText::Encoded NeedleText::encode(const std::string& text) const {
  if (chat_ == nullptr) return {tokenizer_.encode(text, {.add_special = true, .parse_special = false})};
  text::ChatRequest request = request_;
  request.messages.push_back({.role = "user", .content = text});
  const text::ChatPrompt prompt = chat_->render(request);
  return {text::encode_marked(prompt.text, tokenizer_), prompt.starts_in_thinking};
}

int64_t NeedleText::cost(size_t sentence) {
  int64_t& cost = costs_[sentence];
  if (cost < 0)
    cost = static_cast<int64_t>(
        tokenizer_.encode(std::string(" ") + kFiller[sentence], {.add_special = false, .parse_special = false}).size());
  return cost;
}

bool NeedleText::fits(const Layout& layout, int64_t length, NeedlePrompt& prompt) const {
  prompt.text = layout.text(costs_);
  Encoded encoded = encode(prompt.text);
  prompt.tokens = std::move(encoded.tokens);
  prompt.starts_in_thinking = encoded.starts_in_thinking;
  return static_cast<int64_t>(prompt.tokens.size()) == length;
}

// The missing tokens come from the beginning of one more sentence: of whole words if possible. Where pieces meet the
// count is not the sum of its parts: what a try is off by corrects the next one.
void NeedleText::cut(Layout& layout, int64_t length, NeedlePrompt& prompt) {
  if (beginnings_.empty()) beginnings_ = beginnings();
  std::map<int64_t, std::vector<std::string>> pieces = beginnings_;  // by tokens, the best last
  size_t shortest = 0;
  for (size_t i = 0; i < std::size(kFiller); ++i)
    if (cost(i) < cost(shortest)) shortest = i;
  int64_t wanted = length - static_cast<int64_t>(prompt.tokens.size());
  for (size_t tries = 0; tries < kMostTries; ++tries) {
    if (wanted < 1) {  // the piece's own line takes what is missing
      if (layout.sentences.empty()) break;
      wanted += cost(layout.sentences.back());
      layout.sentences.pop_back();
    }
    std::vector<std::string>& fitting = pieces[wanted];
    if (fitting.empty()) {
      const bool long_enough = wanted > cost(shortest);
      if (long_enough) layout.sentences.push_back(shortest);
      wanted -= long_enough ? cost(shortest) : 1;
      continue;
    }
    // Among the first few by draw, so that not all texts end with the same words.
    const auto from_end = layout.draw.below(std::min<int64_t>(8, static_cast<int64_t>(fitting.size())));
    const auto chosen = fitting.end() - 1 - from_end;
    layout.rest = *chosen;
    fitting.erase(chosen);
    if (fits(layout, length, prompt)) return;
    wanted += length - static_cast<int64_t>(prompt.tokens.size());
  }
  throw Error(ErrorKind::Model, "no text of exactly " + std::to_string(length) +
                                    " tokens was found with this tokenizer: choose another length (--lengths)");
}

std::map<int64_t, std::vector<std::string>> NeedleText::beginnings() const {
  std::map<int64_t, std::vector<std::string>> whole_words, all;
  for (const std::string sentence : kFiller)
    for (size_t end = sentence.size(); end > 0; --end) {
      const std::string piece = sentence.substr(0, end);
      if (piece.back() == ' ') continue;
      const auto tokens =
          static_cast<int64_t>(tokenizer_.encode(" " + piece, {.add_special = false, .parse_special = false}).size());
      const bool cuts_word = end < sentence.size() && sentence[end] != ' ' && sentence[end] != '.';
      (cuts_word ? all : whole_words)[tokens].push_back(piece);
    }
  for (auto& [tokens, pieces] : whole_words) all[tokens].insert(all[tokens].end(), pieces.begin(), pieces.end());
  return all;
}

NeedlePrompt NeedleText::prompt(const NeedleCase& which) {
  NeedlePrompt prompt;
  prompt.keys = needle_keys(which);
  for (int64_t i = 0; i < which.markers; ++i)
    if (which.ask_all || i == which.asked) prompt.expected.push_back(prompt.keys[static_cast<size_t>(i)]);
  // Not of the depth: prompts of one text begin alike up to the marker.
  Layout layout{
      which, chat_ != nullptr, {}, Random(mixed({kFillerDraw, which.seed, bits(which.length), bits(which.sample)}))};
  for (int64_t i = 0; i < which.markers; ++i)
    layout.markers.push_back(marker_text(which, i, prompt.keys[static_cast<size_t>(i)]));

  if (fits(layout, which.length, prompt)) return prompt;
  int64_t left = which.length - static_cast<int64_t>(prompt.tokens.size());
  if (left < 0)
    throw Error(ErrorKind::Usage,
                "a prompt of " + std::to_string(which.length) + " tokens has no room for " +
                    std::to_string(which.markers) + " key" + (which.markers == 1 ? "" : "s") +
                    " and the question, which take " + std::to_string(prompt.tokens.size()),
                "--lengths");
  while (true) {
    const size_t sentence = layout.next();
    if (cost(sentence) > left) break;
    left -= cost(sentence);
    layout.sentences.push_back(sentence);
  }
  while (!fits(layout, which.length, prompt) && static_cast<int64_t>(prompt.tokens.size()) > which.length &&
         !layout.sentences.empty())
    layout.sentences.pop_back();
  if (static_cast<int64_t>(prompt.tokens.size()) != which.length) cut(layout, which.length, prompt);
  return prompt;
}

bool needle_found(std::string_view answer, const std::vector<std::string>& expected) {
  std::vector<std::string> numbers;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t at = 0; at < answer.size();) {
    size_t end = at;
    while (end < answer.size() && digit(answer[end])) ++end;
    const std::string number(answer.substr(at, end - at));
    if (number.size() >= 5 && std::find(numbers.begin(), numbers.end(), number) == numbers.end())
      numbers.push_back(number);
    at = end + 1;
  }
  return numbers == expected;
}

}  // namespace strata
