// The processors that this thread, and threads it starts from then on, may run on.
#pragma once

#include <memory>
#include <string>

namespace strata {

class CpuMask {
 public:
  // "0xff" or "ff": a bit for each processor; 0: all that are allowed now. Error{Usage} for other texts and masks
  // without a processor of this machine. The mask holds until the end of this object's life.
  explicit CpuMask(const std::string& mask);
  ~CpuMask();
  CpuMask(const CpuMask&) = delete;
  CpuMask& operator=(const CpuMask&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;  // null: nothing was changed
};

}  // namespace strata
