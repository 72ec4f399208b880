// A trained model as a file for other programs, and back.
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

// A folder of the transformers library (core/models/huggingface.h).
bool is_model_folder(const std::string& path);
// A run of its model with dense matrices, named as the folder, with its tokenizer.
RunConfig config_of_folder(const std::string& path);

// Reads a safetensors file with official (or own) names, or a folder of the transformers library, into a checkpoint `output` of a run with
// this config, at step 0. Ranks may be smaller than the config's. Throws Error(storage | config) naming the tensor that does not fit.
// Matrices that the run holds as tensor trains are brought into them (tt_svd), and what that loses is returned.
struct Compressed {
  std::string layer;
  int64_t dense = 0, entries = 0;
  double error = 0;  // relative, of all entries together
};
std::vector<Compressed> import_model(const std::string& file, const RunConfig& config, const std::string& output);

}  // namespace comera
