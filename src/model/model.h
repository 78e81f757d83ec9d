// A loaded model: the mapped file, its spec and its weights. Immutable after loading and placing; may be shared by many
// sequences.
#pragma once

#include <memory>
#include <string>

#include "device/memory_space.h"
#include "gguf/gguf.h"
#include "model/spec.h"
#include "model/weights.h"

namespace strata {

class Model {
 public:
  // Error{File, Format, Model}. Maps the weights; reads none of them.
  static Model load(const std::string& path, const RopeOverride& rope = {});

  // Weights go where operators read them; the file stays mapped. Error{Memory} with need and free.
  void place(const MemorySpace& space);

  const gguf::File& file() const { return *file_; }
  const ModelSpec& spec() const { return *spec_; }
  const Weights& weights() const { return *weights_; }

 private:
  std::unique_ptr<gguf::File> file_;
  std::unique_ptr<ModelSpec> spec_;
  std::unique_ptr<Weights> weights_;
  SpaceMemory placed_;
};

}  // namespace strata
