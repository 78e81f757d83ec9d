#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "gguf/hf/map.h"

namespace strata::gguf::hf {
namespace {

constexpr uint64_t kMaxBlocks = 64;

// One more than the largest k of mtp.layers.k.
uint64_t count_blocks(const Mapper& m) {
  static const std::string kLayers = "mtp.layers.";
  uint64_t count = 0;
  for (const std::string& name : m.names_with_prefix(kLayers)) {
    uint64_t k = kMaxBlocks;
    const char* begin = name.data() + kLayers.size();
    std::from_chars(begin, name.data() + name.size(), k);
    if (k >= kMaxBlocks) throw Error(ErrorKind::Model, "tensor " + name + " has an unexpected block number");
    count = std::max(count, k + 1);
  }
  return count;
}

// Checkpoints hold these once; every block of the file gets its own.
void map_shared_parts(Mapper& m, const std::string& out) {
  const Config& c = m.config();
  const uint64_t wide = c.streams * c.hidden;
  m.norm(out + "enorm.weight", "mtp.pre_fc_norm_embedding.weight", c.hidden);
  if (c.family == Family::Qwen4Exp) {
    Piece joined = m.whole(m.take("mtp.fc_embedding.weight", {c.hidden, c.hidden}), c.hidden);
    joined.right = &m.take("mtp.fc_hidden.weight", {c.hidden, c.hidden});
    joined.right_width = c.hidden;
    m.add(out + "eh_proj.weight", {2 * c.hidden, c.hidden}, std::move(joined));
    m.norm(out + "hnorm.weight", "mtp.pre_fc_norm_hidden.weight", wide);
    map_hyper_connection(m, "mtp.hyper_connection_mixer.", out + "hc_head_", false);
  } else {
    m.matrix(out + "eh_proj.weight", "mtp.fc.weight", c.hidden, 2 * c.hidden);
    m.norm(out + "hnorm.weight", "mtp.pre_fc_norm_hidden.weight", c.hidden);
    if (m.has("mtp.norm.weight")) m.norm(out + "shared_head_norm.weight", "mtp.norm.weight", c.hidden);
  }
  if (m.has("mtp.embed_tokens.weight"))
    m.matrix(out + "embed_tokens.weight", "mtp.embed_tokens.weight", c.vocab, c.hidden);
  if (m.has("mtp.lm_head.weight")) m.matrix(out + "shared_head_head.weight", "mtp.lm_head.weight", c.vocab, c.hidden);
}

uint64_t map_complete(Mapper& m) {
  const Config& c = m.config();
  const uint64_t blocks = count_blocks(m);
  if (blocks == 0) throw Error(ErrorKind::Model, "no tensor mtp.layers.0.*");
  for (uint64_t k = 0; k < blocks; ++k) {
    const std::string out = "blk." + std::to_string(c.layers + k) + ".";
    map_block(m, {"mtp.layers." + std::to_string(k) + ".", out}, false, c.experts.count == 0);
    map_shared_parts(m, out + "nextn.");
  }
  for (const std::string& name : m.unused())
    if (name.starts_with("mtp.")) throw Error(ErrorKind::Model, "tensor " + name + " has no place in the file");
  return blocks;
}

}  // namespace

uint64_t map_mtp(Mapper& m, const Warn& warn) {
  const std::vector<std::string> names = m.names_with_prefix("mtp.");
  if (names.empty() || !is_hybrid(m.config().family)) return 0;
  Mapper::State before = m.state();
  try {
    const uint64_t blocks = map_complete(m);
    const auto stated = m.config().mtp_layers;
    if (stated && *stated != blocks)
      warn("config.json states " + std::to_string(*stated) + " MTP blocks, the checkpoint holds " +
           std::to_string(blocks) + ": all of them are written");
    return blocks;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Model) throw;
    m.restore(std::move(before));
    for (const std::string& name : names) m.drop(name);
    warn("MTP tensors are left out (" + std::to_string(names.size()) + ", for instance " + names.front() +
         "): " + error.message());
    return 0;
  }
}

}  // namespace strata::gguf::hf
