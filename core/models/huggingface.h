// Model folders as the transformers library writes and reads them: config.json, and model.safetensors or its shards with their index.
// Language models: LlamaForCausalLM and GPT2LMHeadModel; classifiers and masked language models: BERT, RoBERTa, RoFormer and DistilBERT
// (...ForSequenceClassification, ...ForMaskedLM), of images ViTForImageClassification.
// A folder without a head (...Model), or with that of another task, can be read with a new head. Newer and older names and settings. All
// dropouts outside of attention are one here.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/config/model.h"
#include "core/tensor/safetensors.h"
#include "core/tensor/shape.h"

namespace comera {

// The tensors of a folder, mapped.
class HuggingFaceFolder {
 public:
  // Throws Error(not_found) where there is no config.json or no file of weights, Error(config) where one of them cannot be read or a shard
  // lacks a tensor that the index promises.
  explicit HuggingFaceFolder(const std::string& path);
  ~HuggingFaceFolder();

  const std::string& path() const { return path_; }
  const Json& config() const { return *config_; }
  std::vector<std::string> names() const;
  // The file that has the tensor; null: none does.
  const SafetensorsFile* file_of(const std::string& name) const;

 private:
  const std::string path_;
  std::unique_ptr<Json> config_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const SafetensorsFile*> of_;
};

// The model that config.json describes, with a head for `task` (a choice of model.task; "": that of the folder). Throws Error(config) for
// an architecture or a setting that no model here has, sizes out of range, and a task that the architecture has no head for.
ModelConfig model_of_folder(const HuggingFaceFolder& folder, const std::string& task = "");
// Whether the head of the folder is for another task or another number of classes than the model's.
bool needs_new_head(const HuggingFaceFolder& folder, const ModelConfig& model);

// transposed: (in, out) where ours is (out, in); channels_first: (out, channels, rows, columns) of a convolution where ours is (out, rows x
// columns x channels); rotary_pairs: see paired_rows().
enum class FolderOrder : unsigned char { ours, transposed, channels_first, rotary_pairs };
// A tensor of a folder and the dense parameters whose rows (for vectors: entries) it has one after another.
struct FolderTensor {
  struct Part {
    std::string param;
    int64_t rows;
  };
  std::string name;
  Shape shape;
  std::vector<Part> parts;
  FolderOrder order = FolderOrder::ours;
  int64_t heads = 0;  // rotary_pairs: the rows belong to as many heads
};
// Those of a model with dense matrices, in the order of its layers. Throws Error(config) for a form that the library does not have.
std::vector<FolderTensor> folder_tensors(const ModelConfig& model);
// Values of a folder's tensor from those of its parameters one after another, and back.
std::vector<double> in_folder_order(const FolderTensor& tensor, const std::vector<double>& ours);
std::vector<double> in_our_order(const FolderTensor& tensor, const std::vector<double>& values);
// Rows of queries or keys that rotary positions turn: rows i and i + width / 2 of a head are a pair here, rows 2 i and 2 i + 1 there
// (RoFormer, GGUF). `back`: from there.
std::vector<double> paired_rows(const std::vector<double>& values, int64_t rows, int64_t heads, bool back);
// "LlamaForCausalLM" ...
std::string architecture_of(const ModelConfig& model);
// config.json of the model. `dtype`: "float32", "bfloat16", "float16". `label_names`: of a classifier's classes; empty: LABEL_0 ...
Json folder_config(const ModelConfig& model, const std::string& dtype, const std::vector<std::string>& label_names = {});
// The names of a classifier's classes in config.json; empty where it has none, or numbers them as LABEL_0 ...
std::vector<std::string> label_names_of(const HuggingFaceFolder& folder);

// Of pixels 0..1, as the folder's preprocessor_config.json asks for: (pixel - mean) / std. Without such a file 0 and 1. Throws
// Error(config) where channels have different ones or pixels are not shares of 255.
struct PixelScale {
  double mean = 0, std = 1;
};
PixelScale pixel_scale_of_folder(const std::string& path);
// The preprocessor_config.json of an image model.
Json preprocessor_config(const ModelConfig& model, const PixelScale& scale);

// put(parameter, values) for each dense parameter, one tensor of the folder at a time; an empty `put`: nothing is read but names and
// shapes. Returns the parameters that the folder does not have: those of a new head (needs_new_head). Throws Error(config), before the
// first `put`, for another tensor that is missing, has another shape than config.json says, or is one that the model does not have.
std::vector<std::string> read_folder(const HuggingFaceFolder& folder, const ModelConfig& model,
                                     const std::function<void(const std::string& param, const std::vector<double>& values)>& put);

// Writes a folder that read_folder() gives back bit for bit where `dtype` ("float32", "bfloat16", "float16") holds the values.
// values(parameter): of each dense parameter. `scale`: of an image model's pixels, `label_names`: as above, `more`: further members of
// config.json. Throws Error(storage).
void write_folder(const std::string& path, const ModelConfig& model, const std::string& dtype,
                  const std::function<std::vector<double>(const std::string& param)>& values, const PixelScale& scale = {},
                  const std::vector<std::string>& label_names = {}, const Json& more = Json::object());

}  // namespace comera
