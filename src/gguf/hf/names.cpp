#include "gguf/hf/names.h"

#include <algorithm>
#include <array>

namespace strata::gguf::hf {
namespace {

constexpr std::array<std::string_view, 9> kOtherModalities{"visual",         "vision_tower",          "vision_model",
                                                           "vision_encoder", "audio_tower",           "audio_model",
                                                           "audio_encoder",  "multi_modal_projector", "mm_projector"};
constexpr std::array<std::string_view, 5> kBuffers{".rotary_emb.inv_freq", ".attn.masked_bias", ".attn.bias",
                                                   ".self_attn.masked_bias", ".self_attn.bias"};

}  // namespace

std::string canonical_name(std::string_view name) {
  static constexpr std::string_view kPrefix = "language_model.";
  std::string result(name);
  for (size_t at = result.find(kPrefix); at != std::string::npos; at = result.find(kPrefix, at)) {
    if (at == 0 || result[at - 1] == '.')
      result.erase(at, kPrefix.size());
    else
      at += kPrefix.size();
  }
  if (result.starts_with("model.mtp.")) result.erase(0, 6);
  return result;
}

bool is_dropped(std::string_view name) {
  for (const std::string_view suffix : kBuffers)
    if (name.ends_with(suffix)) return true;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    for (const std::string_view part : kOtherModalities)
      if (name.substr(begin, end - begin) == part) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace strata::gguf::hf
