#include "cli/synth_model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/settings_text.h"
#include "gguf/quant_scheme.h"
#include "model/synth.h"

namespace strata::cli {
namespace {

constexpr const char* kPrefix = "synth:";

std::string make(const std::string& name, const std::string& tokenizer) {
  const std::vector<std::string> parts = split_text(name.substr(std::string(kPrefix).size()), ':');
  const std::string quant = parts.size() > 1 ? parts[1] : "Q8_0";
  const auto shape = parts.empty() ? std::nullopt : named_synth_shape(parts[0]);
  const auto scheme = gguf::quant_scheme(quant);
  if (!shape || !scheme || parts.size() > 2)
    throw Error(ErrorKind::Usage,
                "made models are synth:SHAPE:TYPE, with SHAPE one of " + synth_shape_names() + ", and TYPE one of " +
                    gguf::quant_scheme_names(),
                "-m " + name);
  SynthOptions options;
  options.shape = *shape;
  options.scheme = *scheme;
  options.tokenizer = tokenizer;
  options.seed = 1;
  const std::string path = fmt::format("{}/strata-{}-{}.gguf", "/var/tmp", getpid(), parts[0]);
  fmt::print(stderr, "info: making {}\n", name);
  write_synth(path, options);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);  // stays open for as long as the process
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (file < 0) throw Error(ErrorKind::File, "cannot be opened", path);
  return fmt::format("/proc/self/fd/{}", file);
}

}  // namespace

bool is_made_model(const std::string& name) { return name.starts_with(kPrefix); }

std::string made_model_path(const std::string& name, const std::string& tokenizer) {
  static std::map<std::string, std::string> made;  // of the process: commands ask for a path more than once
  if (!is_made_model(name)) return name;
  auto& path = made[name];
  if (path.empty()) path = make(name, tokenizer);
  return path;
}

}  // namespace strata::cli
