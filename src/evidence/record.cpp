#include "evidence/record.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "source_hashes.h"  // generated: kSourceHashes

namespace strata {
namespace {

constexpr int kSchema = 1;
constexpr size_t kMaxRecord = size_t{1} << 20;

void write_document(const std::string& path, const nlohmann::ordered_json& document) {
  OutputFile file(path);
  const std::string text = document.dump(2) + "\n";
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace

std::string source_hash(const std::string& op, SourceSet set) {
  for (const SourceHashes& one : kSourceHashes)
    if (op == one.op) return set == SourceSet::Cpu ? one.cpu : set == SourceSet::Cuda ? one.cuda : one.amd;
  return {};
}

bool is_simulated(const std::string& device_class) { return device_class.starts_with("sim-"); }

const char* record_state(const std::optional<ParityRecord>& record, const std::string& source_folder,
                         const KernelImage* image) {
  if (!record) return "never run";
  if (!record->passed) return "failed";
  const bool simulated = is_simulated(record->device_class);
  const bool amd = simulated || record->device_class.starts_with("gfx");
  const SourceSet set = image == nullptr ? SourceSet::Cpu : amd ? SourceSet::Amd : SourceSet::Cuda;
  if (record->source_hash != source_hash(source_folder, set)) return "stale";
  return simulated ? "interpreted" : "verified";
}

std::string record_path(const std::string& folder, const std::string& op, const std::string& arm,
                        const std::string& device_class) {
  return folder + "/parity/" + op + "/" + arm + "@" + device_class + ".json";
}

void write_record(const std::string& folder, const ParityReport& report, const RecordContext& context) {
  const std::string path = record_path(folder, report.op, report.arm, report.device_class);
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  if (failed) throw Error(ErrorKind::File, "cannot create the folder: " + failed.message(), path);
  nlohmann::ordered_json failures = nlohmann::ordered_json::array();
  for (const ParityFailure& failure : report.failures)
    failures.push_back({{"case", failure.test_case}, {"what", failure.what}});
  const nlohmann::ordered_json document{
      {"schema", kSchema},
      {"operator", report.op},
      {"arm", report.arm},
      {"class", report.device_class},
      {"passed", report.passed()},
      {"cases", report.cases},
      {"cases_refused", report.refused},
      {"elements", report.elements},
      {"utilisation", report.utilisation},
      {"utilisation_case", report.worst_case},
      {"same_bits", report.variants},
      {"negative_controls", report.controls},
      {"mutants_caught", report.mutants_caught},
      {"mutants", report.mutants},
      {"positions_with_force", report.force},
      {"seed", report.seed},
      {"failures", failures},
      {"source_hash", context.source_hash},
      {"device", context.device},
      {"compiler", context.compiler},
      {"commit", context.commit},
      {"date", context.date},
  };
  write_document(path, document);
}

void add_sanitizer_summary(const std::string& folder, const std::string& summary) {
  try {
    const auto found = nlohmann::ordered_json::parse(read_file(summary, kMaxRecord));
    const std::string device_class = found.at("class");
    for (const auto& [op, errors] : found.at("errors").items()) {
      const std::filesystem::path arms = std::filesystem::path(folder) / "parity" / op;
      if (!std::filesystem::is_directory(arms)) continue;
      for (const auto& entry : std::filesystem::directory_iterator(arms)) {
        if (!entry.path().filename().string().ends_with("@" + device_class + ".json")) continue;
        auto document = nlohmann::ordered_json::parse(read_file(entry.path().string(), kMaxRecord));
        document["sanitizer"] = {{"commit", found.at("commit")}, {"date", found.at("date")}, {"errors", errors}};
        write_document(entry.path().string(), document);
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::Format, std::string("is no summary of sanitizers: ") + error.what(), summary);
  }
}

std::optional<ParityRecord> read_record(const std::string& folder, const std::string& op, const std::string& arm,
                                        const std::string& device_class) {
  const std::string path = record_path(folder, op, arm, device_class);
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    const auto document = nlohmann::json::parse(read_file(path, kMaxRecord));
    if (document.at("schema") != kSchema) throw Error(ErrorKind::Format, "has another schema than this program", path);
    ParityRecord record{.op = document.at("operator"),
                        .arm = document.at("arm"),
                        .device_class = document.at("class"),
                        .source_hash = document.at("source_hash"),
                        .device = document.at("device"),
                        .date = document.at("date")};
    record.cases = document.at("cases");
    record.utilisation = document.at("utilisation");
    record.passed = document.at("passed");
    if (document.contains("sanitizer"))
      for (const auto& [tool, errors] : document.at("sanitizer").at("errors").items()) {
        record.sanitizers += errors.is_number();
        record.sanitizers_clean += errors.is_number() && errors == 0;
      }
    return record;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::Format, std::string("is no parity record: ") + error.what(), path);
  }
}

}  // namespace strata
