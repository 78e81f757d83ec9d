// What the file will hold: every output tensor with the rows of the checkpoint it is made of. The mapper hands out
// checkpoint tensors by name, checks their shapes and remembers which ones a rule has used.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gguf/hf/config.h"
#include "gguf/hf/rows.h"

namespace strata::gguf::hf {

struct Target {
  std::string name;
  std::vector<uint64_t> ne;      // file order: ne[0] contiguous
  std::vector<Piece> pieces;     // in the order of their rows
  std::vector<float> constants;  // values that come from the config (rope_freqs); then there are no pieces
};

// n-gram constants of all PLE modules, module by module; offsets count rows of the joined table.
struct PleConstants {
  std::vector<uint64_t> layer_multipliers, head_offsets, head_vocab_sizes;
  uint64_t row_width = 0;
};

using Shape = std::vector<uint64_t>;  // HF order, outermost first

class Mapper {
 public:
  Mapper(const Checkpoint& checkpoint, const Config& config);

  const Config& config() const { return config_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }

  // Names are those of gguf.md, section 5: without `language_model.`, and `mtp.` without a leading `model.`.
  bool has(const std::string& name) const { return names_.count(name) != 0; }
  bool has_prefix(const std::string& prefix) const;
  std::vector<std::string> names_with_prefix(const std::string& prefix) const;

  // The tensor, marked as used. Error{Model} when it is missing, of another shape (extents of 1 do not count) or of a
  // type that weights cannot have.
  const SourceTensor& take(const std::string& name, const Shape& shape);
  const SourceTensor& take_any(const std::string& name);  // shape and type are the caller's to check
  std::vector<uint64_t> take_integers(const std::string& name, uint64_t count);
  void drop(const std::string& name);  // used, but not written

  // All of `source` as a matrix of `width` columns.
  Piece whole(const SourceTensor& source, uint64_t width) const;
  void add(std::string name, std::vector<uint64_t> ne, Piece piece);
  void add(Target target);
  void matrix(std::string name, const std::string& hf, uint64_t rows, uint64_t columns);
  void vector(std::string name, const std::string& hf, uint64_t length, Op op = Op::Copy);
  void norm(std::string name, const std::string& hf, uint64_t length);  // + 1 in families with zero-centred norms

  // For parts that are written whole or not at all.
  struct State {
    size_t targets;
    std::set<std::string> used;
  };
  State state() const { return {targets_.size(), used_}; }
  void restore(State state);

  std::vector<std::string> unused() const;
  std::vector<Target> take_targets() { return std::move(targets_); }

 private:
  const Checkpoint& checkpoint_;
  const Config& config_;
  std::map<std::string, const SourceTensor*> names_;
  std::set<std::string> used_;
  std::vector<Target> targets_;
};

}  // namespace strata::gguf::hf
