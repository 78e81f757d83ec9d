// strata tokenize: text to token ids and back.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/commands.h"
#include "cli/model_settings.h"
#include "cli/readable.h"
#include "gguf/gguf.h"
#include "runtime/vocabulary.h"

namespace strata::cli {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;

constexpr std::array kOwn{
    SettingSpec{.name = "ids",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Tokenize",
                .help = "print the ids alone, on one line",
                .persistent = false},
    SettingSpec{.name = "parse_special",
                .type = SettingType::Bool,
                .default_text = "true",
                .group = "Tokenize",
                .help = "control tokens written in the text are read as such",
                .persistent = false},
    SettingSpec{.name = "text_file",
                .flags = "-f,--file",
                .type = SettingType::Path,
                .group = "Tokenize",
                .help = "file whose text to tokenize",
                .persistent = false},
};

int run(CommandContext& context) {
  const Settings& settings = context.settings;
  const std::string& file = settings.get_text("text_file");
  if (file.empty() == context.arguments.empty()) throw Error(ErrorKind::Usage, "give TEXT or -f FILE");
  const std::string text = file.empty() ? context.arguments.front() : read_file(file, kMaxTextBytes);
  const text::Tokenizer tokenizer = read_tokenizer(gguf::File::open(model_path(settings)));
  const std::vector<int32_t> ids =
      tokenizer.encode(text, {.add_special = true, .parse_special = settings.get_bool("parse_special")});
  if (settings.get_bool("json")) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (int32_t id : ids) list.push_back({{"id", id}, {"text", readable(tokenizer.bytes(id, true))}});
    fmt::print("{}\n", list.dump());
  } else if (settings.get_bool("ids")) {
    fmt::print("{}\n", fmt::join(ids, " "));
  } else {
    for (int32_t id : ids)
      fmt::print("{:>7}  {}\n", id, nlohmann::ordered_json(readable(tokenizer.bytes(id, true))).dump());
  }
  return 0;
}

}  // namespace

Command tokenize_command() {
  return {.name = "tokenize",
          .summary = "Print the tokens of a text.",
          .own = kOwn,
          .settings = {"model", "json"},
          .positional = {.name = "TEXT", .help = "the text", .min = 0, .max = 1},
          .run = run};
}

}  // namespace strata::cli
