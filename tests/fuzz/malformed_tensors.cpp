// Every tensor of every family: removed, of another shape, of another type, full of NaN.
#include <cmath>
#include <cstring>

#include "fuzz/malformed.h"

namespace strata::test {
namespace {

class TensorCases {
 public:
  TensorCases(std::string arch, MalformedCases& cases) : arch_(std::move(arch)), cases_(cases) {}

  void add(const ImageTensor& tensor) {
    name_ = tensor.name;
    one(
        "removed", [](ModelImage& image, ImageTensor& t) { image.erase_tensor(std::string(t.name)); },
        removable(name_) ? Expected::Loads : Expected::Refused);
    axes(tensor);
    types(tensor);
  }

 private:
  using Change = std::function<void(ModelImage&, ImageTensor&)>;

  static bool removable(const std::string& name) {
    const bool bias = name.ends_with(".bias") && !name.ends_with("ssm_dt.bias");
    return bias || name == "output.weight" || name == "rope_freqs.weight" || name.ends_with("shared_head_norm.weight");
  }

  void one(const std::string& what, Change change, Expected expected) {
    cases_.push_back(image_case(
        arch_ + "/" + name_ + " " + what,
        [arch = arch_, name = name_, change = std::move(change)] {
          ModelImage image = base_image(arch);
          change(image, image.tensor(name));
          return image;
        },
        expected));
  }

  // The extent alone, then with data that fits it.
  void axis(const ImageTensor& tensor, size_t axis, uint64_t extent) {
    if (tensor.ne[axis] == extent) return;
    const std::string what = "ne[" + std::to_string(axis) + "] = " + std::to_string(extent);
    // Rows beyond the range of the hash are never read.
    const bool more_rows = name_ == "per_layer_token_embd.weight" && axis == 1 && extent > tensor.ne[1];
    if (extent == 0 || extent > 4 * tensor.ne[axis])
      one(
          what, [axis, extent](ModelImage&, ImageTensor& t) { t.ne[axis] = extent; }, Expected::Refused);
    if (extent == 0 || extent > 100000) return;
    one(
        what + ", with its data",
        [axis, extent](ModelImage&, ImageTensor& t) {
          t.ne[axis] = extent;
          t.fit_data();
        },
        more_rows ? Expected::Loads : Expected::Refused);
  }

  void axes(const ImageTensor& tensor) {
    const uint64_t block = info(tensor.dtype()).block_elements;
    for (size_t a = 0; a < tensor.ne.size(); ++a) {
      const uint64_t n = tensor.ne[a];
      for (const uint64_t extent : {uint64_t{0}, uint64_t{1}, n - 1, n + 1, 2 * n, uint64_t{1} << 32, uint64_t{1} << 40,
                                    uint64_t{1} << 62, UINT64_MAX})
        axis(tensor, a, extent);
      if (a == 0 && block > 1) axis(tensor, a, n + block);
    }
    one(
        "with an axis of 2 more",
        [](ModelImage&, ImageTensor& t) {
          t.ne.push_back(2);
          t.fit_data();
        },
        Expected::Refused);
    one(
        "with axes of 1 more", [](ModelImage&, ImageTensor& t) { t.ne.resize(4, 1); }, Expected::Loads);
    if (tensor.ne.size() > 1)
      one(
          "transposed", [](ModelImage&, ImageTensor& t) { std::swap(t.ne[0], t.ne[1]); },
          tensor.ne[0] == tensor.ne[1] ? Expected::Loads : Expected::Refused);
  }

  void types(const ImageTensor& tensor) {
    for (const uint32_t id : {4u, 5u, 9u, 15u, 31u, 36u, 99u, UINT32_MAX})
      one(
          "of type id " + std::to_string(id), [id](ModelImage&, ImageTensor& t) { t.type = id; }, Expected::Refused);
    for (const DTypeInfo& type : all_dtypes()) {
      if (type.type == tensor.dtype()) continue;
      const bool fits = tensor.ne[0] % type.block_elements == 0;
      if (fits && type.type != DType::F64 && type.type != DType::I8 && type.type != DType::BF16) continue;
      one(
          "of type " + std::string(type.name),
          [type](ModelImage&, ImageTensor& t) { t.type = static_cast<uint32_t>(type.type); },
          fits ? Expected::Survives : Expected::Refused);
      if (fits)
        one(
            "of zeros of type " + std::string(type.name),
            [type](ModelImage&, ImageTensor& t) {
              t.type = static_cast<uint32_t>(type.type);
              t.data.assign(1, '\0');
              t.fit_data();
            },
            name_ == "rope_freqs.weight" ? Expected::Refused : Expected::Loads);
    }
  }

  std::string arch_, name_;
  MalformedCases& cases_;
};

// Data of a tensor with every value, or only its first block, set to what `fill` says.
enum class Fill { NaN, Infinity };
std::string filled(const ImageTensor& tensor, Fill fill, bool all) {
  const DTypeInfo& t = info(tensor.dtype());
  std::string block(t.block_bytes, '\x01');
  if (tensor.dtype() == DType::F32) {
    const float value = fill == Fill::NaN ? NAN : INFINITY;
    std::memcpy(block.data(), &value, sizeof value);
  } else {  // Q8_0: an f16 scale, then small integers
    const uint16_t scale = fill == Fill::NaN ? 0x7E00 : 0x7C00;
    std::memcpy(block.data(), &scale, sizeof scale);
  }
  std::string data = tensor.data;
  for (size_t at = 0; at < (all ? data.size() : block.size()); at += block.size())
    data.replace(at, block.size(), block);
  return data;
}

// A NaN in all of these reaches every logit, wherever the token or the route goes.
bool always_read(const std::string& name) {
  for (const char* part : {"token_embd", "output", "attn_norm", "ffn_norm", "attn_output", "ssm_out", "ffn_down.",
                           "ffn_down_exps", "ffn_down_shexp", "attn_v", "hc_attn_norm", "hc_ffn_norm", "ple_value"})
    if (name.find(part) != std::string::npos && name.find("nextn") == std::string::npos) return true;
  return false;
}

}  // namespace

MalformedCases tensor_cases(const std::string& arch) {
  MalformedCases cases;
  TensorCases maker(arch, cases);
  for (const ImageTensor& tensor : base_image(arch).tensors) maker.add(tensor);
  return cases;
}

MalformedCases scale_cases(const std::string& arch) {
  MalformedCases cases;
  const std::string mtp_block = is_hybrid(arch) ? "blk.2." : "blk.-.";
  for (const ImageTensor& tensor : base_image(arch).tensors)
    for (const Fill fill : {Fill::NaN, Fill::Infinity})
      for (const bool all : {true, false}) {
        const std::string name = tensor.name;
        const bool read = always_read(name) && !name.starts_with(mtp_block);
        Expected expected = all && read && fill == Fill::NaN ? Expected::NotFinite : Expected::Survives;
        if (name == "rope_freqs.weight") expected = Expected::Refused;
        cases.push_back(image_case(
            arch + "/" + name + (all ? " all " : " begins with ") + (fill == Fill::NaN ? "NaN" : "infinity"),
            [=] {
              ModelImage image = base_image(arch);
              ImageTensor& t = image.tensor(name);
              t.data = filled(t, fill, all);
              return image;
            },
            expected));
      }
  return cases;
}

MalformedCases block_cases() {
  MalformedCases cases;
  for (const DTypeInfo& type : all_dtypes())
    for (const int byte : {0x00, 0x7C, 0x7F, 0x80, 0xFC, 0xFF})
      cases.push_back(image_case(
          "blocks of " + std::string(type.name) + " with every byte " + std::to_string(byte),
          [=] {
            static const ModelImage wide = tiny_model("qwen3moe", {.width = 256, .layers = 1});
            ModelImage image = wide;
            for (ImageTensor& t : image.tensors) {
              if (t.dtype() != DType::Q8_0 || t.name == "token_embd.weight") continue;
              t.type = static_cast<uint32_t>(type.type);
              t.data.assign(1, static_cast<char>(byte));
              t.fit_data();
            }
            return image;
          },
          byte == 0 ? Expected::Loads : Expected::Survives));
  return cases;
}

}  // namespace strata::test
