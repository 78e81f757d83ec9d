#include "cli/run_facts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "cli/ab_settings.h"
#include "cli/version.h"

namespace strata::cli {

std::string utc_text() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

NamedValues run_facts(const Queue& queue) {
  const MappedFile binary("/proc/self/exe");
  return {{"program", version_text()},
          {"commit", build_commit()},
          {"binary_hash", hash_hex(hash64(binary.bytes().data(), binary.size()))},
          {"compiler", std::string("C++ ") + __VERSION__},
          {"device", queue.accelerator() == nullptr ? list_devices().front().description
                                                    : queue.accelerator()->info().description},
          {"instruction_sets", describe(queue.cpu)},
          {"began", utc_text()}};
}

NamedValues given_settings(const Settings& settings) {
  const std::vector<std::string_view> names = ab_setting_names();
  NamedValues values;
  for (const EffectiveSetting& setting : settings.effective()) {
    const std::string_view name = setting.spec->name;
    if (setting.origin == SettingOrigin::Default || setting.values.empty() || name == "model" || name == "threads")
      continue;
    if (name.starts_with("arm.") || std::find(names.begin(), names.end(), name) != names.end())
      values.emplace_back(name, setting.values.front());
  }
  return values;
}

void write_text_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace strata::cli
