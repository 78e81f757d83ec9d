#include "model/model.h"

#include "model/placement.h"

namespace strata {

Model Model::load(const std::string& path, const RopeOverride& rope) {
  Model model;
  model.file_ = std::make_unique<gguf::File>(gguf::File::open(path));
  model.spec_ = std::make_unique<ModelSpec>(read_spec(*model.file_, rope));
  model.weights_ = std::make_unique<Weights>(bind_weights(*model.file_, *model.spec_));
  return model;
}

void Model::place(const MemorySpace& space) {
  if (!space.on_host()) placed_ = place_weights(*weights_, space);
}

}  // namespace strata
