// Bounded access to the metadata of one architecture: every value has a range, every error names its key.
#pragma once

#include <string>
#include <vector>

#include "gguf/gguf.h"

namespace strata {

class SpecReader {
 public:
  SpecReader(const gguf::File& file, std::string arch) : file_(file), arch_(std::move(arch)) {}

  const gguf::File& file() const { return file_; }
  const std::string& arch() const { return arch_; }
  std::string key(const std::string& suffix) const { return arch_ + "." + suffix; }

  int integer(const std::string& suffix, int64_t min, int64_t max) const;  // required
  int integer_or(const std::string& suffix, int64_t min, int64_t max, int fallback) const;
  double real(const std::string& suffix, double min, double max) const;
  double real_or(const std::string& suffix, double min, double max, double fallback) const;
  // One value per block: the key holds one for all, or an array of `blocks`.
  std::vector<int> per_block(const std::string& suffix, int blocks, int64_t min, int64_t max) const;
  std::vector<int> per_block_or(const std::string& suffix, int blocks, int64_t min, int64_t max, int fallback) const;
  // Required, one value for all blocks: the key holds it, or an array in which all blocks that have one (not 0) agree.
  int shared(const std::string& suffix, int blocks, int64_t max) const;
  std::vector<uint64_t> numbers(const std::string& suffix, size_t count, uint64_t min, uint64_t max) const;
  bool has(const std::string& suffix) const { return file_.find(key(suffix)) != nullptr; }

  [[noreturn]] void fail(const std::string& suffix, const std::string& message) const;

 private:
  const gguf::File& file_;
  std::string arch_;
};

}  // namespace strata
