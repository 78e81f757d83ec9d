// strata convert: a Hugging Face checkpoint directory to GGUF.
#include "gguf/hf/convert.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "gguf/quant.h"

namespace strata::cli {
namespace {

constexpr std::array kOwn{
    SettingSpec{.name = "outtype",
                .type = SettingType::Text,
                .default_text = "f16",
                .group = "Convert",
                .help = "type of the large tensors: f32, f16, bf16, q8_0, q4_0, q3_k, q4_k, q5_k, q6_k, iq3_s, iq4_nl, "
                        "iq4_xs, mxfp4",
                .persistent = false},
    SettingSpec{.name = "outfile",
                .flags = "-o,--outfile",
                .type = SettingType::Path,
                .group = "Convert",
                .help = "GGUF file to write; not set: DIRECTORY-TYPE.gguf in the current folder",
                .persistent = false},
    SettingSpec{.name = "dry_run",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Convert",
                .help = "check and describe, write nothing",
                .persistent = false},
};

DType wanted_type(const std::string& name) {
  const auto type = dtype_from_name(name);
  if (type && gguf::has_encoder(*type)) return *type;
  std::string known;
  for (const DTypeInfo& entry : all_dtypes())
    if (gguf::has_encoder(entry.type)) known += (known.empty() ? "" : ", ") + std::string(entry.name);
  throw Error(ErrorKind::Usage, "cannot write the type '" + name + "'; possible are " + known, "--outtype");
}

std::string output_path(const Settings& settings, const std::string& directory) {
  if (const std::string& path = settings.get_text("outfile"); !path.empty()) return path;
  std::filesystem::path folder = std::filesystem::path(directory).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  return folder.filename().string() + "-" + settings.get_text("outtype") + ".gguf";
}

int run(CommandContext& context) {
  const Settings& settings = context.settings;
  const std::string& directory = context.arguments.front();
  gguf::hf::ConvertOptions options;
  options.type = wanted_type(settings.get_text("outtype"));
  options.cancelled = &context.interrupted;
  options.warn = [&](const std::string& message) { context.log.warn(message); };
  Progress progress;
  options.progress = [&](uint64_t done, uint64_t total, const std::string& tensor) {
    if (progress.due()) progress.show(fmt::format("{:3} %  {:<60.60}", total == 0 ? 100 : done * 100 / total, tensor));
  };
  if (settings.get_bool("dry_run")) {
    const gguf::hf::ConversionSummary summary = gguf::hf::describe_conversion(directory, options);
    fmt::print("{}: {} tensors, {:.1f} MiB as {}, {} MTP blocks, {}\n", summary.architecture, summary.tensors,
               static_cast<double>(summary.tensor_bytes) / 1048576, to_string(options.type), summary.mtp_blocks,
               summary.vocabulary ? "with vocabulary" : "without vocabulary");
    return 0;
  }
  const std::string path = output_path(settings, directory);
  gguf::hf::convert(directory, path, options);
  progress.clear();
  fmt::print("{} ({:.1f} MiB)\n", path, static_cast<double>(std::filesystem::file_size(path)) / 1048576);
  return 0;
}

}  // namespace

Command convert_command() {
  return {
      .name = "convert",
      .summary = "Convert a Hugging Face checkpoint to GGUF.",
      .own = kOwn,
      .positional = {.name = "DIRECTORY", .help = "folder with config.json and safetensors files", .min = 1, .max = 1},
      .run = run};
}

}  // namespace strata::cli
