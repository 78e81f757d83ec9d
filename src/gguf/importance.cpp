#include "gguf/importance.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace strata::gguf {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

float float_at(const std::byte* data, uint64_t index) {
  float value;
  std::memcpy(&value, data + index * sizeof value, sizeof value);
  return value;
}

}  // namespace

Importance::Importance(const std::string& path) : file_(File::open(path)) {
  const auto& tensors = file_.tensors();
  if (std::none_of(tensors.begin(), tensors.end(), [](const TensorInfo& t) { return t.name.ends_with(kSums); }))
    throw Error(ErrorKind::Model, "holds no importance: tensors named NAME.in_sum2 and NAME.counts are expected", path);
}

const TensorInfo* Importance::real(const std::string& name) const {
  const TensorInfo* found = file_.find_tensor(name);
  if (found != nullptr && found->type != DType::F32)
    throw Error(ErrorKind::Model,
                "tensor " + printable(name) + " is " + std::string(to_string(found->type)) + ", not F32", file_.path());
  return found;
}

std::vector<float> Importance::of(const TensorInfo& tensor) const {
  const TensorInfo* sums = real(tensor.name + std::string(kSums));
  if (sums == nullptr) return {};
  const TensorInfo* counts = real(tensor.name + std::string(kCounts));
  const uint64_t columns = tensor.ne[0], matrices = tensor.ne[2] * tensor.ne[3];
  if (sums->ne[0] != columns || sums->elements() != columns * matrices ||
      (counts != nullptr && counts->elements() != matrices))
    throw Error(ErrorKind::Model,
                "importance of " + printable(tensor.name) + " does not fit: " + std::to_string(columns) +
                    " columns and " + std::to_string(matrices) + " matrices are expected",
                file_.path());
  file_.check_sizes();
  std::vector<float> result(columns * matrices);
  for (uint64_t m = 0; m < matrices; ++m) {
    const float count = counts == nullptr ? 1.f : float_at(file_.data(*counts), m);
    if (!(count > 0.f)) continue;
    for (uint64_t i = 0; i < columns; ++i)
      result[m * columns + i] = float_at(file_.data(*sums), m * columns + i) / count;
  }
  return result;
}

}  // namespace strata::gguf
