#include "cli/evidence_settings.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/settings_text.h"

namespace strata::cli {
namespace {

constexpr std::array kEvidence{
    SettingSpec{.name = "op",
                .type = SettingType::Text,
                .group = "Evidence",
                .help = "operator, or several with commas between them; all: every one",
                .persistent = false},
    SettingSpec{.name = "only_arm",
                .flags = "--arm,--only-arm",
                .type = SettingType::Text,
                .group = "Evidence",
                .help = "arm; not set: all of the operator",
                .persistent = false},
    SettingSpec{.name = "records",
                .type = SettingType::Path,
                .default_text = "records",
                .group = "Evidence",
                .help = "folder of the records"},
};

}  // namespace

std::span<const SettingSpec> evidence_settings() { return kEvidence; }

std::shared_ptr<Accelerator> chosen_accelerator(const Settings& settings) {
  const std::string& name = settings.get_text("device");
  return name == "cpu" ? nullptr : open_accelerator(name);
}

std::vector<Chosen> arms_of(std::vector<Chosen> chosen, const Accelerator* accelerator) {
  std::erase_if(chosen, [&](const Chosen& one) {
    if (accelerator == nullptr || one.arm.image == nullptr)
      return (one.arm.image != nullptr) != (accelerator != nullptr);
    return !meant_for(*one.arm.image, accelerator->info().kind);
  });
  return chosen;
}

std::vector<Chosen> chosen_arms(const Settings& settings) {
  const std::string& arm = settings.get_text("only_arm");
  std::vector<std::string> wanted = split_text(settings.get_text("op"), ',');
  if (wanted == std::vector<std::string>{"all"}) wanted.clear();
  std::vector<Chosen> chosen;
  std::vector<std::string> operators, arms;
  for (const OperatorEvidence& evidence : operator_evidence()) {
    operators.push_back(evidence.op);
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), evidence.op) == wanted.end()) continue;
    for (const ArmInfo& info : evidence.arms) {
      arms.push_back(info.name);
      if (arm.empty() || info.name == arm) chosen.push_back({&evidence, info});
    }
  }
  for (const std::string& op : wanted)
    if (find_operator(op) == nullptr)
      throw Error(ErrorKind::Usage, "there is no operator " + quoted_text(op) + did_you_mean(op, operators, ""));
  if (chosen.empty())
    throw Error(ErrorKind::Usage, "there is no arm " + quoted_text(arm) + did_you_mean(arm, arms, ""));
  return chosen;
}

std::string records_folder(const Settings& settings) { return settings.get_text("records"); }

}  // namespace strata::cli
