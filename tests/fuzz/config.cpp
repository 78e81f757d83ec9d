// Any bytes as a settings file: read or refused with one line that names the file; what was read can be written again
// and read back as the same values.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "base/settings_text.h"
#include "fuzz/check.h"
#include "support/test_files.h"

namespace {

using namespace strata;
using strata::test::MemoryFile;
using strata::test::require;

// One setting of every type.
constexpr std::array kSpecs{
    SettingSpec{.name = "flag", .type = SettingType::Bool, .default_text = "false"},
    SettingSpec{.name = "count", .type = SettingType::Int, .default_text = "1", .min = -1, .max = 4096},
    SettingSpec{.name = "wide", .type = SettingType::Int, .default_text = "0"},
    SettingSpec{.name = "share", .type = SettingType::Real, .default_text = "0.5", .min = 0, .max = 1},
    SettingSpec{.name = "real", .type = SettingType::Real, .default_text = "0"},
    SettingSpec{.name = "text", .type = SettingType::Text},
    SettingSpec{.name = "path", .type = SettingType::Path},
    SettingSpec{.name = "level", .type = SettingType::Choice, .default_text = "info", .choices = "error|warn|info"},
    SettingSpec{.name = "stop", .type = SettingType::Text, .repeatable = true},
    SettingSpec{.name = "json", .type = SettingType::Bool, .default_text = "false", .persistent = false},
};

std::string written(const Settings& settings) {
  std::string text;
  for (const EffectiveSetting& one : settings.effective())
    if (one.origin == SettingOrigin::File)
      for (const std::string& value : one.values)
        text += std::string(one.spec->name) + " = " + config_text(value) + "\n";
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Settings settings({kSpecs}, {"matmul", "norm"});
  try {
    const MemoryFile file(bytes);
    settings.load_file(file.path());
  } catch (const Error& error) {
    strata::test::require_one_line(error);
    require(error.kind() == ErrorKind::Usage || error.kind() == ErrorKind::File);
    return 0;
  }
  const std::string text = written(settings);
  const MemoryFile file(text);
  Settings again({kSpecs}, {"matmul", "norm"});
  again.load_file(file.path());  // must not be refused
  require(written(again) == text);
  return 0;
}
