// Files of logits: what a model said at every scored position of a text. Two forms: Strata's own with every bit of the
// f32 logits, and the 16-bit form that llama-perplexity writes (docs/measuring.md has both layouts).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/thread_pool.h"

namespace strata {

// A text in chunks of `context` tokens. The first half of a chunk is context; the logits of positions first() ..
// context - 2 are scored, each by the token that follows it.
struct ChunkLayout {
  int64_t context = 0;

  int64_t first() const { return context / 2; }
  int64_t scored() const { return context - 1 - first(); }  // of one chunk
};
inline constexpr int64_t kMinChunk = 3;  // the shortest that has a scored position

// What a file says before its logits.
struct LogitsHeader {
  ChunkLayout layout;
  int64_t vocabulary = 0;
  std::span<const int32_t> tokens;  // whole chunks, as the text has them: a BOS in the first place is not shown
  uint64_t model = 0;               // model_hash(); 0 in 16-bit files, which do not say
  std::string settings;             // lines of "name: value" that change bits; empty in 16-bit files

  int64_t chunks() const { return static_cast<int64_t>(tokens.size()) / layout.context; }
  int64_t planned_rows() const { return chunks() * layout.scored(); }
  // The token that follows the scored position `row`, counted through all chunks.
  int32_t target(int64_t row) const;
  int64_t chunk(int64_t row) const { return row / layout.scored(); }
  int64_t position(int64_t row) const { return layout.first() + row % layout.scored(); }  // in its chunk
};

enum class LogitsForm { Full, Codes };

// ln of the sum of e^logit, in float64; no finite number when a logit is none or +inf, or all are -inf.
double log_sum_exp(std::span<const float> logits);
// ln p of each token in float64. False, with `out` unspecified, when a logit is no number or +inf, or all are -inf.
[[nodiscard]] bool log_softmax(std::span<const float> logits, std::span<double> out);

// Mapped, so a file takes no memory of its own. Everything about its size is checked when it is opened.
class LogitsFile {
 public:
  // Error{File}; Error{Format} when it is neither form, damaged or cut short: says what is wrong.
  static LogitsFile open(const std::string& path);

  LogitsForm form() const { return form_; }
  const LogitsHeader& header() const { return header_; }
  int64_t rows() const { return rows_; }  // fewer than planned when the run was interrupted
  const std::string& path() const { return file_.path(); }
  std::span<const std::byte> bytes() const { return file_.bytes(); }

  std::span<const std::byte> row_bytes(int64_t row) const;
  std::span<const float> logits(int64_t row) const;  // Full only
  // ln p of every token. Error{Format} naming the position when the row holds no probabilities.
  void log_probabilities(int64_t row, std::span<double> out) const;
  // Codes stand for at most 16 nats below the top, so what lies below is unknown; -inf: everything is known.
  double known_above() const;

  void check_size() const;  // Error{File} when the file shrank since it was opened: reading it would raise SIGBUS

 private:
  void read_full();
  void read_codes();
  void check_tokens(std::span<const int32_t> tokens) const;
  [[noreturn]] void refuse(const std::string& message) const;

  MappedFile file_;
  LogitsForm form_ = LogitsForm::Full;
  LogitsHeader header_;
  uint64_t data_ = 0;  // offset of row 0
  uint64_t row_bytes_ = 0;
  int64_t rows_ = 0;
};

// Writes rows as they come; a file appears under its name when finish() returns.
class LogitsWriter {
 public:
  // Error{File}.
  LogitsWriter(const std::string& path, LogitsForm form, const LogitsHeader& header);

  LogitsForm form() const { return form_; }
  // logits: f32 [n, V] of the next n scored positions.
  void add(std::span<const float> logits, ThreadPool& pool);
  // The full form may end early. Error{Argument} when rows of the 16-bit form are missing.
  void finish();

 private:
  void put_header(const LogitsHeader& header);

  OutputFile file_;
  LogitsForm form_;
  int64_t vocabulary_;
  int64_t planned_, rows_ = 0;
  std::vector<uint16_t> codes_;  // of one add()
};

}  // namespace strata
