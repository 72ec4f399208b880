// What a trained model knows of its data, beside its config; part of a checkpoint's metadata.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.h"

namespace comera {

struct TrainedOn {
  std::string vocabulary = {};                // fingerprint of its vocabulary; "": it has none, or it is not known
  std::vector<std::string> label_names = {};  // of the classes; empty: they are numbers, or their names are not known
};
// From a checkpoint's metadata (checkpoint.h). What is not there, or of another kind, stays empty.
TrainedOn trained_on(const Json& metadata);

}  // namespace comera
