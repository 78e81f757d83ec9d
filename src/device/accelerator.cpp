#include "device/accelerator.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "device/amdsim/simulation.h"
#include "device/cuda.h"
#include "device/emulation.h"
#include "device/hip.h"

namespace strata {

namespace {

// The number in "cuda:1"; -1 for "cuda" alone.
int index_of(const std::string& name, const std::string& vendor) {
  if (name == vendor) return -1;
  const std::string number = name.substr(vendor.size() + 1);
  int index = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), index);
  if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size() || index < 0)
    throw Error(ErrorKind::Usage, name + " is no device: write " + vendor + ":0");
  return index;
}

}  // namespace

std::shared_ptr<Accelerator> open_accelerator(const std::string& name, const AcceleratorOptions& options) {
  if (name == "emu") return make_emulation();
  if (name.starts_with("sim:")) return open_simulation(name.substr(4));
  auto is = [&](const std::string& vendor) { return name == vendor || name.starts_with(vendor + ":"); };
  if (is("cuda")) return open_cuda(std::max(index_of(name, "cuda"), 0), options);
  if (is("hip")) return open_hip(index_of(name, "hip"), options);
  throw Error(ErrorKind::Usage, "there is no device " + name + ": this build knows cpu, cuda:N, hip:N, emu and sim:TARGET");
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
