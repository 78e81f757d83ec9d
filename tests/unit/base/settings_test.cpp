#include "base/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/settings_text.h"

namespace strata {
namespace {

constexpr std::array kSpecs{
    SettingSpec{
        .name = "threads", .flags = "-t,--threads", .type = SettingType::Int, .default_text = "0", .min = 0, .max = 64},
    SettingSpec{.name = "seed", .type = SettingType::Int, .default_text = "-1"},
    SettingSpec{.name = "temp", .type = SettingType::Real, .default_text = "0.8", .min = 0, .max = 10},
    SettingSpec{.name = "log_level", .type = SettingType::Choice, .default_text = "info", .choices = "error|warn|info"},
    SettingSpec{.name = "model", .flags = "-m,--model", .type = SettingType::Path},
    SettingSpec{.name = "kv.resident", .type = SettingType::Bool, .default_text = "off"},
    SettingSpec{.name = "stop", .repeatable = true},
    SettingSpec{.name = "prompt", .flags = "-p,--prompt", .persistent = false},
};

// The text of the strata::Error that `action` throws; fails the test on another kind or on none.
std::string error_of(ErrorKind kind, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.kind()), std::string(to_string(kind))) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

std::string usage_error(std::string_view name, std::string_view value) {
  Settings settings({kSpecs});
  return error_of(ErrorKind::Usage, [&] { settings.set(name, value, SettingOrigin::Flag, "--flag"); });
}

TEST(Settings, DefaultsAndTypes) {
  const Settings settings({kSpecs}, {"qsa_score"});
  EXPECT_EQ(settings.get_int("threads"), 0);
  EXPECT_EQ(settings.get_int("seed"), -1);
  EXPECT_EQ(settings.get_real("temp"), 0.8);
  EXPECT_EQ(settings.get_text("log_level"), "info");
  EXPECT_EQ(settings.get_text("model"), "");
  EXPECT_FALSE(settings.get_bool("kv.resident"));
  EXPECT_TRUE(settings.get_texts("stop").empty());
  EXPECT_EQ(settings.get_text("arm.qsa_score"), "");
  EXPECT_EQ(settings.origin("threads"), SettingOrigin::Default);
}

TEST(Settings, WrongNameOrTypeIsADefectOfTheCaller) {
  const Settings settings({kSpecs});
  EXPECT_NE(error_of(ErrorKind::Argument, [&] { settings.get_int("treads"); }).find("treads"), std::string::npos);
  error_of(ErrorKind::Argument, [&] { settings.get_int("temp"); });
  error_of(ErrorKind::Argument, [&] { settings.get_bool("threads"); });
  error_of(ErrorKind::Argument, [&] { settings.get_real("threads"); });
  error_of(ErrorKind::Argument, [&] { settings.get_text("stop"); });
  error_of(ErrorKind::Argument, [&] { settings.get_text("threads"); });
  error_of(ErrorKind::Argument, [&] { settings.get_texts("model"); });
}

TEST(Settings, PrecedenceDoesNotHangOnLoadOrder) {
  const std::vector<SettingOrigin> sorted{SettingOrigin::File, SettingOrigin::Environment, SettingOrigin::Flag};
  for (size_t highest = 0; highest < sorted.size(); ++highest) {
    std::vector<SettingOrigin> order(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(highest) + 1);
    do {
      Settings settings({kSpecs});
      for (const SettingOrigin origin : order) {
        settings.set("threads", std::to_string(static_cast<int>(origin)), origin, "somewhere");
        settings.set("stop", "first " + std::string(to_string(origin)), origin, "somewhere");
        settings.set("stop", "second", origin, "somewhere");
      }
      EXPECT_EQ(settings.get_int("threads"), static_cast<int>(sorted[highest]));
      EXPECT_EQ(settings.origin("threads"), sorted[highest]);
      const std::vector<std::string> expected{"first " + std::string(to_string(sorted[highest])), "second"};
      EXPECT_EQ(settings.get_texts("stop"), expected);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(Settings, LowerOriginIsStillChecked) {
  Settings settings({kSpecs});
  settings.set("threads", "4", SettingOrigin::Flag, "--threads");
  error_of(ErrorKind::Usage, [&] { settings.set("threads", "x", SettingOrigin::File, "f:1"); });
  EXPECT_EQ(settings.get_int("threads"), 4);
}

TEST(Settings, LastValueOfOneOriginWins) {
  Settings settings({kSpecs});
  settings.set("threads", "4", SettingOrigin::Flag, "-t");
  settings.set("threads", "5", SettingOrigin::Flag, "-t");
  EXPECT_EQ(settings.get_int("threads"), 5);
}

TEST(Settings, IntegerRange) {
  Settings settings({kSpecs});
  for (const char* good : {"0", "1", "64"}) settings.set("threads", good, SettingOrigin::Flag, "--threads");
  for (const char* bad : {"-1", "65", "", " 1", "1 ", "1.0", "0x10", "+1", "one", "1e1", "9223372036854775808"})
    EXPECT_NE(usage_error("threads", bad).find("--flag: threads cannot be"), std::string::npos) << bad;
  settings.set("seed", "9223372036854775807", SettingOrigin::Flag, "--seed");
  EXPECT_EQ(settings.get_int("seed"), INT64_MAX);
  settings.set("seed", "-9223372036854775808", SettingOrigin::Flag, "--seed");
  EXPECT_EQ(settings.get_int("seed"), INT64_MIN);
}

TEST(Settings, RealRangeAndFiniteness) {
  Settings settings({kSpecs});
  settings.set("temp", "1e-3", SettingOrigin::Flag, "--temp");
  EXPECT_EQ(settings.get_real("temp"), 1e-3);
  for (const char* bad : {"-0.1", "10.5", "nan", "inf", "-inf", "1e999", "", "1,5", "1.5x"}) usage_error("temp", bad);
}

TEST(Settings, BooleanWords) {
  Settings settings({kSpecs});
  for (const char* word : {"1", "true", "on", "enabled"}) {
    settings.set("kv.resident", "0", SettingOrigin::Flag, "");
    settings.set("kv.resident", word, SettingOrigin::Flag, "");
    EXPECT_TRUE(settings.get_bool("kv.resident")) << word;
  }
  for (const char* word : {"0", "false", "off", "disabled"}) {
    settings.set("kv.resident", "1", SettingOrigin::Flag, "");
    settings.set("kv.resident", word, SettingOrigin::Flag, "");
    EXPECT_FALSE(settings.get_bool("kv.resident")) << word;
  }
  for (const char* bad : {"", "2", "yes", "TRUE", "on "}) usage_error("kv.resident", bad);
}

TEST(Settings, ChoicesAndPaths) {
  EXPECT_EQ(usage_error("log_level", "wran"),
            "--flag: log_level cannot be \"wran\": no such choice; did you mean warn?; allowed: error, warn or info");
  usage_error("log_level", "");
  usage_error("log_level", "error|warn");
  usage_error("model", "");
  usage_error("model", std::string_view("a\0b", 3));
}

TEST(Settings, MessageNamesSourceSettingValueAndRange) {
  EXPECT_EQ(usage_error("threads", "65"), "--flag: threads cannot be \"65\": out of range; allowed: 0 to 64");
}

TEST(Settings, MessagesStayShortAndOnOneLine) {
  const std::string message = usage_error("threads", "\n\x1b[31m" + std::string(100000, 'x'));
  EXPECT_LT(message.size(), 300u);
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST(Settings, Environment) {
  Settings settings({kSpecs}, {"qsa_score"});
  const char* environment[] = {"HOME=/root",
                               "STRATA_THREADS=3",
                               "STRATA_KV_RESIDENT=on",
                               "STRATA_PROMPT=a=b",
                               "STRATA_LOG_LEVEL=warn",
                               "STRATA_ARM_QSA_SCORE=wmma",
                               "STRATAGEM=1",
                               nullptr};
  settings.load_environment(environment);
  EXPECT_EQ(settings.get_int("threads"), 3);
  EXPECT_TRUE(settings.get_bool("kv.resident"));
  EXPECT_EQ(settings.get_text("prompt"), "a=b");
  EXPECT_EQ(settings.get_text("log_level"), "warn");
  EXPECT_EQ(settings.get_text("arm.qsa_score"), "wmma");
  EXPECT_EQ(settings.origin("threads"), SettingOrigin::Environment);
}

TEST(Settings, UnknownEnvironmentVariable) {
  const auto message = [](const char* variable) {
    Settings settings({kSpecs}, {"qsa_score"});
    const char* environment[] = {variable, nullptr};
    return error_of(ErrorKind::Usage, [&] { settings.load_environment(environment); });
  };
  EXPECT_EQ(message("STRATA_THREDAS=3"),
            "unknown environment variable \"STRATA_THREDAS\"; did you mean STRATA_THREADS?");
  EXPECT_EQ(message("STRATA_ARM_QSA_SCOER=x"),
            "unknown environment variable \"STRATA_ARM_QSA_SCOER\"; did you mean STRATA_ARM_QSA_SCORE?");
  EXPECT_EQ(message("STRATA_XYZZY=3"), "unknown environment variable \"STRATA_XYZZY\"");
  message("STRATA_=3");
  message("STRATA_THREADS2");
  EXPECT_EQ(message("STRATA_THREADS=many"),
            "STRATA_THREADS: threads cannot be \"many\": not a whole number of 64 bits; allowed: 0 to 64");
  EXPECT_LT(message(("STRATA_" + std::string(100000, 'A') + "=1").c_str()).size(), 300u);
}

TEST(Settings, Arms) {
  Settings settings({kSpecs}, {"qsa_score", "matmul"});
  settings.set("arm", "qsa_score=warp", SettingOrigin::Flag, "--arm");
  settings.set("arm", "matmul=tile=8", SettingOrigin::Flag, "--arm");
  settings.set("arm.qsa_score", "wmma", SettingOrigin::Environment, "STRATA_ARM_QSA_SCORE");
  EXPECT_EQ(settings.get_text("arm.qsa_score"), "warp");
  EXPECT_EQ(settings.get_text("arm.matmul"), "tile=8");
  const auto refused = [&](std::string_view value) {
    return error_of(ErrorKind::Usage, [&] { settings.set("arm", value, SettingOrigin::Flag, "--arm"); });
  };
  EXPECT_EQ(refused("qsa_scroe=warp"), "--arm: unknown operator \"qsa_scroe\"; did you mean qsa_score?");
  for (const char* bad : {"", "qsa_score", "=warp", "qsa_score="}) refused(bad);
}

TEST(Settings, EffectiveShowsPersistentSettingsWithTheirSource) {
  Settings settings({kSpecs}, {"matmul"});
  settings.set("threads", "7", SettingOrigin::File, "strata.conf:3");
  std::vector<std::string> names;
  for (const EffectiveSetting& setting : settings.effective()) {
    names.emplace_back(setting.spec->name);
    if (setting.spec->name == "threads") {
      EXPECT_EQ(setting.values, std::vector<std::string>{"7"});
      EXPECT_EQ(setting.source, "strata.conf:3");
      EXPECT_EQ(setting.origin, SettingOrigin::File);
    }
  }
  const std::vector<std::string> expected{"threads", "seed",        "temp", "log_level",
                                          "model",   "kv.resident", "stop", "arm.matmul"};
  EXPECT_EQ(names, expected);
}

TEST(Settings, DefectiveSpecsAreRefused) {
  const auto refused = [](std::vector<SettingSpec> specs, ErrorKind kind = ErrorKind::Argument) {
    return error_of(kind, [&] { Settings settings({std::span<const SettingSpec>(specs)}, {"matmul"}); });
  };
  refused({{.name = "a"}, {.name = "a"}});
  refused({{.name = "a.b"}, {.name = "a_b"}});  // the same variable
  refused({{.name = "arm"}});
  refused({{.name = "arm_matmul"}});
  refused({{.name = ""}});
  refused({{.name = "Threads"}});
  refused({{.name = "n", .type = SettingType::Int, .default_text = "1", .repeatable = true}});
  refused({{.name = "n", .type = SettingType::Int}}, ErrorKind::Usage);
  refused({{.name = "n", .type = SettingType::Int, .default_text = "5", .max = 4}}, ErrorKind::Usage);
  error_of(ErrorKind::Argument, [] { Settings settings({kSpecs, kSpecs}); });
}

TEST(Settings, ListsOfNumbersAndChoices) {
  constexpr std::array kLists{
      SettingSpec{
          .name = "depth", .type = SettingType::Ints, .default_text = "0", .min = 0, .max = 64, .repeatable = true},
      SettingSpec{.name = "cache",
                  .type = SettingType::Choices,
                  .default_text = "f16",
                  .choices = "f16|q8_0",
                  .repeatable = true}};
  Settings settings({kLists});
  EXPECT_EQ(settings.get_ints("depth"), std::vector<int64_t>{0});
  EXPECT_EQ(settings.get_choices("cache"), std::vector<std::string>{"f16"});
  settings.set("depth", "1-4*2", SettingOrigin::Flag, "-d");
  settings.set("depth", "9", SettingOrigin::Flag, "-d");
  settings.set("cache", "q8_0,f16", SettingOrigin::Flag, "-ctk");
  const std::vector<int64_t> depths{1, 2, 4, 9};
  const std::vector<std::string> types{"q8_0", "f16"};
  EXPECT_EQ(settings.get_ints("depth"), depths);
  EXPECT_EQ(settings.get_choices("cache"), types);
  const auto refused = [&](const char* name, const char* value) {
    return error_of(ErrorKind::Usage, [&] { settings.set(name, value, SettingOrigin::Flag, "-x"); });
  };
  EXPECT_NE(refused("depth", "0-100").find("65 is out of range; allowed: 0 to 64"), std::string::npos);
  EXPECT_NE(refused("depth", "4-1").find("ends before it begins"), std::string::npos);
  EXPECT_NE(refused("cache", "f16,q8_1").find("did you mean q8_0"), std::string::npos);
  refused("cache", "f16,");
  refused("cache", "");
  error_of(ErrorKind::Argument, [&] { settings.get_int("depth"); });
  error_of(ErrorKind::Argument, [&] { settings.get_texts("cache"); });
  error_of(ErrorKind::Argument, [] {
    constexpr std::array kSingle{SettingSpec{.name = "n", .type = SettingType::Ints, .default_text = "1"}};
    Settings wrong({kSingle});
  });
}

TEST(SettingsText, FlagsAndVariables) {
  EXPECT_EQ(variable_name("kv.resident"), "STRATA_KV_RESIDENT");
  EXPECT_EQ(flag_names({.name = "kv.cache_type"}), std::vector<std::string>{"--kv-cache-type"});
  const std::vector<std::string> two{"-t", "--threads"};
  EXPECT_EQ(flag_names(kSpecs[0]), two);
}

TEST(SettingsText, NearestName) {
  const std::vector<std::string> names{"--threads", "--temp", "-v", "--log-level", "--top-k", "--temperature-max"};
  EXPECT_EQ(did_you_mean("--theads", names), "; did you mean --threads?");   // a letter missing
  EXPECT_EQ(did_you_mean("--thraeds", names), "; did you mean --threads?");  // two swapped
  EXPECT_EQ(did_you_mean("--log_level", names), "; did you mean --log-level?");
  EXPECT_EQ(did_you_mean("-threads", names), "; did you mean --threads?");
  EXPECT_EQ(did_you_mean("--TOP-K", names), "; did you mean --top-k?");
  EXPECT_EQ(did_you_mean("--tmep", names), "; did you mean --temp?");  // a swap is one slip, not two
  EXPECT_EQ(did_you_mean("--temperature", names), "; did you mean --temperature-max?");
  EXPECT_EQ(did_you_mean("-V", names), "; did you mean -v?");
  EXPECT_EQ(did_you_mean("-x", names), "");
  EXPECT_EQ(did_you_mean("--banana", names), "");
  EXPECT_EQ(did_you_mean("--text", names), "");  // two slips in four letters are too many
  EXPECT_EQ(did_you_mean("", names), "");
  EXPECT_EQ(did_you_mean("THREDS", {"THREADS"}, "STRATA_"), "; did you mean STRATA_THREADS?");
}

}  // namespace
}  // namespace strata
