#include "runtime/embedding.h"

#include <cmath>
#include <string>

#include "base/error.h"

namespace strata {

std::optional<Pooling> file_pooling(const gguf::File& file) {
  const std::string arch = file.get_string("general.architecture").value_or("");
  const auto type = file.get_uint(arch + ".pooling_type", 0, 4);
  if (!type) return std::nullopt;
  if (*type == 4)
    throw Error(ErrorKind::Model, "the model ranks texts and gives no vectors: ask a model made for embeddings",
                arch + ".pooling_type");
  return static_cast<Pooling>(*type);
}

void Pooler::add(std::span<const float> rows) {
  for (const float value : rows)
    if (!std::isfinite(value))
      throw Error(ErrorKind::Model, "hidden states that are not finite: the model or an arm of an operator is broken");
  const size_t count = rows.size() / width_;
  if (count == 0) return;
  switch (pooling_) {
    case Pooling::None: held_.insert(held_.end(), rows.begin(), rows.end()); break;
    case Pooling::First:
      if (count_ == 0) held_.assign(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(width_));
      break;
    case Pooling::Last: held_.assign(rows.end() - static_cast<std::ptrdiff_t>(width_), rows.end()); break;
    case Pooling::Mean:
      sum_.resize(width_);
      for (size_t row = 0; row < count; ++row)
        for (size_t i = 0; i < width_; ++i) sum_[i] += rows[row * width_ + i];
      break;
  }
  count_ += count;
}

std::vector<float> Pooler::vector() const {
  if (pooling_ != Pooling::Mean || count_ == 0) return held_;
  std::vector<float> mean(width_);
  for (size_t i = 0; i < width_; ++i) mean[i] = static_cast<float>(sum_[i] / static_cast<double>(count_));
  return mean;
}

void normalise(std::span<float> vector) {
  double squares = 0;
  for (const float value : vector) squares += static_cast<double>(value) * value;
  if (squares == 0) return;
  const double scale = 1 / std::sqrt(squares);
  for (float& value : vector) value = static_cast<float>(value * scale);
}

}  // namespace strata
