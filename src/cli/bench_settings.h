// Settings of strata bench: those of operators, and llama-bench's flags for whole models.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "cli/command.h"
#include "evidence/bench.h"

namespace strata::cli {

std::span<const SettingSpec> bench_settings();
std::vector<std::string_view> bench_shared_settings();  // names, for Command::settings

// Flags of llama-bench that mean nothing on a CPU: one warning each where they ask for something. Error{Usage} for
// those that cannot be passed over.
void check_foreign_flags(CommandContext& context);

// What --op and --suite ask for of every row.
BenchOptions operator_options(CommandContext& context);

// The three forms of strata bench; each returns the exit code.
int bench_suite(CommandContext& context);
int bench_operators(CommandContext& context);
int bench_models(CommandContext& context);

}  // namespace strata::cli
