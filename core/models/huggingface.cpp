// The tensors of a model folder, and its files.
#include "core/models/huggingface.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/models/folder_errors.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

using folder_errors::refuse;
using folder_errors::shown;

// Collects the tensors of a folder.
struct Layout {
  std::vector<FolderTensor> all;

  void add(const std::string& name, const std::string& param, const Shape& shape) { all.push_back({name, shape, {{param, shape[0]}}}); }
  // W (out, in) of `param`, and its bias.
  void linear(const std::string& name, const std::string& param, int64_t in, int64_t out, bool bias) {
    add(name + ".weight", param + ".weight", {out, in});
    if (bias) add(name + ".bias", param + ".bias", {out});
  }
  // The same, (in, out), of several matrices side by side.
  void columns(const std::string& name, const std::vector<std::string>& params, int64_t in, int64_t out) {
    FolderTensor weight{name + ".weight", {in, out * static_cast<int64_t>(params.size())}, {}, FolderOrder::transposed},
        bias{name + ".bias", {weight.shape[1]}, {}};
    for (const std::string& param : params) {
      weight.parts.push_back({param + ".weight", out});
      bias.parts.push_back({param + ".bias", out});
    }
    all.push_back(std::move(weight));
    all.push_back(std::move(bias));
  }
  // Queries or keys of `heads` heads. The two rows that a rotary position turns together are neighbours there.
  void paired(const std::string& name, const std::string& param, int64_t in, int64_t out, int64_t heads) {
    linear(name, param, in, out, true);
    for (FolderTensor* tensor : {&all[all.size() - 2], &all.back()}) {
      tensor->order = FolderOrder::rotary_pairs;
      tensor->heads = heads;
    }
  }
  void norm(const std::string& name, const std::string& param, int64_t features, bool beta) {
    add(name + ".weight", param + ".gamma", {features});
    if (beta) add(name + ".bias", param + ".beta", {features});
  }
};

void add_llama(const DecoderConfig& c, Layout& to) {
  const int64_t d = c.d_model, queries = c.heads * c.width_of_head(), keys = c.heads_of_keys() * c.width_of_head();
  to.add("model.embed_tokens.weight", "emb.token.weight", {c.vocab, d});
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string name = "model.layers." + std::to_string(i) + ".", own = "dec" + std::to_string(i) + ".";
    to.norm(name + "input_layernorm", own + "attn.norm", d, false);
    to.linear(name + "self_attn.q_proj", own + "attn.q", d, queries, c.bias);
    to.linear(name + "self_attn.k_proj", own + "attn.k", d, keys, c.bias);
    to.linear(name + "self_attn.v_proj", own + "attn.v", d, keys, c.bias);
    to.linear(name + "self_attn.o_proj", own + "attn.o", queries, d, c.bias);
    to.norm(name + "post_attention_layernorm", own + "ffn.norm", d, false);
    to.linear(name + "mlp.gate_proj", own + "ffn.gate", d, c.d_ff, c.bias);
    to.linear(name + "mlp.up_proj", own + "ffn.up", d, c.d_ff, c.bias);
    to.linear(name + "mlp.down_proj", own + "ffn.down", c.d_ff, d, c.bias);
  }
  to.norm("model.norm", "final.norm", d, false);
}

void add_gpt2(const DecoderConfig& c, Layout& to) {
  const int64_t d = c.d_model;
  to.add("transformer.wte.weight", "emb.token.weight", {c.vocab, d});
  to.add("transformer.wpe.weight", "emb.position", {c.position_rows, d});
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string name = "transformer.h." + std::to_string(i) + ".", own = "dec" + std::to_string(i) + ".";
    to.norm(name + "ln_1", own + "attn.norm", d, true);
    to.columns(name + "attn.c_attn", {own + "attn.q", own + "attn.k", own + "attn.v"}, d, d);
    to.columns(name + "attn.c_proj", {own + "attn.o"}, d, d);
    to.norm(name + "ln_2", own + "ffn.norm", d, true);
    to.columns(name + "mlp.c_fc", {own + "ffn.in"}, d, c.d_ff);
    to.columns(name + "mlp.c_proj", {own + "ffn.out"}, c.d_ff, d);
  }
  to.norm("transformer.ln_f", "final.norm", d, true);
}

// `first`: "bert.", "roberta." or "roformer.", before the names of all but the head.
void add_bert(const ModelConfig& model, const std::string& first, Layout& to) {
  const EncoderConfig& c = model.encoder;
  const std::string embeddings = first + "embeddings.";
  const bool roberta = first == "roberta.";
  const int64_t d = c.d_model;
  to.add(embeddings + "word_embeddings.weight", "emb.token.weight", {c.vocab, d});
  if (!c.rotary) to.add(embeddings + "position_embeddings.weight", "emb.position", {c.positions, d});
  to.add(embeddings + "token_type_embeddings.weight", "emb.segment", {c.segments, d});
  to.norm(embeddings + "LayerNorm", "emb.norm", d, true);
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string name = first + "encoder.layer." + std::to_string(i) + ".", own = "enc" + std::to_string(i) + ".";
    if (c.rotary) {
      to.paired(name + "attention.self.query", own + "attn.q", d, d, c.heads);
      to.paired(name + "attention.self.key", own + "attn.k", d, d, c.heads);
    } else {
      to.linear(name + "attention.self.query", own + "attn.q", d, d, true);
      to.linear(name + "attention.self.key", own + "attn.k", d, d, true);
    }
    to.linear(name + "attention.self.value", own + "attn.v", d, d, true);
    to.linear(name + "attention.output.dense", own + "attn.o", d, d, true);
    to.norm(name + "attention.output.LayerNorm", own + "attn.norm", d, true);
    to.linear(name + "intermediate.dense", own + "ffn.in", d, c.d_ff, true);
    to.linear(name + "output.dense", own + "ffn.out", c.d_ff, d, true);
    to.norm(name + "output.LayerNorm", own + "ffn.norm", d, true);
  }
  if (model.task == "masked") {
    const std::string head = roberta ? "lm_head." : "cls.predictions.";
    to.linear(head + (roberta ? "dense" : "transform.dense"), "masked.fc", d, d, true);
    to.norm(head + (roberta ? "layer_norm" : "transform.LayerNorm"), "masked.norm", d, true);
    if (!c.tied) to.add(head + "decoder.weight", "head.weight", {c.vocab, d});
    to.add(head + "bias", "head.bias", {c.vocab});
    return;
  }
  const bool pools = first == "bert.";
  to.linear(pools ? "bert.pooler.dense" : "classifier.dense", "classifier.fc", d, d, true);
  to.linear(pools ? "classifier" : "classifier.out_proj", "head", d, model.classes, true);
}

void add_distilbert(const ModelConfig& model, Layout& to) {
  const EncoderConfig& c = model.encoder;
  const std::string embeddings = "distilbert.embeddings.";
  const int64_t d = c.d_model;
  to.add(embeddings + "word_embeddings.weight", "emb.token.weight", {c.vocab, d});
  to.add(embeddings + "position_embeddings.weight", "emb.position", {c.positions, d});
  to.norm(embeddings + "LayerNorm", "emb.norm", d, true);
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string name = "distilbert.transformer.layer." + std::to_string(i) + ".", own = "enc" + std::to_string(i) + ".";
    to.linear(name + "attention.q_lin", own + "attn.q", d, d, true);
    to.linear(name + "attention.k_lin", own + "attn.k", d, d, true);
    to.linear(name + "attention.v_lin", own + "attn.v", d, d, true);
    to.linear(name + "attention.out_lin", own + "attn.o", d, d, true);
    to.norm(name + "sa_layer_norm", own + "attn.norm", d, true);
    to.linear(name + "ffn.lin1", own + "ffn.in", d, c.d_ff, true);
    to.linear(name + "ffn.lin2", own + "ffn.out", c.d_ff, d, true);
    to.norm(name + "output_layer_norm", own + "ffn.norm", d, true);
  }
  if (model.task == "masked") {
    to.linear("vocab_transform", "masked.fc", d, d, true);
    to.norm("vocab_layer_norm", "masked.norm", d, true);
    if (!c.tied) to.add("vocab_projector.weight", "head.weight", {c.vocab, d});
    to.add("vocab_projector.bias", "head.bias", {c.vocab});
    return;
  }
  to.linear("pre_classifier", "classifier.fc", d, d, true);
  to.linear("classifier", "head", d, model.classes, true);
}

void add_vit(const ModelConfig& model, Layout& to) {
  const VitConfig& c = model.vit;
  const int64_t d = c.d_model, tokens = (c.height / c.patch) * (c.width / c.patch) + 1;
  const std::string embeddings = "vit.embeddings.", patch = embeddings + "patch_embeddings.projection.";
  to.all.push_back({embeddings + "cls_token", {1, 1, d}, {{"emb.class", 1}}});
  to.all.push_back({embeddings + "position_embeddings", {1, tokens, d}, {{"emb.position", 1}}});
  to.all.push_back({patch + "weight", {d, c.channels, c.patch, c.patch}, {{"emb.patch.weight", d}}, FolderOrder::channels_first});
  to.add(patch + "bias", "emb.patch.bias", {d});
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string name = "vit.encoder.layer." + std::to_string(i) + ".", own = "vit" + std::to_string(i) + ".";
    to.norm(name + "layernorm_before", own + "attn.norm", d, true);
    to.linear(name + "attention.attention.query", own + "attn.q", d, d, c.qkv_bias);
    to.linear(name + "attention.attention.key", own + "attn.k", d, d, c.qkv_bias);
    to.linear(name + "attention.attention.value", own + "attn.v", d, d, c.qkv_bias);
    to.linear(name + "attention.output.dense", own + "attn.o", d, d, true);
    to.norm(name + "layernorm_after", own + "ffn.norm", d, true);
    to.linear(name + "intermediate.dense", own + "ffn.in", d, c.d_ff, true);
    to.linear(name + "output.dense", own + "ffn.out", c.d_ff, d, true);
  }
  to.norm("vit.layernorm", "final.norm", d, true);
  to.linear("classifier", "head", d, model.classes, true);
}

// The name in this folder: those of a model without a head, and older files of GPT-2, leave out the first word; old files of BERT have
// other names of norms.
std::string name_in(const HuggingFaceFolder& folder, const std::string& name) {
  std::vector<std::string> names = {name};
  for (const char* first : {"transformer.", "model.", "bert.", "roberta.", "roformer.", "distilbert."})
    if (name.starts_with(first)) names.push_back(name.substr(std::strlen(first)));
  for (const auto& [now, before] :
       {std::pair<std::string, std::string>{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}})
    for (const std::string& each : std::vector<std::string>(names))
      if (each.ends_with(now)) names.push_back(each.substr(0, each.size() - now.size()) + before);
  for (const std::string& each : names)
    if (folder.file_of(each)) return each;
  return name;
}

bool is_of_head(const FolderTensor& tensor) {
  const std::string& param = tensor.parts.front().param;
  return param.starts_with("classifier.") || param.starts_with("masked.") || param.starts_with("head.");
}

// Buffers that older files have beside the parameters, a tied head once more, and of masked language models the parts for other tasks.
// `new_head`: the head of the folder is for another task.
bool may_be_left_out(const std::string& name, const ModelConfig& model, bool new_head) {
  const auto begins = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(), [&](const char* word) { return name.starts_with(word); });
  };
  const bool pooler = name.find(".pooler.") != std::string::npos || name.starts_with("pooler.");
  if (new_head && (pooler || begins({"cls.", "lm_head.", "classifier.", "pre_classifier.", "vocab_"}))) return true;
  if (model.task == "masked" && (pooler || begins({"cls.predictions.decoder.", "lm_head.decoder.", "cls.seq_relationship."}))) return true;
  if (model.task == "masked" && model.encoder.tied && name == "vocab_projector.weight") return true;
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with("rotary_emb.inv_freq") ||
         name.ends_with("embeddings.position_ids") || name.ends_with("encoder.embed_positions.weight") ||
         (model.decoder.tied && name == "lm_head.weight");
}

// A JSON file of a folder. Its limits are far above those of real files: a file beyond them would only fill memory.
Json read_file(const fs::path& path, uintmax_t most_bytes) {
  std::error_code problem;
  const uintmax_t bytes = fs::file_size(path, problem);
  if (!problem && bytes > most_bytes)
    refuse(path.string(), "too large", "it has " + std::to_string(bytes) + " bytes, " + std::to_string(most_bytes) + " is the limit");
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  return parse_json(text, path.string());
}

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "(" + text + ")";
}

// Matrices of `rows` rows and `columns` columns one after another, each transposed.
std::vector<double> turned(const std::vector<double>& values, size_t rows, size_t columns) {
  std::vector<double> out(values.size());
  for (size_t first = 0; first < values.size(); first += rows * columns)
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j) out[first + j * rows + i] = values[first + i * columns + j];
  return out;
}

}  // namespace

HuggingFaceFolder::HuggingFaceFolder(const std::string& path) : path_(path) {
  const fs::path folder(path);
  if (!fs::is_regular_file(folder / "config.json"))
    throw Error(ErrorCode::not_found, path + " is not a model folder", "it has no config.json", "give a folder that save_pretrained wrote");
  config_ = std::make_unique<Json>(read_file(folder / "config.json", 16'000'000));
  if (!config_->is_object()) refuse(path + "/config.json", "not an object", "it begins with another value");
  const fs::path one = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  if (fs::is_regular_file(one)) {
    files_.push_back(std::make_unique<SafetensorsFile>(one.string()));
    for (const auto& [name, entry] : files_.back()->entries()) of_[name] = files_.back().get();
    return;
  }
  if (!fs::is_regular_file(index))
    throw Error(ErrorCode::not_found, path + " has no weights", "there is no model.safetensors and no index of its shards",
                "convert the weights to safetensors first");
  const Json shards = read_file(index, 100'000'000);
  if (!shards.is_object() || !shards.contains("weight_map") || !shards["weight_map"].is_object())
    refuse(index.string(), "no weight_map", "it does not say which file has which tensor");
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [name, file] : shards["weight_map"].items()) {
    const std::string shard = file.is_string() ? file.get<std::string>() : "";
    if (shard.empty() || fs::path(shard).filename() != shard)
      refuse(index.string(), "the file of " + shown(name) + " is " + shown(file), "it must be a file name");
    const SafetensorsFile*& in = opened[shard];
    if (!in) {
      if (!fs::is_regular_file(folder / shard))
        refuse(index.string(), "names " + shown(shard), "there is no such file", "get the missing shard");
      files_.push_back(std::make_unique<SafetensorsFile>((folder / shard).string()));
      in = files_.back().get();
    }
    if (!in->has(name)) refuse(index.string(), shown(name) + " should be in " + shown(shard), "the file does not have it");
    of_[name] = in;
  }
}

HuggingFaceFolder::~HuggingFaceFolder() = default;

std::vector<std::string> HuggingFaceFolder::names() const {
  std::vector<std::string> out;
  for (const auto& [name, file] : of_) out.push_back(name);
  return out;
}

const SafetensorsFile* HuggingFaceFolder::file_of(const std::string& name) const {
  const auto found = of_.find(name);
  return found == of_.end() ? nullptr : found->second;
}

std::vector<FolderTensor> folder_tensors(const ModelConfig& model) {
  const DecoderConfig& c = model.decoder;
  Layout layout;
  const std::string architecture = architecture_of(model);
  if (architecture.starts_with("DistilBert")) {
    add_distilbert(model, layout);
    return layout.all;
  }
  if (model.kind == "vit") {
    add_vit(model, layout);
    return layout.all;
  }
  if (model.kind == "encoder") {
    add_bert(model,
             architecture.starts_with("Roberta")    ? "roberta."
             : architecture.starts_with("RoFormer") ? "roformer."
                                                    : "bert.",
             layout);
    return layout.all;
  }
  if (architecture == "LlamaForCausalLM")
    add_llama(c, layout);
  else
    add_gpt2(c, layout);
  if (!c.tied) layout.add("lm_head.weight", "head.weight", {c.vocab, c.d_model});
  return layout.all;
}

namespace {

// The tensor's name in the folder; "": the folder has none of the right shape, and a new head is made.
std::string place_of(const HuggingFaceFolder& folder, const FolderTensor& tensor, bool new_head) {
  const std::string name = name_in(folder, tensor.name);
  const SafetensorsFile* file = folder.file_of(name);
  const bool may_be_new = new_head && is_of_head(tensor);
  if (!file && may_be_new) return "";
  if (!file) refuse(folder.path(), "no tensor " + tensor.name, "config.json describes a model that has it");
  const SafetensorsEntry& entry = file->entry(name);
  std::vector<int64_t> shape;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) shape.push_back(tensor.shape[axis]);
  if (entry.shape != shape && may_be_new) return "";
  if (entry.shape != shape)
    refuse(folder.path(), shown(name) + " is " + text_of(entry.shape), "config.json describes " + tensor.shape.text());
  if (entry.dtype != "F64" && entry.dtype != "F32" && entry.dtype != "F16" && entry.dtype != "BF16")
    refuse(folder.path(), shown(name) + " is of type " + entry.dtype, "weights are F32, BF16, F16 or F64");
  return name;
}

}  // namespace

std::vector<double> in_folder_order(const FolderTensor& tensor, const std::vector<double>& ours) {
  const auto size = [&](int axis) { return static_cast<size_t>(tensor.shape[axis]); };
  if (tensor.order == FolderOrder::transposed) return turned(ours, size(1), size(0));
  if (tensor.order == FolderOrder::channels_first) return turned(ours, size(2) * size(3), size(1));
  if (tensor.order == FolderOrder::rotary_pairs) return paired_rows(ours, tensor.shape[0], tensor.heads, false);
  return ours;
}

std::vector<double> in_our_order(const FolderTensor& tensor, const std::vector<double>& values) {
  const auto size = [&](int axis) { return static_cast<size_t>(tensor.shape[axis]); };
  if (tensor.order == FolderOrder::transposed) return turned(values, size(0), size(1));
  if (tensor.order == FolderOrder::channels_first) return turned(values, size(1), size(2) * size(3));
  if (tensor.order == FolderOrder::rotary_pairs) return paired_rows(values, tensor.shape[0], tensor.heads, true);
  return values;
}

std::vector<double> paired_rows(const std::vector<double>& values, int64_t rows, int64_t heads, bool back) {
  std::vector<double> out(values.size());
  const int64_t width = rows / heads, columns = static_cast<int64_t>(values.size()) / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t head = row / width, i = row % width, there = head * width + i % (width / 2) * 2 + i / (width / 2);
    std::copy_n(values.begin() + (back ? there : row) * columns, columns, out.begin() + (back ? row : there) * columns);
  }
  return out;
}

std::vector<std::string> read_folder(const HuggingFaceFolder& folder, const ModelConfig& model,
                                     const std::function<void(const std::string& param, const std::vector<double>& values)>& put) {
  const bool new_head = needs_new_head(folder, model);
  const std::vector<FolderTensor> tensors = folder_tensors(model);
  std::vector<std::string> places, fresh;
  for (const FolderTensor& tensor : tensors) {
    places.push_back(place_of(folder, tensor, new_head));
    for (const FolderTensor::Part& part : tensor.parts)
      if (places.back().empty()) fresh.push_back(part.param);
  }
  const std::set<std::string> used(places.begin(), places.end());
  for (const std::string& name : folder.names())
    if (!used.contains(name) && !may_be_left_out(name, model, new_head))
      refuse(folder.path(), "tensor " + shown(name), "the model has no such parameter");
  for (size_t i = 0; put && i < tensors.size(); ++i) {
    const FolderTensor& tensor = tensors[i];
    if (places[i].empty()) continue;
    std::vector<double> values = folder.file_of(places[i])->values(places[i]);
    values = in_our_order(tensor, values);
    const int64_t rows = tensor.shape[tensor.order == FolderOrder::transposed ? 1 : 0], of_row = tensor.shape.count() / rows;
    auto at = values.begin();
    for (const FolderTensor::Part& part : tensor.parts) {
      const auto end = at + part.rows * of_row;
      put(part.param, std::vector<double>(at, end));
      at = end;
    }
  }
  return fresh;
}

namespace {
// Sines and then cosines of the angles of each position, (positions, width): the library's files have them.
std::vector<double> sines(int64_t positions, int64_t width) {
  std::vector<double> out;
  for (int64_t position = 0; position < positions; ++position)
    for (int64_t i = 0; i < width; ++i) {
      const auto pair = static_cast<double>(i % (width / 2));
      const double angle = static_cast<double>(position) / std::pow(10000.0, 2 * pair / static_cast<double>(width));
      out.push_back(i < width / 2 ? std::sin(angle) : std::cos(angle));
    }
  return out;
}

void write_json(const std::string& path, const Json& json) {
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  if (!file.flush()) throw Error(ErrorCode::storage, "cannot write " + path, std::strerror(errno));
}
}  // namespace

void write_folder(const std::string& path, const ModelConfig& model, const std::string& dtype,
                  const std::function<std::vector<double>(const std::string& param)>& values, const PixelScale& scale,
                  const std::vector<std::string>& label_names, const Json& more) {
  const std::map<std::string, std::string> stored = {{"float32", "F32"}, {"bfloat16", "BF16"}, {"float16", "F16"}};
  CHECK(stored.contains(dtype), "dtype " << dtype);
  SafetensorsWriter writer;
  for (const FolderTensor& tensor : folder_tensors(model)) {
    std::vector<double> all;
    for (const FolderTensor::Part& part : tensor.parts) {
      const std::vector<double> own = values(part.param);
      all.insert(all.end(), own.begin(), own.end());
    }
    std::vector<int64_t> shape;
    for (int axis = 0; axis < tensor.shape.rank(); ++axis) shape.push_back(tensor.shape[axis]);
    CHECK(static_cast<int64_t>(all.size()) == tensor.shape.count(), tensor.name << " has " << all.size() << " values");
    writer.add_values(tensor.name, stored.at(dtype), shape, in_folder_order(tensor, all));
  }
  // An own head of a masked language model has its bias twice in the library, which ties both only together with the table.
  const std::string architecture = architecture_of(model);
  if (model.kind == "encoder" && model.task == "masked" && !model.encoder.tied && architecture != "DistilBertForMaskedLM")
    writer.add_values(std::string(architecture == "RobertaForMaskedLM" ? "lm_head" : "cls.predictions") + ".decoder.bias", stored.at(dtype),
                      {model.encoder.vocab}, values("head.bias"));
  if (model.kind == "encoder" && model.encoder.rotary) {
    const int64_t width = model.encoder.d_model / model.encoder.heads;
    writer.add_values("roformer.encoder.embed_positions.weight", stored.at(dtype), {model.length, width}, sines(model.length, width));
  }
  writer.metadata("format", "pt");  // without which version 4 of the library refuses the file
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem) throw Error(ErrorCode::storage, "cannot make the folder " + path, problem.message());
  writer.finish((fs::path(path) / "model.safetensors").string());
  Json config = folder_config(model, dtype, label_names);
  config.update(more);
  write_json((fs::path(path) / "config.json").string(), config);
  if (model.kind == "vit") write_json((fs::path(path) / "preprocessor_config.json").string(), preprocessor_config(model, scale));
}

PixelScale pixel_scale_of_folder(const std::string& path) {
  const std::string name = (fs::path(path) / "preprocessor_config.json").string();
  if (!fs::is_regular_file(name)) return {};
  const Json config = read_file(name, 1'000'000);
  const auto wrong = [&](const std::string& what, const std::string& why) {
    refuse(name, what, why, "remove the file to take the weights alone");
  };
  if (!config.is_object()) wrong("not an object", "it begins with another value");
  const auto flag = [&](const char* key) { return config.contains(key) && config[key].is_boolean() ? config[key].get<bool>() : true; };
  const auto number = [&](const char* key, double otherwise) {
    return config.contains(key) && config[key].is_number() ? config[key].get<double>() : otherwise;
  };
  if (!flag("do_rescale") || std::fabs(number("rescale_factor", 1.0 / 255) * 255 - 1) > 1e-6)
    wrong("pixels are not divided by 255", "here they are always 0 to 1");
  if (!flag("do_normalize")) return {};
  const auto one = [&](const char* key) {
    if (!config.contains(key)) return 0.5;  // as the library
    const Json& values = config[key];
    if (values.is_number()) return values.get<double>();
    const bool same = values.is_array() && !values.empty() && values.front().is_number() &&
                      std::all_of(values.begin(), values.end(), [&](const Json& value) { return value == values.front(); });
    if (!same) wrong(std::string(key) + " is " + values.dump(), "all channels have one mean and one std here");
    return values.front().get<double>();
  };
  const PixelScale scale{one("image_mean"), one("image_std")};
  if (!(scale.std > 0)) wrong("image_std is not above 0", "pixels are divided by it");
  return scale;
}

Json preprocessor_config(const ModelConfig& model, const PixelScale& scale) {
  const ImageSize image = model.info().image;
  const std::vector<double> mean(static_cast<size_t>(image.channels), scale.mean), std(mean.size(), scale.std);
  return {{"image_processor_type", "ViTImageProcessor"},
          {"do_resize", true},
          {"size", {{"height", image.height}, {"width", image.width}}},
          {"resample", 2},  // bilinear
          {"do_rescale", true},
          {"rescale_factor", 1.0 / 255},
          {"do_normalize", true},
          {"image_mean", mean},
          {"image_std", std}};
}

}  // namespace comera
