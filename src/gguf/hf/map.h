// The mapping of each family from checkpoint names to file names (gguf.md, sections 3, 5 and 7).
#pragma once

#include <string>
#include <vector>

#include "gguf/hf/mapper.h"

namespace strata::gguf::hf {

struct Plan {
  std::vector<Target> targets;
  uint64_t mtp_blocks = 0;
  PleConstants ple;
  size_t dropped = 0;  // tensors of other modalities and buffers
};

// Error{Model} naming a tensor that is missing, has another shape, or that no rule uses.
Plan plan_conversion(const Checkpoint& checkpoint, const Config& config, const Warn& warn);

// A transformer block: its names in the checkpoint and in the file start with these.
struct Block {
  std::string hf;   // "model.layers.3."
  std::string out;  // "blk.3."
};

// map_block.cpp: parts that several families share.
void map_head(Mapper& mapper);                           // token_embd, output
void map_attention(Mapper& mapper, const Block& block);  // projections and q/k norms
void map_mlp(Mapper& mapper, const Block& block, bool dense);

// map_delta_net.cpp
void map_delta_net(Mapper& mapper, const Block& block);

// map_qwen4exp.cpp
void map_hyper_connection(Mapper& mapper, const std::string& hf, const std::string& out, bool inject);
void map_indexer(Mapper& mapper, const Block& block);
void map_ple(Mapper& mapper, PleConstants& constants);  // all modules and the joined table

// map_model.cpp: a block of the trunk, or the block inside the MTP part.
void map_block(Mapper& mapper, const Block& block, bool recurrent, bool dense);

// map_mtp.cpp: the number of MTP blocks written; 0 with a warning when the set is incomplete or unknown.
uint64_t map_mtp(Mapper& mapper, const Warn& warn);

}  // namespace strata::gguf::hf
