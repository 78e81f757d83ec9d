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
  if (context.settings.get_bool("json")) fmt::print("{}\n", list.dump(2));
  return 0;
}

}  // namespace

Command devices_command() {
  return {.name = "devices", .summary = "List what this build can run on.", .settings = {"json"}, .run = run};
}

}  // namespace strata::cli
