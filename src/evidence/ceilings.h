// What this machine can do at most, measured: the denominators of every share that a benchmark prints.
#pragma once

#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "base/thread_pool.h"

namespace strata {

// Which multiply-add peak the operations of a shape count against.
enum class OperationKind { F32, Bf16, Int8 };

// One measured limit; several instruction sets may offer the same one.
struct Ceiling {
  std::string name;  // "f32 multiply-add"
  std::string device_class;
  double per_second = 0;  // bytes, or additions and multiplications
  bool bytes = false;
};

struct Ceilings {
  std::vector<Ceiling> list;
  double copy_bytes = 0;               // read + written a second, by a copy past the caches
  double read_bytes = 0;               // by a sum past the caches
  double f32 = 0, bf16 = 0, int8 = 0;  // operations a second: the best instruction set's
  int threads = 0;

  double peak(OperationKind kind) const {
    return kind == OperationKind::F32 ? f32 : kind == OperationKind::Bf16 ? bf16 : int8;
  }
  double bandwidth() const { return copy_bytes > read_bytes ? copy_bytes : read_bytes; }
};

// Takes about a second; `cpu` limits the instruction sets.
Ceilings measure_ceilings(ThreadPool& pool, const CpuFeatures& cpu);

}  // namespace strata
