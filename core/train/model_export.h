// A trained model as a file for other programs.
#pragma once
#include <string>
#include <vector>

#include "core/config/config.h"

namespace comera {

enum class ExportNames { own, official };  // official: the published PyTorch model's state_dict

// Writes the parameters of checkpoint `file` to `output`, as F32. `dense`: every matrix as a plain one, whatever its
// form, masks of ranks applied; `folded`: rank vectors multiplied into the cores. Throws Error(config) when a parameter
// has no official name.
void export_model(const std::string& file, const std::string& output, ExportNames names, bool dense, bool folded);

// The same as a folder of the transformers library, every matrix as a dense one. `dtype`: "float32", "bfloat16" or "float16". Returns the
// largest difference of an entry of the folder, read again, from the model's. Throws Error(config) for a model without such a form.
double export_folder(const std::string& file, const std::string& folder, const std::string& dtype);

}  // namespace comera
