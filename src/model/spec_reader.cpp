#include "model/spec_reader.h"

#include <cmath>

#include "base/error.h"

namespace strata {

void SpecReader::fail(const std::string& suffix, const std::string& message) const {
  throw Error(ErrorKind::Model, key(suffix) + " " + message, file_.path());
}

int SpecReader::integer(const std::string& suffix, int64_t min, int64_t max) const {
  const auto value = file_.get_uint(key(suffix), static_cast<uint64_t>(min), static_cast<uint64_t>(max));
  if (!value) fail(suffix, "is missing");
  return static_cast<int>(*value);
}

int SpecReader::integer_or(const std::string& suffix, int64_t min, int64_t max, int fallback) const {
  return has(suffix) ? integer(suffix, min, max) : fallback;
}

double SpecReader::real(const std::string& suffix, double min, double max) const {
  const auto value = file_.get_real(key(suffix));
  if (!value) fail(suffix, "is missing");
  if (!(*value >= min && *value <= max))
    fail(suffix,
         "is " + std::to_string(*value) + ", must be within " + std::to_string(min) + " and " + std::to_string(max));
  return *value;
}

double SpecReader::real_or(const std::string& suffix, double min, double max, double fallback) const {
  return has(suffix) ? real(suffix, min, max) : fallback;
}

std::vector<int> SpecReader::per_block(const std::string& suffix, int blocks, int64_t min, int64_t max) const {
  const auto values = file_.get_uints(key(suffix), static_cast<uint64_t>(min), static_cast<uint64_t>(max));
  if (!values) fail(suffix, "is missing");
  const gguf::Value* raw = file_.find(key(suffix));
  const auto count = static_cast<size_t>(blocks);
  if (raw->type != gguf::ValueType::Array) return std::vector<int>(count, static_cast<int>(values->front()));
  if (values->size() != count)
    fail(suffix, "has " + std::to_string(values->size()) + " entries, needs one for each of " + std::to_string(blocks) +
                     " blocks");
  return {values->begin(), values->end()};
}

std::vector<int> SpecReader::per_block_or(const std::string& suffix, int blocks, int64_t min, int64_t max,
                                          int fallback) const {
  if (!has(suffix)) return std::vector<int>(static_cast<size_t>(blocks), fallback);
  return per_block(suffix, blocks, min, max);
}

int SpecReader::shared(const std::string& suffix, int blocks, int64_t max) const {
  int found = 0;
  for (const int value : per_block(suffix, blocks, 0, max)) {
    if (value != 0 && found != 0 && value != found)
      fail(suffix, "is " + std::to_string(found) + " in one block and " + std::to_string(value) +
                       " in another; this build needs one value for all");
    if (value != 0) found = value;
  }
  if (found == 0) fail(suffix, "is 0, must be within 1 and " + std::to_string(max));
  return found;
}

std::vector<uint64_t> SpecReader::numbers(const std::string& suffix, size_t count, uint64_t min, uint64_t max) const {
  const auto values = file_.get_uints(key(suffix), min, max);
  if (!values) fail(suffix, "is missing");
  if (values->size() != count)
    fail(suffix, "has " + std::to_string(values->size()) + " entries, needs " + std::to_string(count));
  return *values;
}

}  // namespace strata
