#include "model/binder.h"

#include <cstring>

#include "base/error.h"
#include "gguf/quant.h"

namespace strata {
namespace {

// Extents outermost first without axes of 1, so that [1, n], [n, 1] and [n] are one shape.
std::vector<int64_t> squeezed(const std::vector<int64_t>& extents) {
  std::vector<int64_t> result;
  for (int64_t extent : extents)
    if (extent != 1) result.push_back(extent);
  return result;
}

std::string shape_text(const std::vector<int64_t>& extents) {
  std::string text = "[";
  for (size_t axis = 0; axis < extents.size(); ++axis) text += (axis == 0 ? "" : ", ") + std::to_string(extents[axis]);
  return text + "]";
}

int64_t product(const std::vector<int64_t>& extents) {
  int64_t result = 1;
  for (int64_t extent : extents) result *= extent;
  return result;
}

// A one-dimensional tensor may stand for a matrix of small vectors (norms of hyper-connections), and the reverse.
bool same_layout(const std::vector<int64_t>& found, const std::vector<int64_t>& wanted) {
  const auto a = squeezed(found), b = squeezed(wanted);
  return a == b || ((a.size() == 1 || b.size() == 1) && product(a) == product(b));
}

}  // namespace

void Binder::fail(const std::string& name, const std::string& message) const {
  throw Error(ErrorKind::Model, "tensor " + prefix_ + name + " " + message, file_.path());
}

Tensor Binder::tensor(const std::string& name, std::initializer_list<int64_t> extents) const {
  const gguf::TensorInfo* info_found = file_.find_tensor(prefix_ + name);
  if (info_found == nullptr) fail(name, "is missing");
  std::vector<int64_t> found;
  for (uint32_t axis = info_found->dims; axis-- > 0;) found.push_back(static_cast<int64_t>(info_found->ne[axis]));
  const std::vector<int64_t> wanted(extents);
  if (!same_layout(found, wanted))
    fail(name, "has shape " + shape_text(found) + ", the model needs " + shape_text(wanted));
  const int64_t last = wanted.back();
  if (last % info(info_found->type).block_elements != 0)
    fail(name,
         "has rows of " + std::to_string(last) + ", no whole blocks of " + std::string(to_string(info_found->type)));
  // The file is mapped read-only: nothing writes through a weight tensor.
  return make_tensor(const_cast<std::byte*>(file_.data(*info_found)), info_found->type, extents);
}

Tensor Binder::f32(const std::string& name, std::initializer_list<int64_t> extents) {
  const Tensor found = tensor(name, extents);
  const bool aligned = reinterpret_cast<uintptr_t>(found.data) % alignof(float) == 0;
  if (found.dtype == DType::F32 && aligned) return found;
  owned_.emplace_back(static_cast<size_t>(found.elements()) * sizeof(float));
  const Tensor copy = owned_.back().f32(extents);
  gguf::decoder(found.dtype)(found.data, copy.f32(), found.elements());
  return copy;
}

Tensor Binder::f32_if(const std::string& name, std::initializer_list<int64_t> extents) {
  return has(name) ? f32(name, extents) : Tensor{};
}

Linear Binder::linear(const std::string& name, int64_t out, int64_t in) {
  Linear map;
  map.out = out;
  const gguf::TensorInfo* info_found = file_.find_tensor(prefix_ + name + ".weight");
  const bool misaligned = info_found != nullptr && info_found->type == DType::F32 &&
                          reinterpret_cast<uintptr_t>(file_.data(*info_found)) % alignof(float) != 0;
  map.parts.push_back({misaligned ? f32(name + ".weight", {out, in}) : tensor(name + ".weight", {out, in}), 0});
  map.bias = f32_if(name + ".bias", {out});
  if (has(name + ".scale")) map.scale = f32(name + ".scale", {1}).f32()[0];
  return map;
}

Linear::Part rows_of(const Tensor& weight, int64_t first, int64_t count, int64_t column) {
  return {weight.slice(first, count), column};
}

}  // namespace strata
