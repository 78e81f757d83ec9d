// Malformed and hostile model files, one defect each: what must be refused, or survived, in time and memory
// bounded by the file's size. Cases build their bytes when asked, so that thousands of them cost nothing.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/tiny_models.h"

namespace strata::test {

enum class Expected {
  Refused,    // when the file is loaded
  Loads,      // and generates
  NotFinite,  // loads; the first token fails with the error about a logit that is not finite
  Survives,   // any of the three: the defect may leave a legal model
};

struct NamedBytes {
  std::string name;
  std::string bytes;
};

struct MalformedCase {
  std::string name;                                // "qwen3/block_count = -1"
  std::function<std::vector<NamedBytes>()> files;  // the first is opened; the others lie beside it
  Expected expected = Expected::Refused;
  std::vector<std::string> parts = {};  // of the error message
};
using MalformedCases = std::vector<MalformedCase>;

// The container, with a whole model around the defect.
MalformedCases truncation_cases();  // a model cut at every byte
MalformedCases count_cases();       // every count and length of a model file, far too large
MalformedCases container_cases();
MalformedCases split_cases();

// Valid containers.
MalformedCases key_cases(const std::string& arch);  // every metadata key: zero, huge, negative, wrong type, removed
MalformedCases tensor_cases(
    const std::string& arch);  // every tensor: removed, every axis changed, types that do not fit
MalformedCases model_cases();  // hyper-parameters that contradict each other, weights or sanity
MalformedCases tokenizer_cases();
MalformedCases template_cases();
MalformedCases scale_cases(const std::string& arch);  // weights that are NaN or infinite
MalformedCases block_cases();                         // every quantised type, of blocks with every byte the same

struct MalformedGroup {
  std::string name;
  MalformedCases cases;
};
std::vector<MalformedGroup> all_malformed();

// Chat templates meant to exhaust time, memory or stack; and some that do not parse.
struct HostileTemplate {
  std::string name;
  std::string source;
};
std::vector<HostileTemplate> hostile_templates();

// A case of one file, from an image or from bytes.
MalformedCase image_case(std::string name, std::function<ModelImage()> image, Expected expected = Expected::Refused,
                         std::vector<std::string> parts = {});
MalformedCase bytes_case(std::string name, std::function<std::string()> bytes, Expected expected = Expected::Refused,
                         std::vector<std::string> parts = {});

// tiny_model(arch), built once.
const ModelImage& base_image(const std::string& arch);

}  // namespace strata::test
