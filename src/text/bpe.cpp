#include "text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>

#include "base/error.h"
#include "base/hash.h"
#include "text/unicode.h"

namespace strata::text {

namespace {

constexpr size_t kAlphabetSize = 0x144;  // the last of the 68 moved bytes is U+0143

constexpr std::array<int16_t, kAlphabetSize> kByteOfCode = [] {
  std::array<int16_t, kAlphabetSize> table{};
  for (auto& entry : table) entry = -1;
  int moved = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool kept = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    table[static_cast<size_t>(kept ? byte : moved++)] = static_cast<int16_t>(byte);
  }
  return table;
}();

}  // namespace

std::optional<std::string> bytes_of_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const Utf8Result c = decode_utf8(text);
    if (c.kind != Utf8Kind::Complete || c.code >= kAlphabetSize || kByteOfCode[c.code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kByteOfCode[c.code]));
    text.remove_prefix(c.length);
  }
  return bytes;
}

size_t Bpe::KeyedHash::operator()(std::string_view text) const { return hash64(text.data(), text.size(), key); }

Bpe::Bpe(std::span<const std::string> tokens, std::span<const std::string> merges, bool ignore_merges)
    : key_((uint64_t{std::random_device{}()} << 32) | std::random_device{}()),
      token_count_(static_cast<int32_t>(tokens.size())),
      ignore_merges_(ignore_merges),
      symbols_(tokens.size() + 256, KeyedHash{key_}) {
  for (int32_t id = 0; id < token_count_; ++id) {
    if (!tokens[id].empty()) symbols_.emplace(tokens[id], id);
  }
  for (int byte = 0; byte < 256; ++byte) byte_symbol_[byte] = intern(std::string(1, static_cast<char>(byte)));
  slots_.resize(std::bit_ceil(merges.size() * 2 + 1));
  merges_.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) add_merge(merges[i], i);
  if (!ignore_merges_) symbols_ = SymbolMap(0, KeyedHash{key_});
}

// The number of a string: its token, or a number above all tokens.
int32_t Bpe::intern(std::string bytes) {
  const auto fresh = static_cast<int32_t>(token_count_ + symbols_.size());
  return symbols_.try_emplace(std::move(bytes), fresh).first->second;
}

void Bpe::add_merge(std::string_view text, size_t index) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == text.size()) {
    throw Error(ErrorKind::Model, fmt::format("entry {} is not 'left right'", index), "tokenizer.ggml.merges");
  }
  const auto left = bytes_of_alphabet(text.substr(0, space));
  const auto right = bytes_of_alphabet(text.substr(space + 1));
  if (!left || !right) return;
  Merge merge;
  merge.left = intern(*left);
  merge.right = intern(*right);
  const size_t slot = slot_of(merge.left, merge.right);
  if (slots_[slot] != 0) return;  // the first of equal pairs has the lowest rank
  merge.result = intern(*left + *right);
  merges_.push_back(merge);
  slots_[slot] = static_cast<uint32_t>(merges_.size());
}

// The slot that holds the pair, or the empty one where it would be.
size_t Bpe::slot_of(int32_t left, int32_t right) const {
  uint64_t h = ((uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right)) ^ key_;
  h = (h ^ (h >> 32)) * 0x9E3779B97F4A7C15u;
  h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9u;
  const size_t mask = slots_.size() - 1;
  size_t slot = (h ^ (h >> 32)) & mask;
  while (slots_[slot] != 0) {
    const Merge& merge = merges_[slots_[slot] - 1];
    if (merge.left == left && merge.right == right) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

// Queues the pair that begins at `position`, if it can be merged. An entry is rank << 32 | position: the smallest is
// the lowest rank, leftmost.
void Bpe::push(Workspace& w, int32_t position) const {
  const auto end = static_cast<int32_t>(w.symbol.size());
  const int32_t next = w.next[position];
  if (next == end) return;
  const uint32_t rank = slots_[slot_of(w.symbol[position], w.symbol[next])];
  if (rank == 0) return;
  w.queue.push_back((uint64_t{rank - 1} << 32) | static_cast<uint32_t>(position));
}

// A symbol lives at the position of its first byte. Entries whose pair has changed since are skipped.
void Bpe::merge_all(std::string_view piece, Workspace& w) const {
  const auto size = static_cast<int32_t>(piece.size());
  w.symbol.resize(piece.size());
  w.previous.resize(piece.size());
  w.next.resize(piece.size());
  w.queue.clear();
  for (int32_t i = 0; i < size; ++i) {
    w.symbol[i] = byte_symbol_[static_cast<uint8_t>(piece[i])];
    w.previous[i] = i - 1;
    w.next[i] = i + 1;
  }
  for (int32_t i = 0; i < size; ++i) push(w, i);
  constexpr std::greater<uint64_t> kLowestFirst;
  std::make_heap(w.queue.begin(), w.queue.end(), kLowestFirst);
  const auto push_ordered = [&](int32_t position) {
    const size_t before = w.queue.size();
    push(w, position);
    if (w.queue.size() > before) std::push_heap(w.queue.begin(), w.queue.end(), kLowestFirst);
  };
  while (!w.queue.empty()) {
    std::pop_heap(w.queue.begin(), w.queue.end(), kLowestFirst);
    const uint64_t entry = w.queue.back();
    w.queue.pop_back();
    const Merge& merge = merges_[entry >> 32];
    const auto left = static_cast<int32_t>(entry & 0xFFFFFFFF);
    const int32_t right = w.next[left];
    if (w.symbol[left] != merge.left || right == size || w.symbol[right] != merge.right) continue;
    w.symbol[left] = merge.result;
    w.symbol[right] = -1;
    w.next[left] = w.next[right];
    if (w.next[left] < size) w.previous[w.next[left]] = left;
    if (w.previous[left] >= 0) push_ordered(w.previous[left]);
    push_ordered(left);
  }
}

void Bpe::encode(std::string_view piece, Workspace& w, std::vector<int32_t>& ids) const {
  if (piece.empty()) return;
  if (ignore_merges_) {
    const auto whole = symbols_.find(piece);
    if (whole != symbols_.end() && whole->second < token_count_) return ids.push_back(whole->second);
  }
  merge_all(piece, w);
  const auto size = static_cast<int32_t>(piece.size());
  for (int32_t i = 0; i < size; i = w.next[i]) {
    if (w.symbol[i] < token_count_) {
      ids.push_back(w.symbol[i]);
      continue;
    }
    for (int32_t k = i; k < w.next[i]; ++k) {
      const int32_t symbol = byte_symbol_[static_cast<uint8_t>(piece[k])];
      if (symbol < token_count_) ids.push_back(symbol);
    }
  }
}

}  // namespace strata::text
