#include "evidence/arm.h"
#include "ops/store_rows/parity.h"
#include "ops/store_rows/store_rows.h"

namespace strata {

void store_rows_portable(Queue& queue, const StoreRowsArgs& args);  // cpu.cpp
void store_rows_device(Queue& queue, const StoreRowsArgs& args);    // device.cpp
extern const KernelImage kernel_image_store_rows;

namespace {

constexpr Arm<StoreRowsArgs> kArms[] = {
    {"thread", always_runs<StoreRowsArgs>, store_rows_device, true, false, CpuIsa::Portable, &kernel_image_store_rows},
    {"portable", always_runs<StoreRowsArgs>, store_rows_portable},
};

bool takes(DType type) {
  switch (type) {
    case DType::F32:
    case DType::F16:
    case DType::BF16:
    case DType::Q8_0:
    case DType::Q4_0: return true;
    default: return false;
  }
}

}  // namespace

void store_rows(Queue& queue, const StoreRowsArgs& args) {
  const DType type = args.rows.dtype;
  if (type != DType::F32 && type != DType::I32)
    argument_error("store_rows", "rows are f32 or i32, not " + describe(args.rows));
  check_tensor("store_rows", "rows", args.rows, type, {-1, -1});
  const int64_t rows = args.rows.extent(0), width = args.rows.extent(1);
  check_shape("store_rows", "to", args.to, {-1, width});
  if (type == DType::I32 ? args.to.dtype != DType::I32 : !takes(args.to.dtype))
    argument_error("store_rows", std::string(to_string(type)) + " rows cannot be stored as " + describe(args.to));
  if (const auto block = static_cast<int64_t>(info(args.to.dtype).block_elements); width % block != 0)
    argument_error("store_rows", "rows of " + std::to_string(width) + " values are no whole blocks of " +
                                     std::string(to_string(args.to.dtype)));
  if (args.first < 0 || args.first > args.to.extent(0) - rows)
    argument_error("store_rows", std::to_string(rows) + " rows from " + std::to_string(args.first) +
                                     " on do not fit into " + describe(args.to));
  if (args.pages.page != nullptr && args.pages.rows < 1) argument_error("store_rows", "pages have at least one row");
  if (rows == 0 || width == 0) return;
  choose_arm<StoreRowsArgs>(queue, "store_rows", kArms, args).run(queue, args);
}

std::span<const Arm<StoreRowsArgs>> store_rows_arms() { return kArms; }

}  // namespace strata
