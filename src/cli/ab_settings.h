// The two sides of `strata ab`: the command's settings with named ones changed.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "evidence/ab.h"
#include "measure/ab_run.h"

namespace strata::cli {

struct AbSides {
  std::array<std::unique_ptr<Settings>, 2> settings;
  std::array<NamedValues, 2> overrides;  // settings in which the sides differ, with the value of each side
  NamedValues shared;                    // the others that change how a model runs
  bool same_bits = false;                // nothing that differs may change a result

  AbEngineOptions engine(AbSide side) const;
};

// From --a and --b, lists of name=value. Error{Usage} for unknown settings and for those that do not change how a model
// runs.
AbSides ab_sides(const CommandContext& context);

// Names of the settings that may differ, but for arm.<operator>.
std::vector<std::string_view> ab_setting_names();

}  // namespace strata::cli
