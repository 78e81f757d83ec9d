#include "gguf/hf/mapper.h"

#include <cstring>

#include "base/error.h"
#include "gguf/hf/names.h"

namespace strata::gguf::hf {
namespace {

std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (const uint64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

Shape without_ones(const Shape& shape) {
  Shape result;
  for (const uint64_t extent : shape)
    if (extent != 1) result.push_back(extent);
  return result;
}

}  // namespace

Mapper::Mapper(const Checkpoint& checkpoint, const Config& config) : checkpoint_(checkpoint), config_(config) {
  for (const SourceTensor& tensor : checkpoint.tensors()) {
    if (is_dropped(tensor.name)) continue;
    if (!names_.emplace(canonical_name(tensor.name), &tensor).second)
      throw Error(ErrorKind::Model, "holds tensor " + canonical_name(tensor.name) + " under two names",
                  checkpoint.directory());
  }
}

bool Mapper::has_prefix(const std::string& prefix) const {
  const auto found = names_.lower_bound(prefix);
  return found != names_.end() && found->first.starts_with(prefix);
}

std::vector<std::string> Mapper::names_with_prefix(const std::string& prefix) const {
  std::vector<std::string> names;
  for (auto at = names_.lower_bound(prefix); at != names_.end() && at->first.starts_with(prefix); ++at)
    names.push_back(at->first);
  return names;
}

const SourceTensor& Mapper::take_any(const std::string& name) {
  const auto found = names_.find(name);
  if (found == names_.end())
    throw Error(ErrorKind::Model, "tensor " + name + " is missing from the checkpoint", checkpoint_.directory());
  used_.insert(name);
  return *found->second;
}

const SourceTensor& Mapper::take(const std::string& name, const Shape& shape) {
  const SourceTensor& tensor = take_any(name);
  if (without_ones(tensor.shape) != without_ones(shape))
    throw Error(ErrorKind::Model,
                "tensor " + name + " has shape " + text_of(tensor.shape) + ", the config needs " + text_of(shape),
                checkpoint_.directory());
  if (!is_real(tensor.type))
    throw Error(ErrorKind::Model,
                "tensor " + name + " has dtype " + std::string(to_string(tensor.type)) +
                    "; weights must be F16, BF16, F32 or F64 (convert the unquantised release)",
                checkpoint_.directory());
  return tensor;
}

std::vector<uint64_t> Mapper::take_integers(const std::string& name, uint64_t count) {
  const SourceTensor& tensor = take_any(name);
  if ((tensor.type != SourceType::I64 && tensor.type != SourceType::U64) || tensor.elements != count)
    throw Error(ErrorKind::Model, "tensor " + name + " must hold " + std::to_string(count) + " 64-bit integers",
                checkpoint_.directory());
  std::vector<uint64_t> values(count);
  std::memcpy(values.data(), checkpoint_.data(tensor).data(), tensor.bytes);
  for (const uint64_t value : values)
    if (value >> 63 != 0)
      throw Error(ErrorKind::Model, "tensor " + name + " holds a negative value", checkpoint_.directory());
  return values;
}

void Mapper::drop(const std::string& name) { used_.insert(name); }

Piece Mapper::whole(const SourceTensor& source, uint64_t width) const {
  Piece piece;
  piece.source = &source;
  piece.width = width;
  piece.row_count = source.elements / width;
  return piece;
}

void Mapper::add(Target target) { targets_.push_back(std::move(target)); }

void Mapper::add(std::string name, std::vector<uint64_t> ne, Piece piece) {
  Target target{std::move(name), std::move(ne), {}, {}};
  target.pieces.push_back(std::move(piece));
  add(std::move(target));
}

void Mapper::matrix(std::string name, const std::string& hf, uint64_t rows, uint64_t columns) {
  add(std::move(name), {columns, rows}, whole(take(hf, {rows, columns}), columns));
}

void Mapper::vector(std::string name, const std::string& hf, uint64_t length, Op op) {
  Piece piece = whole(take(hf, {length}), 1);
  piece.op = op;
  add(std::move(name), {length}, std::move(piece));
}

void Mapper::norm(std::string name, const std::string& hf, uint64_t length) {
  vector(std::move(name), hf, length, is_hybrid(config_.family) ? Op::AddOne : Op::Copy);
}

void Mapper::restore(State state) {
  targets_.resize(state.targets);
  used_ = std::move(state.used);
}

std::vector<std::string> Mapper::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : names_)
    if (used_.count(name) == 0) names.push_back(name);
  return names;
}

}  // namespace strata::gguf::hf
