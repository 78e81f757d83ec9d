// What the evidence commands share: which operators and arms are meant, where records lie.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "ops/registry.h"

namespace strata::cli {

std::span<const SettingSpec> evidence_settings();  // op, only_arm, device, records

// What --device names; null: the CPU. Error{Device, Usage}.
std::shared_ptr<Accelerator> chosen_accelerator(const Settings& settings);

// Every (operator, arm) that --op and --only-arm name. Error{Usage} with the known names for an unknown one.
struct Chosen {
  const OperatorEvidence* evidence;
  ArmInfo arm;
};
std::vector<Chosen> chosen_arms(const Settings& settings);
// Those that are meant for the accelerator, or those of the CPU where it is null.
std::vector<Chosen> arms_of(std::vector<Chosen> chosen, const Accelerator* accelerator);

// The folder of --records.
std::string records_folder(const Settings& settings);

}  // namespace strata::cli
