// Settings: one registry from which flags, STRATA_* variables, config file keys, help and `strata config` come.
// Rooms and commands own constexpr arrays of SettingSpec; a Settings object holds the values of one process or test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

enum class SettingType {
  Bool,
  Int,
  Real,
  Text,
  Choice,
  Path,
  Ints,     // a list of whole numbers (base/number_list.h); always repeatable
  Choices,  // a list of choices with commas between them; always repeatable
};

// In increasing order of precedence.
enum class SettingOrigin { Default, File, Environment, Flag };
std::string_view to_string(SettingOrigin origin);

struct SettingSpec {
  std::string_view name;        // "log_level": also the key in a config file; letters a-z, digits, '_' and '.'
  std::string_view flags = {};  // "-t,--threads"; empty: "--" and the name with '.' and '_' written as '-'
  SettingType type = SettingType::Text;
  std::string_view default_text = {};  // empty: no value; only Text, Path and repeatable settings may have none
  double min = -std::numeric_limits<double>::infinity();  // Int, Ints and Real, both ends included
  double max = std::numeric_limits<double>::infinity();
  std::string_view choices = {};  // Choice, Choices: "a|b|c"
  std::string_view group = "General";
  std::string_view help = {};
  bool repeatable = false;  // a list: values of one origin add up, a higher origin replaces the list
  bool persistent = true;   // shown by `strata config` and allowed in a config file
};

struct EffectiveSetting {
  const SettingSpec* spec;
  std::vector<std::string> values;  // one value unless repeatable; none: not set
  SettingOrigin origin;
  std::string source;  // "--threads", "STRATA_THREADS", "strata.conf:3"; empty for a default
};

class Settings {
 public:
  // Every operator X adds a setting `arm.X` (variable STRATA_ARM_X); `--arm X=name` sets it too. Duplicate or malformed
  // specs are an Error{Argument}. The spans must outlive this object.
  explicit Settings(const std::vector<std::span<const SettingSpec>>& groups,
                    const std::vector<std::string>& operators = {});
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  // Checks the value whether or not a higher origin already holds, so that load order does not matter.
  // Error{Usage} names source, setting, value and what is allowed.
  void set(std::string_view name, std::string_view value, SettingOrigin origin, const std::string& source);

  // Reads every NAME=VALUE that begins with STRATA_; a name that is no setting is an Error{Usage}.
  void load_environment(const char* const* environment);

  // `key = value` lines and `#` comments; a value that begins with a double quote ends at the next one and may hold
  // \n \r \t \" \\ and \xNN. Errors name file and line.
  void load_file(const std::string& path);

  // Typed access. An unknown name or another type is an Error{Argument}: a defect of the caller.
  bool get_bool(std::string_view name) const;
  int64_t get_int(std::string_view name) const;
  double get_real(std::string_view name) const;
  const std::string& get_text(std::string_view name) const;                // Text, Choice, Path; "" when not set
  const std::vector<std::string>& get_texts(std::string_view name) const;  // repeatable Text and Path
  std::vector<int64_t> get_ints(std::string_view name) const;              // Ints: the numbers, ranges written out
  std::vector<std::string> get_choices(std::string_view name) const;       // Choices
  SettingOrigin origin(std::string_view name) const;

  const SettingSpec* find(std::string_view name) const;  // nullptr when there is none
  std::vector<EffectiveSetting> effective() const;       // persistent settings, in order of registration

 private:
  struct Entry {
    SettingSpec spec;
    std::vector<std::string> values;
    SettingOrigin origin = SettingOrigin::Default;
    std::string source;
  };

  void add(const SettingSpec& spec);
  void add_arms(const std::vector<std::string>& operators);
  void set_arm(std::string_view assignment, SettingOrigin origin, const std::string& source);
  const Entry& entry(std::string_view name) const;
  const Entry& typed_entry(std::string_view name, std::string_view type, bool matches) const;

  std::vector<std::unique_ptr<const std::string>> texts_;  // what the specs of arms point to
  std::vector<std::unique_ptr<Entry>> entries_;
  std::map<std::string, Entry*, std::less<>> by_name_;
  std::map<std::string, Entry*, std::less<>> by_variable_;
};

}  // namespace strata
