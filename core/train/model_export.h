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

// What was written is read again. Largest differences from the model's own: of an entry of a matrix, and of a logit on a few random tokens.
struct Difference {
  double weight = 0, logit = 0;
  std::string tokenizer = {};  // the run's, whose files were written, too; "": it has none, or it is not there any more
  std::string missing = {};    // the tokenizer, where it no longer exists
};

// The model of checkpoint `file` as a folder of the transformers library, every matrix as a dense one, and its tokenizer. `dtype`:
// "float32", "bfloat16" or "float16". Throws Error(config) for a model without such a form.
Difference export_folder(const std::string& file, const std::string& folder, const std::string& dtype);

// The factors of a run with LoRA as an adapter folder of the PEFT library for the base model in folder `base`, and with them whatever else
// the run has that is not the base model's: its head, or with method.lora.rest norms and biases. Throws Error(config) for a run without
// factors, and where its frozen matrices are not those of the base model.
Difference export_adapter(const std::string& file, const std::string& base, const std::string& folder);

// A LLaMA model as a GGUF file (core/models/gguf.h), with the tokenizer of the run where that is a tokenizer.json. `dtype`: "float32",
// "float16" or "q8_0".
Difference export_gguf(const std::string& file, const std::string& output, const std::string& dtype);

}  // namespace comera
