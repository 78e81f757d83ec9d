#include "base/buffer.h"

#include <sys/mman.h>

#include "base/error.h"

namespace strata {

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data_ != MAP_FAILED) return;
  data_ = nullptr;
  bytes_ = 0;
  throw Error(ErrorKind::Memory, "not enough memory for a buffer of " + std::to_string(bytes) + " bytes");
}

Buffer::~Buffer() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Tensor Buffer::tensor(DType dtype, std::initializer_list<int64_t> extents) const {
  const Tensor view = make_tensor(data_, dtype, extents);
  if (bytes_of(dtype, view.elements()) > bytes_)
    throw Error(ErrorKind::Argument,
                describe(view) + " does not fit in a buffer of " + std::to_string(bytes_) + " bytes");
  return view;
}

}  // namespace strata
