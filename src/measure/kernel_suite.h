// Products with weights over formats and numbers of rows, with the arms that run by default, against what the machine
// can do: a table with the shares that were aimed at, and a roofline plot.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "evidence/bench.h"

namespace strata {

struct SuiteRow {
  DType type = DType::F32;
  int64_t rows = 0;
  double bytes = 0, operations = 0;  // of a call: at least read and written; 2 a multiply-add
  BenchResult result;
  // The mean of right before and right after, so that a machine that changes its pace does not show as a good or a bad
  // share.
  double read_bytes = 0, peak = 0;  // a second
  bool memory_bound = false;
  double share = 0;                                        // of the least possible time, by these two
  std::optional<double> target = {};                       // the share that is aimed at
  double intensity() const { return operations / bytes; }  // operations a byte
};

struct KernelSuite {
  Ceilings ceilings;  // medians of what was measured before and after every row
  std::vector<SuiteRow> rows;
};

// Weights of 2048 columns, of as many copies that they come from memory. `done` is called after each row, and a row
// that was begun is finished when `options.cancelled` says so. `types`: parts of names of formats; none: all.
KernelSuite run_kernel_suite(const BenchOptions& options, const std::vector<std::string>& types,
                             const std::function<void(const SuiteRow&)>& done);

std::string suite_head();  // of a markdown table
std::string suite_line(const SuiteRow& row);
std::string suite_json(const KernelSuite& suite);
std::string suite_csv(const KernelSuite& suite);
// Operations a second over operations a byte, a line for each format, under the roofs.
std::string roofline_svg(const KernelSuite& suite);

}  // namespace strata
