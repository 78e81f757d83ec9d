// Models that are made instead of read: -m synth:SHAPE:TYPE.
#pragma once

#include <string>

namespace strata::cli {

// A path of the model that `name` stands for; any other name is a path itself. A model is made when it is first asked
// for, in a file of /var/tmp that has no name and goes with the process. `tokenizer`: a file to copy one from.
// Error{Usage} naming the shapes and types.
std::string made_model_path(const std::string& name, const std::string& tokenizer);
bool is_made_model(const std::string& name);

}  // namespace strata::cli
