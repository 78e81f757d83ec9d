#include "ops/qsa_pool/parity.h"

namespace strata {

void qsa_pool_portable(Queue& queue, const QsaPoolArgs& args);  // cpu.cpp

std::string qsa_pool_device_refusal(const QsaPoolArgs& args);  // device.cpp
void qsa_pool_device(Queue& queue, const QsaPoolArgs& args);   // device.cpp
extern const KernelImage kernel_image_qsa_pool;

namespace {
constexpr Arm<QsaPoolArgs> kArms[] = {
    {"block", qsa_pool_device_refusal, qsa_pool_device, true, false, CpuIsa::Portable, &kernel_image_qsa_pool},
    {"portable", always_runs<QsaPoolArgs>, qsa_pool_portable}};
}

std::span<const Arm<QsaPoolArgs>> qsa_pool_arms() { return kArms; }

void qsa_pool(Queue& queue, const QsaPoolArgs& args) {
  check_tensor("qsa_pool", "raw", args.raw, DType::F32, {-1, -1});
  const int64_t d = args.raw.extent(1);
  check_tensor("qsa_pool", "tail", args.tail, DType::F32, {-1, d});
  check_tensor("qsa_pool", "weight", args.weight, DType::F32, {d});
  const DType stored = args.pooled.dtype;
  check_tensor("qsa_pool", "pooled", args.pooled, stored == DType::BF16 || stored == DType::F16 ? stored : DType::F32,
               {-1, d});
  const int64_t ratio = args.tail.extent(0);
  if (!(args.eps > 0)) argument_error("qsa_pool", "eps must be positive");
  if (ratio < 1) argument_error("qsa_pool", "the ratio must be at least 1");
  if (args.rope == nullptr || args.rope->rotary_dims() > d)
    argument_error("qsa_pool", "rotary dims must not exceed the index head dim " + std::to_string(d));
  if (args.first < 0) argument_error("qsa_pool", "positions begin at " + std::to_string(args.first));
  if (args.first_block < 0 || args.first_block > args.first / ratio)
    argument_error("qsa_pool", "row 0 of pooled is block " + std::to_string(args.first_block) + ", position " +
                                   std::to_string(args.first) + " is in an earlier one");
  if ((args.first + args.raw.extent(0)) / ratio - args.first_block > args.pooled.extent(0))
    argument_error("qsa_pool", "positions " + std::to_string(args.first) + " .. " +
                                   std::to_string(args.first + args.raw.extent(0) - 1) + " complete more blocks than " +
                                   std::to_string(args.pooled.extent(0)));
  choose_arm<QsaPoolArgs>(queue, "qsa_pool", kArms, args).run(queue, args);
}

}  // namespace strata
