// The list of subcommands.
#pragma once

#include "cli/command.h"

namespace strata::cli {

Command ab_command();
Command bench_command();
Command bench_serve_command();
Command chat_command();
Command completion_command();
Command config_command();
Command convert_command();
Command devices_command();
Command diff_command();
Command evidence_command();
Command generate_command();
Command inspect_command();
Command needle_command();
Command parity_command();
Command perplexity_command();
Command profile_command();
Command plan_command();
Command quantize_command();
Command rates_command();
Command serve_command();
Command synth_command();
Command tokenize_command();

Program strata_program();

}  // namespace strata::cli
