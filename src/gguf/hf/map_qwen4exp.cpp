#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "gguf/hf/map.h"

namespace strata::gguf::hf {
namespace {

constexpr std::string_view kShard = "ngram_embedding.shard_";

// Where the n-gram embedding of a layer lives: below its layer, or, with one module only, anywhere.
std::string embedding_prefix(const Mapper& m, const std::string& ple) {
  const std::string usual = ple + "ple_embedding.";
  if (m.has_prefix(usual) || m.config().ple.layers.size() != 1) return usual;
  for (const std::string& name : m.names_with_prefix("model.")) {
    const size_t at = name.find(kShard);
    if (at != std::string::npos) return name.substr(0, at);
  }
  return usual;
}

// The shards of one module appended to the joined table; returns the rows of this module.
uint64_t add_table(Mapper& m, const std::string& prefix, uint64_t width, Target& table) {
  uint64_t rows = 0;
  for (uint64_t part = 0; part < m.config().ple.parts; ++part) {
    const std::string name = prefix + std::string(kShard) + std::to_string(part) + ".weight";
    const SourceTensor& shard = m.take_any(name);
    if (shard.shape.size() != 2 || shard.shape[1] != width || shard.elements == 0 || !is_real(shard.type))
      throw Error(ErrorKind::Model, "tensor " + name + " must be a real matrix with rows of " + std::to_string(width),
                  m.checkpoint().directory());
    table.pieces.push_back(m.whole(shard, width));
    rows += shard.shape[0];
  }
  return rows;
}

void add_constants(Mapper& m, const std::string& prefix, uint64_t first_row, uint64_t rows, PleConstants& constants) {
  const PleConfig& p = m.config().ple;
  const auto multipliers = m.take_integers(prefix + "layer_multipliers", p.ngram_size);
  const auto offsets = m.take_integers(prefix + "ngram_heads_offsets", p.heads());
  const auto sizes = m.take_integers(prefix + "ngram_heads_vocab_sizes", p.heads());
  for (size_t h = 0; h < offsets.size(); ++h) {
    uint64_t end = 0;
    if (sizes[h] == 0 || !checked_add(offsets[h], sizes[h], end) || end > rows)
      throw Error(ErrorKind::Model,
                  "head " + std::to_string(h) + " of " + prefix + " reaches beyond its table of " +
                      std::to_string(rows) + " rows",
                  m.checkpoint().directory());
    constants.head_offsets.push_back(first_row + offsets[h]);
  }
  auto append = [](std::vector<uint64_t>& to, const std::vector<uint64_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(constants.layer_multipliers, multipliers);
  append(constants.head_vocab_sizes, sizes);
}

}  // namespace

void map_hyper_connection(Mapper& m, const std::string& hf, const std::string& out, bool inject) {
  const Config& c = m.config();
  const uint64_t wide = c.streams * c.hidden;
  m.norm(out + "norm.weight", hf + "hc_norm.weight", wide);
  m.matrix(out + "down.weight", hf + "input_mix_weight_down.weight", c.stream_rank, wide);
  m.matrix(out + "up.weight", hf + "input_mix_weight_up.weight", wide, c.stream_rank);
  if (inject) m.matrix(out + "inject.weight", hf + "block_inject_weight.weight", c.streams, wide);
}

void map_indexer(Mapper& m, const Block& b) {
  const Config& c = m.config();
  const IndexerConfig& x = c.indexer;
  const std::string hf = b.hf + "self_attn.indexer.";
  const uint64_t query_rows = x.heads * x.head_dim;
  const SourceTensor& both = m.take(hf + "index_qk_proj.weight", {query_rows + x.head_dim, c.hidden});
  Piece query = m.whole(both, c.hidden), key = query;
  query.row_count = query_rows;
  key.first_row = query_rows;
  key.row_count = x.head_dim;
  m.add(b.out + "indexer.q_proj.weight", {c.hidden, query_rows}, std::move(query));
  m.add(b.out + "indexer.k_proj.weight", {c.hidden, x.head_dim}, std::move(key));
  m.norm(b.out + "indexer.q_norm.weight", hf + "q_layernorm.weight", x.head_dim);
  m.norm(b.out + "indexer.k_norm.weight", hf + "k_layernorm.weight", x.head_dim);
}

void map_ple(Mapper& m, PleConstants& constants) {
  const Config& c = m.config();
  const PleConfig& p = c.ple;
  if (p.layers.empty()) return;
  const uint64_t wide = c.streams * c.hidden;
  constants.row_width = p.embed_dim / p.heads();
  Target table{"per_layer_token_embd.weight", {constants.row_width, 0}, {}, {}};
  for (const uint64_t layer : p.layers) {
    const std::string hf = "model.layers." + std::to_string(layer) + ".ple.";
    const std::string out = "blk." + std::to_string(layer) + ".ple_";
    m.matrix(out + "key.weight", hf + "key_proj.weight", wide, p.embed_dim);
    m.matrix(out + "value.weight", hf + "value_proj.weight", c.hidden, p.embed_dim);
    for (const char* norm : {"norm_key", "norm_query", "norm_conv"})
      m.norm(out + norm + ".weight", hf + norm + ".weight", wide);
    m.matrix(out + "conv1d.weight", hf + "conv1d.weight", wide, p.conv_kernel);
    const std::string prefix = embedding_prefix(m, hf);
    const uint64_t rows = add_table(m, prefix, constants.row_width, table);
    add_constants(m, prefix, table.ne[1], rows, constants);
    table.ne[1] += rows;
  }
  m.add(std::move(table));
}

}  // namespace strata::gguf::hf
