#include "gguf/quant_scheme.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "gguf/hf/storage.h"
#include "gguf/quant.h"

namespace strata::gguf {
namespace {

constexpr std::string_view kNgramTable = "per_layer_token_embd.weight";

std::vector<QuantScheme> make_schemes() {
  std::vector<QuantScheme> list;
  for (const DTypeInfo& entry : all_dtypes())
    if (has_encoder(entry.type)) list.push_back({entry.name, entry.type, QuantMix::None, hf::file_type(entry.type)});
  list.push_back({"Q3_K_M", DType::Q3_K, QuantMix::Medium, 12});
  list.push_back({"Q4_K_S", DType::Q4_K, QuantMix::Small, 14});
  list.push_back({"Q4_K_M", DType::Q4_K, QuantMix::Medium, 15});
  list.push_back({"Q5_K_M", DType::Q5_K, QuantMix::Medium, 17});
  return list;
}

DType one_higher(DType type) {
  switch (type) {
    case DType::Q3_K: return DType::Q4_K;
    case DType::Q4_K: return DType::Q5_K;
    default: return DType::Q6_K;
  }
}

// A tensor's place: "blk.3.ffn_down.weight" is ffn_down in block 3; -1 outside blocks.
struct Role {
  std::string_view part;
  int block = -1;
};

Role role_of(std::string_view name) {
  Role role{name};
  if (name.starts_with("blk.")) {
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + 4, end, role.block);
    if (error != std::errc{} || rest == end || *rest != '.') return {name};
    role.part = name.substr(static_cast<size_t>(rest + 1 - name.data()));
  }
  if (role.part.ends_with(".weight")) role.part.remove_suffix(7);
  return role;
}

// The first and last eighth of the layers, and every third between them: where errors cost most.
bool wants_more_bits(size_t index, size_t count) {
  return index < count / 8 || index >= 7 * count / 8 || (index - count / 8) % 3 == 2;
}

// index: among the `count` layers that have this part.
DType mixed_type(const QuantScheme& scheme, std::string_view part, size_t index, size_t count, bool tied) {
  const bool medium = scheme.mix == QuantMix::Medium, low = scheme.base == DType::Q3_K;
  if (part == "output" || (part == "token_embd" && tied)) return DType::Q6_K;
  if (part == "token_embd") return medium ? one_higher(scheme.base) : scheme.base;
  if (part == "attn_qkv") return medium ? one_higher(scheme.base) : scheme.base;
  if (part == "attn_output" || part == "ssm_out") return low ? DType::Q4_K : scheme.base;
  const bool value = part == "attn_v", down = part.starts_with("ffn_down");
  if (!value && !down) return scheme.base;
  if (low) return index < (value ? 2 : count / 16) ? DType::Q5_K : DType::Q4_K;
  if (medium) return wants_more_bits(index, count) ? DType::Q6_K : scheme.base;
  return index < (value ? 4 : count / 8) ? DType::Q5_K : scheme.base;
}

// The same number of bits or a few more, in blocks of 32; F16 when even those do not fit.
DType smaller_blocks(DType type) {
  switch (type) {
    case DType::Q3_K:
    case DType::IQ3_S:
    case DType::IQ4_XS:
    case DType::Q4_K: return DType::IQ4_NL;
    case DType::Q5_K:
    case DType::Q6_K: return DType::Q8_0;
    default: return DType::F16;
  }
}

}  // namespace

const std::vector<QuantScheme>& quant_schemes() {
  static const std::vector<QuantScheme> list = make_schemes();
  return list;
}

std::optional<QuantScheme> quant_scheme(std::string_view name) {
  auto same = [](char a, char b) {
    return std::toupper(static_cast<unsigned char>(a)) == std::toupper(static_cast<unsigned char>(b));
  };
  for (const QuantScheme& scheme : quant_schemes())
    if (std::equal(name.begin(), name.end(), scheme.name.begin(), scheme.name.end(), same)) return scheme;
  return std::nullopt;
}

std::string quant_scheme_names() {
  std::string names;
  for (const QuantScheme& scheme : quant_schemes()) names += (names.empty() ? "" : ", ") + std::string(scheme.name);
  return names;
}

bool keeps_type(const TensorInfo& tensor) {
  const std::string_view name = tensor.name;
  if (hf::stays_f32(name, tensor.dims) || name.ends_with("norm.weight")) return true;
  for (const std::string_view part :
       {".ffn_gate_inp", ".ssm_alpha", ".ssm_beta", ".ssm_ba", ".indexer.", "_inject.", ".ple_norm_", ".ple_conv1d"})
    if (name.find(part) != std::string_view::npos) return true;
  const DType type = tensor.type;
  return !info(type).quantised && type != DType::F32 && type != DType::F16 && type != DType::BF16;
}

DType fitting_type(DType wanted, uint64_t row) {
  while (row % info(wanted).block_elements != 0) wanted = smaller_blocks(wanted);
  return wanted;
}

std::vector<ChosenType> choose_types(std::span<const TensorInfo> tensors, const QuantScheme& scheme) {
  std::map<std::string_view, std::vector<int>> blocks;  // that have a part, in order
  bool tied = true;
  for (const TensorInfo& tensor : tensors) {
    const Role role = role_of(tensor.name);
    blocks[role.part].push_back(role.block);
    tied = tied && role.part != "output";
  }
  for (auto& [part, list] : blocks) std::sort(list.begin(), list.end());

  std::vector<ChosenType> chosen;
  for (const TensorInfo& tensor : tensors) {
    if (keeps_type(tensor)) {
      chosen.push_back({tensor.type, true, {}});
      continue;
    }
    const Role role = role_of(tensor.name);
    DType wanted = scheme.base;
    if (scheme.mix != QuantMix::None) {
      const std::vector<int>& all = blocks[role.part];
      const auto index = static_cast<size_t>(std::lower_bound(all.begin(), all.end(), role.block) - all.begin());
      wanted = mixed_type(scheme, role.part, index, all.size(), tied);
    }
    ChosenType one{fitting_type(wanted, tensor.ne[0]), false, {}};
    if (one.type != wanted)
      one.note =
          "rows of " + std::to_string(tensor.ne[0]) + " are no whole blocks of " + std::string(to_string(wanted));
    if (tensor.name == kNgramTable && info(one.type).block_elements > 32) {
      one.note = "rows are read one by one: blocks of 32";
      one.type = fitting_type(smaller_blocks(one.type), tensor.ne[0]);
    }
    chosen.push_back(std::move(one));
  }
  return chosen;
}

}  // namespace strata::gguf
