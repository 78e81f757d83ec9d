// What every record says of the program and the machine that made it.
#pragma once

#include <string>

#include "base/settings.h"
#include "device/device.h"
#include "evidence/ab.h"

namespace strata::cli {

std::string utc_text();  // "2026-11-30 01:52:31 UTC", now

// program, commit, binary_hash, compiler, device, instruction_sets, began.
NamedValues run_facts(const Queue& queue);

// Settings of how a model runs that are not at their default, but for model, threads and context.
NamedValues given_settings(const Settings& settings);

// Error{File}; nothing half-written stays behind.
void write_text_file(const std::string& path, const std::string& text);

}  // namespace strata::cli
