#include "cli/commands.h"

#include "cli/chat_settings.h"
#include "cli/common_settings.h"
#include "cli/evidence_settings.h"
#include "cli/model_settings.h"
#include "cli/profile_settings.h"

namespace strata::cli {

Program strata_program() {
  return {
      .commands = {generate_command(), chat_command(),        serve_command(), tokenize_command(), inspect_command(),
                   convert_command(),  quantize_command(),    synth_command(), plan_command(),     parity_command(),
                   bench_command(),    bench_serve_command(), ab_command(),    needle_command(),   rates_command(),
                   profile_command(),  perplexity_command(),  diff_command(),  evidence_command(), devices_command(),
                   config_command(),   completion_command()},
      .settings = {common_settings(), model_settings(), cache_settings(), sampler_settings(), chat_settings(),
                   kernel_settings(), evidence_settings(), profile_settings()},
      .operators = operator_names(),
  };
}

}  // namespace strata::cli
