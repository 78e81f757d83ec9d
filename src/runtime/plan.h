// How much memory a run takes, before anything is loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/accelerator.h"
#include "gguf/gguf.h"
#include "model/sequence.h"

namespace strata {

struct PlanRequest {
  int64_t context = 0;  // positions of each sequence
  int64_t slots = 1;    // sequences at a time
  int64_t micro_batch = 512;
  CacheOptions caches;
  std::string tier_folder = kDefaultTierFolder;
  std::shared_ptr<Accelerator> accelerator{};  // whose memory it takes; null: this machine's
};

struct MemoryPlan {
  uint64_t weights = 0;    // mapped from the file: read when used, given back under pressure
  StateBytes states;       // of all sequences at full context
  uint64_t scratch = 0;    // of one pass, an estimate from the shapes
  uint64_t available = 0;  // where it is taken, now
  // Of states.kv: in a file with all of it, and in memory its working sets, the rows of a pass, and one layer as a
  // whole while its attention runs. Without a file all of it is in memory.
  uint64_t kv_file = 0, kv_memory = 0;
  uint64_t disk = 0;  // free where the file is; 0: unknown, or there is no file
  uint64_t need() const { return states.total() - states.kv + kv_memory + scratch; }  // what cannot be given back
  uint64_t total() const { return weights + need(); }
};

MemoryPlan plan_memory(const ModelSpec& spec, const gguf::File& file, const PlanRequest& request);

// Bytes of intermediate values of a pass of `rows` rows: what the forward pass takes from its arena, about.
uint64_t scratch_bytes(const ModelSpec& spec, int64_t rows, int64_t context);

// Empty when need and `floor` fit into what is available; else one line: need, have, and three ways out.
std::string does_not_fit(const ModelSpec& spec, const gguf::File& file, const PlanRequest& request, uint64_t floor);

}  // namespace strata
