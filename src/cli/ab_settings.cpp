#include "cli/ab_settings.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/settings_text.h"
#include "cli/model_settings.h"

namespace strata::cli {
namespace {

// Of those that may differ: what never changes a result (docs/reproducibility.md).
constexpr std::array<std::string_view, 14> kKeepBits{
    "cpu_mask",  "cpu_range", "cpu_strict",  "load_mode",   "threads",   "ubatch_size",     "draft",
    "draft_max", "kv_budget", "kv_resident", "kv_file_dir", "mem_floor", "mtp.hidden_norm", "strict_arms"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool may_differ(const std::string& name) {
  static const std::vector<std::string_view> names = ab_setting_names();
  return name.starts_with("arm.") || contains(names, name);
}

std::unique_ptr<Settings> copy_of(const CommandContext& context) {
  std::vector<std::span<const SettingSpec>> groups = context.program.settings;
  for (const Command& command : context.program.commands) groups.push_back(command.own);
  auto copy = std::make_unique<Settings>(groups, context.program.operators);
  for (const EffectiveSetting& setting : context.settings.effective())
    if (setting.origin != SettingOrigin::Default)
      for (const std::string& value : setting.values)
        copy->set(setting.spec->name, value, setting.origin, setting.source);
  return copy;
}

struct Assignment {
  std::string name, value;
};

// "threads=2,arm.matmul=avx2"; arm=matmul=avx2 is the same as the latter, and '-' in a name as '_'.
Assignment parse_assignment(const std::string& text, const std::string& source) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(ErrorKind::Usage, "what a side changes is written setting=value, not " + quoted_text(text), source);
  Assignment one{text.substr(0, equals), text.substr(equals + 1)};
  if (one.name == "arm")
    if (const size_t second = one.value.find('='); second != std::string::npos)
      one = {"arm." + one.value.substr(0, second), one.value.substr(second + 1)};
  std::replace(one.name.begin(), one.name.end(), '-', '_');
  return one;
}

void apply(const std::string& list, Settings& settings, std::set<std::string>& named, const std::string& source) {
  for (size_t start = 0; start <= list.size();) {
    const size_t end = std::min(list.find(',', start), list.size());
    const Assignment one = parse_assignment(list.substr(start, end - start), source);
    if (settings.find(one.name) != nullptr && !may_differ(one.name))
      throw Error(ErrorKind::Usage, one.name + " does not change how a model runs: the sides cannot differ in it",
                  source);
    if (!named.insert(one.name).second) throw Error(ErrorKind::Usage, one.name + " stands twice", source);
    settings.set(one.name, one.value, SettingOrigin::Flag, source);
    start = end + 1;
  }
}

// The values of what may differ, in order of registration.
NamedValues values_of(const Settings& settings) {
  NamedValues values;
  for (const EffectiveSetting& setting : settings.effective()) {
    const std::string name(setting.spec->name);
    if (may_differ(name)) values.emplace_back(name, setting.values.empty() ? std::string() : setting.values.front());
  }
  return values;
}

}  // namespace

std::vector<std::string_view> ab_setting_names() {
  std::vector<std::string_view> names = engine_setting_names();
  std::erase(names, "arm");
  std::erase(names, "ctx_size");  // a trial takes what its lengths need
  names.insert(names.end(), {"draft", "draft_max"});
  return names;
}

AbSides ab_sides(const CommandContext& context) {
  AbSides sides;
  for (const AbSide side : kAbSides) {
    const auto index = static_cast<size_t>(side);
    sides.settings[index] = copy_of(context);
    const std::string name = side == AbSide::A ? "a" : "b";
    std::set<std::string> named;
    for (const std::string& list : context.settings.get_texts("ab." + name))
      apply(list, *sides.settings[index], named, "--" + name);
  }
  const NamedValues a = values_of(*sides.settings[0]), b = values_of(*sides.settings[1]);
  sides.same_bits = true;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) {
      if (!a[i].second.empty()) sides.shared.push_back(a[i]);
      continue;
    }
    sides.overrides[0].push_back(a[i]);
    sides.overrides[1].push_back(b[i]);
    sides.same_bits = sides.same_bits && contains(kKeepBits, a[i].first);
  }
  return sides;
}

AbEngineOptions AbSides::engine(AbSide side) const {
  const Settings& own = *settings[static_cast<size_t>(side)];
  GenerateRequest request;
  set_generation(own, request);
  return {.engine = engine_options(own), .draft = request.draft, .draft_max = request.draft_max};
}

}  // namespace strata::cli
