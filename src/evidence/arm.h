// Arms: the implementations of one operator, and the choice among them (architecture, "Choosing an arm").
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/profile.h"
#include "device/device.h"

namespace strata {

template <class Args>
struct Arm {
  std::string_view name;
  // Empty when the arm can run these arguments here, else the reason why not.
  std::string (*refusal)(const Args&);
  void (*run)(Queue&, const Args&);
  bool row_invariant = true;           // a row gives the same bits alone and in any batch
  bool opt_in = false;                 // runs only when asked for
  CpuIsa isa = CpuIsa::Portable;       // what the processor must have
  const KernelImage* image = nullptr;  // of an arm for accelerators; null: it runs on the CPU
  int arch = 80;                       // of NVIDIA GPUs at least: 80 is compute capability 8.0
};

// The class that a parity record of an arm holds for.
inline std::string cpu_class(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::Portable: return "cpu-portable";
    case CpuIsa::Avx2: return "cpu-avx2";
    case CpuIsa::Avx512: return "cpu-avx512";
    case CpuIsa::Avx512Vnni: return "cpu-avx512vnni";
    case CpuIsa::Avx512Vbmi: return "cpu-avx512vbmi";
    case CpuIsa::Avx512Bf16: return "cpu-avx512bf16";
  }
  return {};
}

// The class of GPUs that records in this repository are made on.
inline constexpr const char* kRecordedGpu = "sm_90";
// Of arms that are for AMD GPUs alone: their machine code runs in an interpreter.
inline constexpr const char* kRecordedAmd = "sim-gfx1100";

inline std::string arm_class(CpuIsa isa, const KernelImage* image) {
  if (image == nullptr) return cpu_class(isa);
  return image->vendor == Vendor::Amd ? kRecordedAmd : kRecordedGpu;
}

// An arm without its argument type.
struct ArmInfo {
  std::string name, device_class;
  bool row_invariant = true, opt_in = false;
  CpuIsa isa = CpuIsa::Portable;
  const KernelImage* image = nullptr;
  int arch = 0;
};

template <class Args>
std::vector<ArmInfo> arm_infos(std::span<const Arm<Args>> arms) {
  std::vector<ArmInfo> infos;
  for (const Arm<Args>& arm : arms)
    infos.push_back({std::string(arm.name), arm_class(arm.isa, arm.image), arm.row_invariant, arm.opt_in, arm.isa,
                     arm.image, arm.arch});
  return infos;
}

// Why the arm cannot run these arguments, on a processor that has what it needs; empty: it can.
template <class Args>
std::string refusal_of(std::span<const Arm<Args>> arms, std::string_view name, const Args& args) {
  for (const Arm<Args>& arm : arms)
    if (arm.name == name) return arm.refusal(args);
  return "no such arm";
}

// Why code for that processor or accelerator cannot run on this queue; empty: it can.
inline std::string device_refusal(const Queue& queue, CpuIsa isa, const KernelImage* image, int arch) {
  const Accelerator* accelerator = queue.accelerator();
  if (image == nullptr) return accelerator == nullptr ? queue.cpu.refusal(isa) : "it runs on the CPU alone";
  if (accelerator != nullptr) return accelerator->refusal(*image, arch);
  return image->vendor == Vendor::Amd ? "it runs on AMD GPUs alone" : "it runs on accelerators alone";
}

// Why the arm cannot run on this queue; empty: it can.
template <class Args>
std::string refusal_here(const Queue& queue, const Arm<Args>& arm, const Args& args) {
  std::string reason = device_refusal(queue, arm.isa, arm.image, arm.arch);
  return reason.empty() ? arm.refusal(args) : reason;
}

// Where an arm runs on this queue.
inline std::string class_here(const Queue& queue, CpuIsa isa) {
  return queue.accelerator() == nullptr ? cpu_class(isa) : queue.accelerator()->info().device_class;
}

template <class Args>
std::string always_runs(const Args&) {
  return {};
}

// An arm that can run the arguments it was chosen for.
template <class Args>
class ChosenArm {
 public:
  ChosenArm(const char* op, const Arm<Args>& arm) : name(arm.name), op_(op), run_(arm.run) {}

  void run(Queue& queue, const Args& args) const {
    const ProfileSpan span(queue.profiler, op_, name);
    run_(queue, args);
    if (queue.profiler != nullptr) queue.space().wait();  // a device's work belongs to the span
  }

  std::string_view name;

 private:
  std::string_view op_;
  void (*run_)(Queue&, const Args&);
};

// What the user asked for if it can run, else the first arm that may be a default and can run. The choice is logged
// once, what was asked for at level info; a refused request is logged with its reason, or is an error under
// strict_arms.
template <class Args>
ChosenArm<Args> choose_arm(Queue& queue, const char* op, std::span<const Arm<Args>> arms, const Args& args) {
  ArmChoice& choice = queue.arm(op);
  std::string refused;
  const Arm<Args>* chosen = nullptr;
  if (!choice.requested.empty()) {
    std::string reason = "no such arm";
    for (const Arm<Args>& arm : arms)
      if (arm.name == choice.requested && (reason = refusal_here(queue, arm, args)).empty()) chosen = &arm;
    if (chosen == nullptr) refused = choice.requested + " refused: " + reason;
    if (chosen == nullptr && queue.strict_arms) throw Error(ErrorKind::Argument, refused, std::string("arm ") + op);
  }
  for (const Arm<Args>& arm : arms)
    if (chosen == nullptr && !arm.opt_in && refusal_here(queue, arm, args).empty()) chosen = &arm;
  if (chosen == nullptr) throw Error(ErrorKind::Argument, "no arm can run these arguments here", op);
  if (choice.ran != chosen->name) {
    choice.ran = chosen->name;
    const std::string line =
        std::string("arm ") + op + " = " + choice.ran + " (" + class_here(queue, chosen->isa) + ")";
    if (refused.empty() && choice.requested.empty())
      queue.log().debug(line);
    else if (refused.empty())
      queue.log().info(line);
    else
      queue.log().warn(std::string("arm ") + op + ": " + refused + "; using " + choice.ran);
  }
  return {op, *chosen};
}

}  // namespace strata
