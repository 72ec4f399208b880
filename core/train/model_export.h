// A trained model as a file for other programs, and back.
#pragma once
#include <string>

#include "core/config/config.h"

namespace comera {

enum class ExportNames { own, official };  // official: the published PyTorch model's state_dict

// Writes the parameters of checkpoint `file` to `output`, as F32. `dense`: every matrix as a plain one, whatever its
// form, masks of ranks applied; `folded`: rank vectors multiplied into the cores. Throws Error(config) when a parameter
// has no official name.
void export_model(const std::string& file, const std::string& output, ExportNames names, bool dense, bool folded);

// Reads a safetensors file with official (or own) names into a checkpoint `output` of a run with this config, at step 0.
// Ranks may be smaller than the config's. Throws Error(storage | config) naming the tensor that does not fit.
void import_model(const std::string& file, const RunConfig& config, const std::string& output);

}  // namespace comera
