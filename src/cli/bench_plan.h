// What strata bench -m runs, from its settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"
#include "measure/bench_record.h"
#include "measure/model_bench.h"

namespace strata::cli {

// One load of a model and the tests to run on it.
struct BenchGroup {
  std::string model, cpu_mask{};
  int64_t threads = 0;
  BenchModel description;
  std::vector<ModelTest> tests{};
  std::vector<int64_t> depths{};  // of a sweep, of which each test is a point
};

// The product of all lists, what shares a load together. Error{Usage, Model, Memory, File} for what cannot run; no
// weight is read. Leaves the last model in the setting `model`.
std::vector<BenchGroup> plan_model_bench(Settings& settings);

}  // namespace strata::cli
