// strata devices: what operators can run on.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "device/device.h"

namespace strata::cli {
namespace {

int run(CommandContext& context) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const DeviceInfo& device : list_devices()) {
    if (context.settings.get_bool("json"))
      list.push_back({{"name", device.name},
                      {"description", device.description},
                      {"cores", device.cores},
                      {"total_bytes", device.total_bytes},
                      {"free_bytes", device.free_bytes}});
    else
      fmt::print("{}: {} ({} MiB, {} MiB free)\n", device.name, device.description, device.total_bytes >> 20,
                 device.free_bytes >> 20);
  }
  const FoundAccelerators found = find_accelerators();
  for (size_t i = 0; i < found.devices.size(); ++i) {
    const AcceleratorInfo& device = found.devices[i];
    if (context.settings.get_bool("json"))
      list.push_back({{"name", device.name},
                      {"description", device.description},
                      {"class", device.device_class},
                      {"driver", device.driver},
                      {"multiprocessors", device.multiprocessors},
                      {"shared_bytes", device.shared_bytes},
                      {"cache_bytes", device.cache_bytes},
                      {"total_bytes", device.total_bytes},
                      {"free_bytes", found.free_bytes[i]}});
    else
      fmt::print("{}: {}, {}, {} multiprocessors, {} ({} MiB, {} MiB free)\n", device.name, device.description,
                 device.device_class, device.multiprocessors, device.driver, device.total_bytes >> 20,
                 found.free_bytes[i] >> 20);
  }
  for (const std::string& reason : found.missing) context.log.info("none of " + reason);
  if (context.settings.get_bool("json")) fmt::print("{}\n", list.dump(2));
  return 0;
}

}  // namespace

Command devices_command() {
  return {.name = "devices", .summary = "List what this build can run on.", .settings = {"json"}, .run = run};
}

}  // namespace strata::cli
