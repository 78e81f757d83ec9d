// Records of parity runs: records/parity/<operator>/<arm>@<class>.json (schema version 1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/accelerator.h"
#include "evidence/parity.h"

namespace strata {

// What a record adds to a report: where and from which sources it was made.
struct RecordContext {
  std::string device;  // description of the processor or card
  std::string compiler;
  std::string commit;       // empty outside a repository
  std::string source_hash;  // of the operator's sources, from the build
  std::string date;         // 2026-11-29
};

struct ParityRecord {
  std::string op, arm, device_class, source_hash, device, date;
  int cases = 0;
  double utilisation = 0;
  bool passed = false;
  int sanitizers = 0, sanitizers_clean = 0;  // tools of compute-sanitizer that ran to their end, and found nothing
};

std::string record_path(const std::string& folder, const std::string& op, const std::string& arm,
                        const std::string& device_class);
void write_record(const std::string& folder, const ParityReport& report, const RecordContext& context);
// Writes what compute-sanitizer found (tools/gpu_sanitize.sh: {"class", "commit", "date", "errors": {operator: {tool:
// errors or null}}}) into the records of that class that have the same operators. Error{Format, File}.
void add_sanitizer_summary(const std::string& folder, const std::string& summary);
// Empty when there is no record; Error{Format} for one that cannot be read.
std::optional<ParityRecord> read_record(const std::string& folder, const std::string& op, const std::string& arm,
                                        const std::string& device_class);

// Classes of simulated devices, as records and AcceleratorInfo::device_class name them.
inline constexpr const char* kSimulatedClasses[] = {"sim-gfx1100", "sim-gfx1151", "sim-gfx1201", "sim-gfx942"};
bool is_simulated(const std::string& device_class);

// Hash of the sources behind an operator's arms on a kind of device, as the build saw them; empty for an unknown
// operator. Contract, oracle, bound and cases count for all.
enum class SourceSet : uint8_t { Cpu, Cuda, Amd };
std::string source_hash(const std::string& op, SourceSet set = SourceSet::Cpu);
// What a record says of an arm with that image (null: on the CPU): "never run", "failed", "stale", "verified", or for a
// simulated device "interpreted": its machine code was executed in the interpreter, which is no run on hardware.
const char* record_state(const std::optional<ParityRecord>& record, const std::string& source_folder,
                         const KernelImage* image);

}  // namespace strata
