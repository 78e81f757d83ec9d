#include "device/accelerator.h"

#include <charconv>
#include <optional>

#include "base/error.h"
#include "device/amdsim/simulation.h"
#include "device/cuda.h"
#include "device/emulation.h"
#include "device/hip.h"

namespace strata {

namespace {

// What stands behind "kind:", a number in [least, most]; `otherwise` where nothing does.
std::optional<int64_t> number_of(const std::string& name, const std::string& kind, int64_t least, int64_t most,
                                 int64_t otherwise) {
  if (name == kind) return otherwise;
  if (!name.starts_with(kind + ":")) return std::nullopt;
  const char *from = name.data() + kind.size() + 1, *end = name.data() + name.size();
  int64_t number = 0;
  const auto parsed = std::from_chars(from, end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < least || number > most)
    throw Error(ErrorKind::Usage, name + " is no device: " + kind + ": takes a number from " + std::to_string(least) +
                                      " to " + std::to_string(most));
  return number;
}

}  // namespace

std::shared_ptr<Accelerator> open_accelerator(const std::string& name, const AcceleratorOptions& options) {
  constexpr int64_t kMib = 1 << 20;
  if (const auto mib = number_of(name, "emu", 1, 1 << 20, static_cast<int64_t>(emulation_info().total_bytes) / kMib))
    return make_emulation(static_cast<uint64_t>(*mib * kMib));
  if (const auto index = number_of(name, "cuda", 0, 1023, 0)) return open_cuda(static_cast<int>(*index), options);
  if (const auto index = number_of(name, "hip", 0, 1023, -1)) return open_hip(static_cast<int>(*index), options);
  if (name.starts_with("sim:")) return open_simulation(name.substr(4));
  throw Error(ErrorKind::Usage,
              "there is no device " + name + ": this build knows cpu, cuda:N, hip:N, emu and sim:TARGET");
}

FoundAccelerators find_accelerators() {
  FoundAccelerators found;
  std::string missing;
  found.devices = list_cuda(missing, found.free_bytes);
  if (!missing.empty()) found.missing.push_back("cuda: " + missing);
  const std::vector<AcceleratorInfo> hip = list_hip(missing, found.free_bytes);
  if (!missing.empty()) found.missing.push_back("hip: " + missing);
  found.devices.insert(found.devices.end(), hip.begin(), hip.end());
  return found;
}

void check_launch(const char* what, const char* kernel, const LaunchShape& shape, uint32_t shared_limit,
                  size_t argument_bytes) {
  auto fits = [](const Dim& dim, int64_t x, int64_t yz, int64_t least) {
    return dim.x >= least && dim.x <= x && dim.y >= least && dim.y <= yz && dim.z >= least && dim.z <= yz;
  };
  auto text = [](const Dim& dim) {
    return std::to_string(dim.x) + " x " + std::to_string(dim.y) + " x " + std::to_string(dim.z);
  };
  const std::string where = std::string(what) + ": kernel " + kernel;
  if (!fits(shape.grid, 0x7fffffff, 65535, 0))
    throw Error(ErrorKind::Argument, "a grid of " + text(shape.grid) + " blocks cannot be run", where);
  const int64_t threads = shape.block.x * shape.block.y * shape.block.z;
  if (!fits(shape.block, 1024, 1, 1) || threads > 1024 || threads % 32 != 0)
    throw Error(ErrorKind::Argument, "blocks of " + text(shape.block) + " threads cannot be run", where);
  if (shape.shared > shared_limit)
    throw Error(ErrorKind::Argument,
                std::to_string(shape.shared) + " bytes of shared memory are asked for, a block has " +
                    std::to_string(shared_limit),
                where);
  if (argument_bytes > 4000)
    throw Error(ErrorKind::Argument, std::to_string(argument_bytes) + " bytes of arguments are too many", where);
}

}  // namespace strata
