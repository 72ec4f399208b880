// Adapter folders of the PEFT library: adapter_config.json and adapter_model.safetensors, which has the factors of LoRA on the matrices of
// a base model, and whole parameters that were trained with them.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/config/model.h"

namespace comera {

class HuggingFaceFolder;

// The factors of a dense parameter: W + scale B A; of a table (rows, columns) W + scale (B A)^T.
struct LoraProduct {
  std::vector<double> a, b;  // (rank, in), (out, rank); of a table `in` are its rows
  int64_t rank = 0;
  double scale = 1;
  bool table = false;
};

struct Adapter {
  std::map<std::string, LoraProduct> products;          // by dense parameter: "dec0.attn.q.weight"
  std::map<std::string, std::vector<double>> replaced;  // dense parameters that are not those of the base model
  double dropout = 0;
};

// Writes a folder that PEFT loads onto the base model in folder `base`. Matrices that are one in the library (GPT-2's queries, keys and
// values) get factors that are the others side by side. Modules with a replaced parameter are written whole: values(parameter) gives the
// others, without factors. Throws Error(config) for a model without such a form, Error(storage).
void write_adapter(const std::string& path, const ModelConfig& model, const Adapter& adapter, const std::string& base,
                   const std::function<const std::vector<double>&(const std::string& param)>& values);

// put(parameter, values) for each dense parameter of the base model with the adapter multiplied in, and where the head is tied to a table
// that has factors for "head.weight", too: PEFT leaves the head without them. Throws Error(config | storage | not_found) for a folder that
// is not such an adapter, or has parts that are not known here.
void read_adapter(const std::string& path, const HuggingFaceFolder& base, const ModelConfig& model,
                  const std::function<void(const std::string& param, const std::vector<double>& values)>& put);

}  // namespace comera
