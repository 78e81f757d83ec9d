#include "measure/logits_file.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/error.h"

namespace strata {
namespace {

constexpr std::string_view kFullMagic = "STRLOGIT";
constexpr std::string_view kFullEnd = "ENDLOGIT";
constexpr std::string_view kCodesMagic = "_logits_";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kFullFixed = 40;    // bytes before the settings
constexpr uint64_t kFullTrailer = 16;  // kFullEnd and the number of rows
constexpr uint64_t kCodesFixed = 20;
constexpr uint64_t kAlignment = 64;  // of the first row of the full form
constexpr uint64_t kMaxSettings = 65536;
constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();
constexpr float kCodedNats = 16;  // below the top
constexpr float kCodes = 65535;
constexpr int64_t kScaleWords = 4;  // 16-bit words of a row before its codes: scale and lowest value

uint64_t aligned(uint64_t offset, uint64_t alignment) { return (offset + alignment - 1) / alignment * alignment; }

int64_t code_words(int64_t vocabulary) { return (vocabulary + 1) / 2 * 2 + kScaleWords; }

template <class T>
T value_at(std::span<const std::byte> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

// One row of codes: the lowest value and a scale, then steps of the scale above it.
bool encode(std::span<const float> logits, uint16_t* out) {
  const double sum = log_sum_exp(logits);
  if (!std::isfinite(sum)) return false;
  const float top = *std::max_element(logits.begin(), logits.end());
  const float low = std::max(*std::min_element(logits.begin(), logits.end()), top - kCodedNats);
  const float head[2] = {(top - low) / kCodes, static_cast<float>(low - sum)};
  std::memcpy(out, head, sizeof head);
  out += kScaleWords;
  std::fill(out, out + code_words(static_cast<int64_t>(logits.size())) - kScaleWords, uint16_t{0});
  if (head[0] == 0) return true;
  const float steps = 1 / head[0];
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > low)
      out[i] = static_cast<uint16_t>(std::clamp(std::nearbyint(steps * (logits[i] - low)), 0.f, kCodes));
  return true;
}

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) total += std::exp(logit - top);
  return top + std::log(total);
}

bool log_softmax(std::span<const float> logits, std::span<double> out) {
  const double sum = log_sum_exp(logits);
  if (!std::isfinite(sum)) return false;
  for (size_t i = 0; i < logits.size(); ++i) out[i] = logits[i] - sum;
  return true;
}

int32_t LogitsHeader::target(int64_t row) const {
  return tokens[static_cast<size_t>(chunk(row) * layout.context + position(row) + 1)];
}

LogitsFile LogitsFile::open(const std::string& path) {
  LogitsFile result;
  result.file_ = MappedFile(path);
  if (begins_with(result.bytes(), kFullMagic))
    result.read_full();
  else if (begins_with(result.bytes(), kCodesMagic))
    result.read_codes();
  else
    result.refuse("is no file of logits: it begins with neither " + std::string(kFullMagic) + " nor " +
                  std::string(kCodesMagic));
  return result;
}

void LogitsFile::refuse(const std::string& message) const { throw Error(ErrorKind::Format, message, path()); }

void LogitsFile::check_tokens(std::span<const int32_t> tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= header_.vocabulary)
      refuse("token " + std::to_string(i) + " is " + std::to_string(tokens[i]) + ", outside the vocabulary of " +
             std::to_string(header_.vocabulary));
}

namespace {

struct Extents {
  uint64_t context, vocabulary, chunks;
};

// Empty when the extents can be; rows and bytes of tokens are then below 2^62.
std::string check_extents(const Extents& extents, uint64_t& tokens, uint64_t& rows) {
  if (extents.context < kMinChunk || extents.context > kMaxExtent)
    return "a chunk of " + std::to_string(extents.context) + " tokens is not possible";
  if (extents.vocabulary < 1 || extents.vocabulary > kMaxExtent)
    return "a vocabulary of " + std::to_string(extents.vocabulary) + " tokens is not possible";
  if (extents.chunks < 1 || extents.chunks > kMaxExtent)
    return std::to_string(extents.chunks) + " chunks are not possible";
  tokens = extents.context * extents.chunks;  // each below 2^31
  rows = extents.chunks * static_cast<uint64_t>(ChunkLayout{static_cast<int64_t>(extents.context)}.scored());
  return {};
}

std::string wrong_size(uint64_t has, uint64_t wants) {
  return "has " + std::to_string(has) + " bytes where its header asks for " + std::to_string(wants) +
         (has < wants ? ": cut short?" : "");
}

}  // namespace

void LogitsFile::read_full() {
  const auto all = bytes();
  if (all.size() < kFullFixed + kFullTrailer) refuse("is cut short: it ends in its header");
  if (const auto version = value_at<uint32_t>(all, 8); version != kVersion)
    refuse("has version " + std::to_string(version) + "; this program reads version " + std::to_string(kVersion));
  const Extents extents{value_at<uint32_t>(all, 12), value_at<uint32_t>(all, 16), value_at<uint32_t>(all, 20)};
  header_.model = value_at<uint64_t>(all, 24);
  const uint64_t settings = value_at<uint32_t>(all, 32);
  uint64_t tokens = 0, planned = 0;
  if (const std::string wrong = check_extents(extents, tokens, planned); !wrong.empty()) refuse(wrong);
  if (settings > kMaxSettings || kFullFixed + settings > all.size()) refuse("its settings are longer than allowed");
  const uint64_t tokens_at = aligned(kFullFixed + settings, 8);
  data_ = aligned(tokens_at + tokens * sizeof(int32_t), kAlignment);
  if (data_ > all.size() - kFullTrailer) refuse(wrong_size(all.size(), data_ + kFullTrailer));
  row_bytes_ = extents.vocabulary * sizeof(float);

  const auto trailer = all.subspan(all.size() - kFullTrailer);
  if (!begins_with(trailer, kFullEnd)) refuse("is cut short: its end mark is missing");
  const auto rows = value_at<uint64_t>(trailer, 8);
  uint64_t size = 0;
  if (rows > planned || !checked_mul(rows, row_bytes_, size) || !checked_add(size, data_ + kFullTrailer, size))
    refuse("says it holds " + std::to_string(rows) + " of " + std::to_string(planned) + " positions");
  if (size != all.size()) refuse(wrong_size(all.size(), size));

  form_ = LogitsForm::Full;
  rows_ = static_cast<int64_t>(rows);
  header_.settings.assign(reinterpret_cast<const char*>(all.data()) + kFullFixed, settings);
  header_.layout.context = static_cast<int64_t>(extents.context);
  header_.vocabulary = static_cast<int64_t>(extents.vocabulary);
  header_.tokens = {reinterpret_cast<const int32_t*>(all.data() + tokens_at), tokens};
  check_tokens(header_.tokens);
}

void LogitsFile::read_codes() {
  const auto all = bytes();
  if (all.size() < kCodesFixed) refuse("is cut short: it ends in its header");
  const auto vocabulary = value_at<int32_t>(all, 12), chunks = value_at<int32_t>(all, 16);
  const Extents extents{value_at<uint32_t>(all, 8), static_cast<uint64_t>(std::max(vocabulary, 0)),
                        static_cast<uint64_t>(std::max(chunks, 0))};
  uint64_t tokens = 0, rows = 0, size = 0;
  if (const std::string wrong = check_extents(extents, tokens, rows); !wrong.empty()) refuse(wrong);
  data_ = kCodesFixed + tokens * sizeof(int32_t);
  row_bytes_ = static_cast<uint64_t>(code_words(vocabulary)) * sizeof(uint16_t);
  if (!checked_mul(rows, row_bytes_, size) || !checked_add(size, data_, size)) refuse("its header asks for too much");
  if (size != all.size()) refuse(wrong_size(all.size(), size));

  form_ = LogitsForm::Codes;
  rows_ = static_cast<int64_t>(rows);
  header_.layout.context = static_cast<int64_t>(extents.context);
  header_.vocabulary = vocabulary;
  header_.tokens = {reinterpret_cast<const int32_t*>(all.data() + kCodesFixed), tokens};
  check_tokens(header_.tokens);
}

std::span<const std::byte> LogitsFile::row_bytes(int64_t row) const {
  return bytes().subspan(data_ + static_cast<uint64_t>(row) * row_bytes_, row_bytes_);
}

std::span<const float> LogitsFile::logits(int64_t row) const {
  return {reinterpret_cast<const float*>(row_bytes(row).data()), static_cast<size_t>(header_.vocabulary)};
}

void LogitsFile::log_probabilities(int64_t row, std::span<double> out) const {
  bool valid = true;
  if (form_ == LogitsForm::Full) {
    valid = log_softmax(logits(row), out);
  } else {
    const auto words = row_bytes(row);
    const double scale = value_at<float>(words, 0), low = value_at<float>(words, sizeof(float));
    valid = std::isfinite(scale) && scale >= 0 && std::isfinite(low);
    const auto* codes = reinterpret_cast<const uint16_t*>(words.data()) + kScaleWords;
    for (size_t i = 0; i < out.size(); ++i) out[i] = scale * codes[i] + low;
  }
  if (!valid)
    refuse("chunk " + std::to_string(header_.chunk(row) + 1) + ", position " + std::to_string(header_.position(row)) +
           ": holds no probabilities (not a number, or infinite)");
}

double LogitsFile::known_above() const {
  return form_ == LogitsForm::Codes ? -static_cast<double>(kCodedNats) : -std::numeric_limits<double>::infinity();
}

void LogitsFile::check_size() const {
  if (file_.size_on_disk() < file_.size()) throw Error(ErrorKind::File, "became shorter while it was read", path());
}

LogitsWriter::LogitsWriter(const std::string& path, LogitsForm form, const LogitsHeader& header)
    : file_(path), form_(form), vocabulary_(header.vocabulary), planned_(header.planned_rows()) {
  if (header.vocabulary < 1 || header.vocabulary > kMaxExtent || header.layout.context < kMinChunk ||
      header.layout.context > kMaxExtent || header.chunks() < 1 || header.chunks() > kMaxExtent ||
      header.settings.size() > kMaxSettings)
    throw Error(ErrorKind::Argument, "these logits cannot be written to a file", path);
  put_header(header);
}

void LogitsWriter::put_header(const LogitsHeader& header) {
  const auto put = [this](auto value) { file_.write(&value, sizeof value); };
  const auto context = static_cast<uint32_t>(header.layout.context);
  const auto vocabulary = static_cast<uint32_t>(header.vocabulary), chunks = static_cast<uint32_t>(header.chunks());
  const bool full = form_ == LogitsForm::Full;
  file_.write((full ? kFullMagic : kCodesMagic).data(), kFullMagic.size());
  if (full) put(kVersion);
  put(context);
  put(vocabulary);
  put(chunks);
  if (full) {
    put(header.model);
    put(static_cast<uint32_t>(header.settings.size()));
    put(uint32_t{0});
    file_.write(header.settings.data(), header.settings.size());
    file_.pad_to(8);
  }
  file_.write(header.tokens.data(), static_cast<size_t>(header.chunks() * header.layout.context) * sizeof(int32_t));
  if (full) file_.pad_to(kAlignment);
}

void LogitsWriter::add(std::span<const float> logits, ThreadPool& pool) {
  const int64_t rows = static_cast<int64_t>(logits.size()) / vocabulary_;
  rows_ += rows;
  if (rows_ > planned_) throw Error(ErrorKind::Argument, "more positions than the text has");
  if (form_ == LogitsForm::Full) return file_.write(logits.data(), logits.size_bytes());
  const int64_t words = code_words(vocabulary_);
  codes_.resize(static_cast<size_t>(rows * words));
  std::atomic<bool> valid{true};
  pool.run(rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const auto one = logits.subspan(static_cast<size_t>(row * vocabulary_), static_cast<size_t>(vocabulary_));
      if (!encode(one, codes_.data() + row * words)) valid = false;
    }
  });
  if (!valid) throw Error(ErrorKind::Model, "the logits hold no probabilities (not a number, or infinite)");
  file_.write(codes_.data(), codes_.size() * sizeof(uint16_t));
}

void LogitsWriter::finish() {
  if (form_ == LogitsForm::Full) {
    const auto rows = static_cast<uint64_t>(rows_);
    file_.write(kFullEnd.data(), kFullEnd.size());
    file_.write(&rows, sizeof rows);
  } else if (rows_ != planned_) {
    throw Error(ErrorKind::Argument, "a 16-bit file holds all positions of its text or does not exist");
  }
  file_.commit();
}

}  // namespace strata
