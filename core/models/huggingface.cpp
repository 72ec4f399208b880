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

namespace comera {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const std::string& what, const std::string& why, const std::string& hint = "") {
  throw Error(ErrorCode::config, path + ": " + what, why, hint);
}

// The settings of config.json, which the library leaves out where they have their default.
class Settings {
 public:
  explicit Settings(const HuggingFaceFolder& folder) : path_(folder.path() + "/config.json"), config_(folder.config()) {}

  template <class T>
  T get(const char* key, const std::optional<T>& otherwise = {}) const {
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) {
      if (otherwise) return *otherwise;
      refuse(path_, std::string("no ") + key, "the model's sizes are not known without it");
    }
    try {
      return found->get<T>();
    } catch (const Json::exception&) {
      refuse(path_, std::string(key) + " is " + found->dump(), "it has another type");
    }
  }
  // Settings that no model here follows, unless they have this value.
  template <class T>
  void expect(const char* key, const T& only) const {
    if (get<T>(key, only) != only)
      refuse(path_, std::string(key) + " is " + config_.at(key).dump(), "this form of the model is not offered");
  }
  bool is_list(const char* key) const {
    const auto found = config_.find(key);
    return found != config_.end() && found->is_array();
  }
  // New files have it among rope_parameters.
  double rope_theta() const {
    const auto rope = config_.find("rope_parameters");
    if (rope == config_.end() || !rope->is_object()) {
      if (const auto scaling = config_.find("rope_scaling"); scaling != config_.end() && !scaling->is_null())
        refuse(path_, "rope_scaling is set", "scaled rotary positions are not offered");
      return get<double>("rope_theta", 10000.0);
    }
    if (rope->value("rope_type", "default") != "default")
      refuse(path_, "rope_type is " + rope->at("rope_type").dump(), "scaled rotary positions are not offered");
    return rope->value("rope_theta", 10000.0);
  }
  // The number of classes: of the names of labels, or 2.
  int64_t labels() const {
    const auto names = config_.find("id2label");
    const int64_t count =
        names != config_.end() && names->is_object() ? static_cast<int64_t>(names->size()) : get<int64_t>("num_labels", int64_t{2});
    if (count < 2) refuse(path_, "the model has " + std::to_string(count) + " label", "a regression is not offered");
    return count;
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const Json& config_;
};

// Activation functions, by their name in config.json.
std::string activation_in(const Settings& s, const char* key) {
  static const std::map<std::string, std::string> kNames = {
      {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"}, {"gelu", "gelu"}, {"relu", "relu"}, {"silu", "silu"}};
  const std::string name = s.get<std::string>(key, std::string(key == std::string("activation_function") ? "gelu_new" : "gelu"));
  if (!kNames.contains(name)) refuse(s.path(), std::string(key) + " is '" + name + "'", "this form of the model is not offered");
  return kNames.at(name);
}

ModelConfig language_model() {
  ModelConfig model;
  model.kind = "decoder";
  model.task = "language";
  return model;
}

ModelConfig llama(const Settings& s) {
  ModelConfig model = language_model();
  DecoderConfig& c = model.decoder;
  model.length = s.get<int64_t>("max_position_embeddings", int64_t{2048});
  c = {.layers = s.get<int64_t>("num_hidden_layers"),
       .d_model = s.get<int64_t>("hidden_size"),
       .d_ff = s.get<int64_t>("intermediate_size"),
       .vocab = s.get<int64_t>("vocab_size"),
       .heads = s.get<int64_t>("num_attention_heads"),
       .rope_theta = s.rope_theta(),
       .norm_eps = s.get<double>("rms_norm_eps", 1e-6),
       .attention_dropout = s.get<double>("attention_dropout", 0.0),
       .embedding_std = s.get<double>("initializer_range", 0.02),
       .bias = s.get<bool>("attention_bias", false),
       .tied = s.get<bool>("tie_word_embeddings", false)};
  c.key_heads = s.get<int64_t>("num_key_value_heads", c.heads);
  c.head_width = s.get<int64_t>("head_dim", int64_t{0});
  s.expect<bool>("mlp_bias", c.bias);
  s.expect<std::string>("hidden_act", "silu");
  return model;
}

ModelConfig gpt2(const Settings& s) {
  ModelConfig model = language_model();
  DecoderConfig& c = model.decoder;
  c = {.layers = s.get<int64_t>("n_layer"),
       .d_model = s.get<int64_t>("n_embd"),
       .vocab = s.get<int64_t>("vocab_size"),
       .heads = s.get<int64_t>("n_head"),
       .positions = "learned",
       .position_rows = s.get<int64_t>("n_positions"),
       .norm = "layer",
       .norm_eps = s.get<double>("layer_norm_epsilon", 1e-5),
       .dropout = s.get<double>("resid_pdrop", 0.1),
       .attention_dropout = s.get<double>("attn_pdrop", 0.1),
       .embedding_std = s.get<double>("initializer_range", 0.02),
       .bias = true,
       .tied = s.get<bool>("tie_word_embeddings", true)};
  c.d_ff = s.get<int64_t>("n_inner", 4 * c.d_model);
  model.length = c.position_rows;
  c.feed_forward = activation_in(s, "activation_function");
  s.expect<double>("embd_pdrop", c.dropout);
  s.expect<bool>("scale_attn_weights", true);
  s.expect<bool>("scale_attn_by_inverse_layer_idx", false);
  s.expect<bool>("add_cross_attention", false);
  return model;
}

// Sizes and dropout as BERT and RoBERTa name them.
ModelConfig bert_sizes(const Settings& s) {
  ModelConfig model;
  EncoderConfig& c = model.encoder;
  model.classes = s.labels();
  c.layers = s.get<int64_t>("num_hidden_layers");
  c.d_model = s.get<int64_t>("hidden_size");
  c.heads = s.get<int64_t>("num_attention_heads");
  c.d_ff = s.get<int64_t>("intermediate_size");
  c.vocab = s.get<int64_t>("vocab_size");
  c.positions = s.get<int64_t>("max_position_embeddings", int64_t{512});
  c.segments = s.get<int64_t>("type_vocab_size", int64_t{2});
  c.dropout = s.get<double>("hidden_dropout_prob", 0.1);
  c.attention_dropout = s.get<double>("attention_probs_dropout_prob", 0.1);
  c.norm_eps = s.get<double>("layer_norm_eps", 1e-12);
  c.activation = activation_in(s, "hidden_act");
  s.expect<bool>("is_decoder", false);
  s.expect<std::string>("position_embedding_type", "absolute");
  return model;
}

ModelConfig bert(const Settings& s) {
  ModelConfig model = bert_sizes(s);
  model.length = model.encoder.positions;
  return model;
}

ModelConfig roberta(const Settings& s) {
  ModelConfig model = bert_sizes(s);
  model.encoder.first_position = s.get<int64_t>("pad_token_id", int64_t{1}) + 1;
  model.length = model.encoder.positions - model.encoder.first_position;
  return model;
}

ModelConfig masked(ModelConfig model, const Settings& s) {
  model.task = "masked";
  model.encoder.tied = s.get<bool>("tie_word_embeddings", true);
  return model;
}
ModelConfig masked_bert(const Settings& s) { return masked(bert(s), s); }
ModelConfig masked_roberta(const Settings& s) { return masked(roberta(s), s); }

ModelConfig distilbert(const Settings& s) {
  ModelConfig model;
  EncoderConfig& c = model.encoder;
  model.classes = s.labels();
  c.layers = s.get<int64_t>("n_layers", int64_t{6});
  c.d_model = s.get<int64_t>("dim", int64_t{768});
  c.heads = s.get<int64_t>("n_heads", int64_t{12});
  c.d_ff = s.get<int64_t>("hidden_dim", int64_t{3072});
  c.vocab = s.get<int64_t>("vocab_size");
  c.positions = model.length = s.get<int64_t>("max_position_embeddings", int64_t{512});
  c.segments = 0;
  c.dropout = s.get<double>("dropout", 0.1);
  c.attention_dropout = s.get<double>("attention_dropout", 0.1);
  c.norm_eps = 1e-12;  // fixed in the library
  c.activation = activation_in(s, "activation");
  c.classifier_activation = "relu";
  s.expect<bool>("sinusoidal_pos_embds", false);
  return model;
}

// Height and width, which may be given as one number.
std::pair<int64_t, int64_t> both_sizes(const Settings& s, const char* key, int64_t otherwise) {
  if (!s.is_list(key)) {
    const auto size = s.get<int64_t>(key, otherwise);
    return {size, size};
  }
  const auto sizes = s.get<std::vector<int64_t>>(key);
  if (sizes.size() != 2) refuse(s.path(), std::string(key) + " has " + std::to_string(sizes.size()) + " numbers", "an image has two sizes");
  return {sizes[0], sizes[1]};
}

ModelConfig vit(const Settings& s) {
  ModelConfig model;
  model.kind = "vit";
  model.classes = s.labels();
  VitConfig& c = model.vit;
  std::tie(c.height, c.width) = both_sizes(s, "image_size", 224);
  const auto [patch, across] = both_sizes(s, "patch_size", 16);
  if (patch != across) refuse(s.path(), "patch_size has two different numbers", "patches here are square");
  c.patch = patch;
  c.channels = s.get<int64_t>("num_channels", int64_t{3});
  c.layers = s.get<int64_t>("num_hidden_layers", int64_t{12});
  c.d_model = s.get<int64_t>("hidden_size", int64_t{768});
  c.heads = s.get<int64_t>("num_attention_heads", int64_t{12});
  c.d_ff = s.get<int64_t>("intermediate_size", int64_t{3072});
  c.activation = activation_in(s, "hidden_act");
  c.norm_eps = s.get<double>("layer_norm_eps", 1e-12);
  c.dropout = s.get<double>("hidden_dropout_prob", 0.0);
  c.attention_dropout = s.get<double>("attention_probs_dropout_prob", 0.0);
  c.embedding_std = s.get<double>("initializer_range", 0.02);
  c.qkv_bias = s.get<bool>("qkv_bias", true);
  return model;
}

struct Architecture {
  const char* name;
  ModelConfig (*read)(const Settings& settings);
};
constexpr Architecture kArchitectures[] = {{"LlamaForCausalLM", llama},
                                           {"GPT2LMHeadModel", gpt2},
                                           {"BertForSequenceClassification", bert},
                                           {"RobertaForSequenceClassification", roberta},
                                           {"BertForMaskedLM", masked_bert},
                                           {"RobertaForMaskedLM", masked_roberta},
                                           {"DistilBertForSequenceClassification", distilbert},
                                           {"ViTForImageClassification", vit}};

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

void add_bert(const ModelConfig& model, bool roberta, Layout& to) {
  const EncoderConfig& c = model.encoder;
  const std::string first = roberta ? "roberta." : "bert.", embeddings = first + "embeddings.";
  const int64_t d = c.d_model;
  to.add(embeddings + "word_embeddings.weight", "emb.token.weight", {c.vocab, d});
  to.add(embeddings + "position_embeddings.weight", "emb.position", {c.positions, d});
  to.add(embeddings + "token_type_embeddings.weight", "emb.segment", {c.segments, d});
  to.norm(embeddings + "LayerNorm", "emb.norm", d, true);
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string name = first + "encoder.layer." + std::to_string(i) + ".", own = "enc" + std::to_string(i) + ".";
    to.linear(name + "attention.self.query", own + "attn.q", d, d, true);
    to.linear(name + "attention.self.key", own + "attn.k", d, d, true);
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
  to.linear(roberta ? "classifier.dense" : "bert.pooler.dense", "classifier.fc", d, d, true);
  to.linear(roberta ? "classifier.out_proj" : "classifier", "head", d, model.classes, true);
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

bool is_gpt2(const DecoderConfig& c) {
  return c.positions == "learned" && c.norm == "layer" && c.feed_forward != "swiglu" && c.bias && c.heads_of_keys() == c.heads &&
         c.heads * c.width_of_head() == c.d_model;
}
bool is_llama(const DecoderConfig& c) { return c.positions == "rotary" && c.norm == "rms" && c.feed_forward == "swiglu"; }

// The name in this folder: older files of GPT-2 leave out the first word, those of BERT have other names of norms.
std::string name_in(const HuggingFaceFolder& folder, const std::string& name) {
  constexpr std::string_view kFirst = "transformer.";
  for (const auto& [now, before] :
       {std::pair<std::string, std::string>{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}})
    if (name.ends_with(now) && !folder.file_of(name))
      if (const std::string older = name.substr(0, name.size() - now.size()) + before; folder.file_of(older)) return older;
  if (!folder.file_of(name) && name.starts_with(kFirst) && folder.file_of(name.substr(kFirst.size()))) return name.substr(kFirst.size());
  return name;
}

// Buffers that older files have beside the parameters, a tied head once more, and of masked language models the parts for other tasks.
bool may_be_left_out(const std::string& name, const ModelConfig& model) {
  if (model.task == "masked" && (name.starts_with("cls.predictions.decoder.") || name.starts_with("lm_head.decoder.") ||
                                 name.starts_with("cls.seq_relationship.") || name.find(".pooler.") != std::string::npos))
    return true;
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with("rotary_emb.inv_freq") ||
         name.ends_with("embeddings.position_ids") || (model.decoder.tied && name == "lm_head.weight");
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
  config_ = std::make_unique<Json>(read_json_file((folder / "config.json").string()));
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
  const Json shards = read_json_file(index.string());
  if (!shards.is_object() || !shards.contains("weight_map") || !shards["weight_map"].is_object())
    refuse(index.string(), "no weight_map", "it does not say which file has which tensor");
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [name, file] : shards["weight_map"].items()) {
    const std::string shard = file.is_string() ? file.get<std::string>() : "";
    if (shard.empty() || fs::path(shard).filename() != shard)
      refuse(index.string(), "the file of " + name + " is " + file.dump(), "it must be a file name");
    const SafetensorsFile*& in = opened[shard];
    if (!in) {
      if (!fs::is_regular_file(folder / shard)) refuse(index.string(), "names " + shard, "there is no such file", "get the missing shard");
      files_.push_back(std::make_unique<SafetensorsFile>((folder / shard).string()));
      in = files_.back().get();
    }
    if (!in->has(name)) refuse(index.string(), name + " should be in " + shard, "the file does not have it");
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

ModelConfig model_of_folder(const HuggingFaceFolder& folder) {
  const Settings settings(folder);
  const auto names = settings.get<std::vector<std::string>>("architectures", std::vector<std::string>());
  std::string known;
  for (const Architecture& each : kArchitectures) {
    if (std::find(names.begin(), names.end(), each.name) == names.end()) {
      known += (known.empty() ? "" : ", ") + std::string(each.name);
      continue;
    }
    ModelConfig model = each.read(settings);
    if (const std::vector<Problem> problems = model.problems(false); !problems.empty())
      refuse(settings.path(), problems.front().path + " " + problems.front().text, problems.front().hint);
    return model;
  }
  refuse(settings.path(), "architecture " + (names.empty() ? "is not given" : names.front()), "no model here has this form",
         "known are " + known);
}

std::string architecture_of(const ModelConfig& model) {
  if (model.kind == "decoder" && is_llama(model.decoder)) return "LlamaForCausalLM";
  if (model.kind == "decoder" && is_gpt2(model.decoder)) return "GPT2LMHeadModel";
  const EncoderConfig& e = model.encoder;
  if (model.kind == "encoder" && model.task == "masked" && e.norm == "layer") {
    if (e.segments >= 2 && e.first_position == 0) return "BertForMaskedLM";
    if (e.segments == 1 && e.first_position > 0) return "RobertaForMaskedLM";
  }
  if (model.kind == "vit" && model.task == "classification") return "ViTForImageClassification";
  if (model.kind == "encoder" && model.task == "classification" && e.norm == "layer") {
    if (e.segments >= 2 && e.first_position == 0 && e.classifier_activation == "tanh") return "BertForSequenceClassification";
    if (e.segments == 1 && e.first_position > 0 && e.classifier_activation == "tanh") return "RobertaForSequenceClassification";
    // Its epsilon is fixed in the library.
    if (e.segments == 0 && e.first_position == 0 && e.classifier_activation == "relu" && e.norm_eps == 1e-12)
      return "DistilBertForSequenceClassification";
  }
  throw Error(
      ErrorCode::config, "this model has no form of the transformers library",
      "language models are LLaMA's (rotary, RMS norm, SwiGLU) or GPT-2's (learned positions, layer norm, biases), classifiers BERT's, "
      "RoBERTa's or DistilBERT's, masked language models BERT's or RoBERTa's, image classifiers ViT's",
      "export it as safetensors");
}

std::vector<FolderTensor> folder_tensors(const ModelConfig& model) {
  const DecoderConfig& c = model.decoder;
  Layout layout;
  const std::string architecture = architecture_of(model);
  if (architecture == "DistilBertForSequenceClassification") {
    add_distilbert(model, layout);
    return layout.all;
  }
  if (model.kind == "vit") {
    add_vit(model, layout);
    return layout.all;
  }
  if (model.kind == "encoder") {
    add_bert(model, architecture.starts_with("Roberta"), layout);
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

Json classifier_config(const ModelConfig& model, const std::string& architecture, const std::string& dtype) {
  Json names = Json::object(), ids = Json::object();
  for (int64_t i = 0; i < model.classes; ++i) {
    names[std::to_string(i)] = "LABEL_" + std::to_string(i);
    ids["LABEL_" + std::to_string(i)] = i;
  }
  return {{"architectures", {architecture}}, {"dtype", dtype}, {"torch_dtype", dtype}, {"id2label", names}, {"label2id", ids}};
}

std::string activation_out(const std::string& activation) { return activation == "gelu_tanh" ? "gelu_new" : activation; }

Json vit_config(const ModelConfig& model, const std::string& architecture, const std::string& dtype) {
  const VitConfig& c = model.vit;
  Json out = classifier_config(model, architecture, dtype);
  out.update({{"model_type", "vit"},
              {"image_size", c.height == c.width ? Json(c.height) : Json({c.height, c.width})},
              {"patch_size", c.patch},
              {"num_channels", c.channels},
              {"hidden_size", c.d_model},
              {"intermediate_size", c.d_ff},
              {"num_hidden_layers", c.layers},
              {"num_attention_heads", c.heads},
              {"hidden_act", activation_out(c.activation)},
              {"hidden_dropout_prob", c.dropout},
              {"attention_probs_dropout_prob", c.attention_dropout},
              {"layer_norm_eps", c.norm_eps},
              {"initializer_range", c.embedding_std},
              {"qkv_bias", c.qkv_bias}});
  return out;
}

Json encoder_config(const ModelConfig& model, const std::string& architecture, const std::string& dtype) {
  const EncoderConfig& c = model.encoder;
  const std::string activation = activation_out(c.activation);
  Json out = classifier_config(model, architecture, dtype);
  out.update({{"vocab_size", c.vocab}, {"max_position_embeddings", c.positions}});
  if (architecture == "DistilBertForSequenceClassification") {
    out.update({{"model_type", "distilbert"},
                {"dim", c.d_model},
                {"hidden_dim", c.d_ff},
                {"n_layers", c.layers},
                {"n_heads", c.heads},
                {"activation", activation},
                {"dropout", c.dropout},
                {"seq_classif_dropout", c.dropout},
                {"attention_dropout", c.attention_dropout}});
    return out;
  }
  out.update({{"model_type", architecture.starts_with("Roberta") ? "roberta" : "bert"},
              {"hidden_size", c.d_model},
              {"intermediate_size", c.d_ff},
              {"num_hidden_layers", c.layers},
              {"num_attention_heads", c.heads},
              {"type_vocab_size", c.segments},
              {"hidden_act", activation},
              {"hidden_dropout_prob", c.dropout},
              {"attention_probs_dropout_prob", c.attention_dropout},
              {"layer_norm_eps", c.norm_eps}});
  if (c.first_position > 0) out["pad_token_id"] = c.first_position - 1;
  if (model.task == "masked") out["tie_word_embeddings"] = c.tied;
  return out;
}

}  // namespace

std::vector<double> in_folder_order(const FolderTensor& tensor, const std::vector<double>& ours) {
  const auto size = [&](int axis) { return static_cast<size_t>(tensor.shape[axis]); };
  if (tensor.order == FolderOrder::transposed) return turned(ours, size(1), size(0));
  if (tensor.order == FolderOrder::channels_first) return turned(ours, size(2) * size(3), size(1));
  return ours;
}

std::vector<double> in_our_order(const FolderTensor& tensor, const std::vector<double>& values) {
  const auto size = [&](int axis) { return static_cast<size_t>(tensor.shape[axis]); };
  if (tensor.order == FolderOrder::transposed) return turned(values, size(0), size(1));
  if (tensor.order == FolderOrder::channels_first) return turned(values, size(1), size(2) * size(3));
  return values;
}

Json folder_config(const ModelConfig& model, const std::string& dtype) {
  const DecoderConfig& c = model.decoder;
  const std::string architecture = architecture_of(model);
  if (model.kind == "vit") return vit_config(model, architecture, dtype);
  if (model.kind == "encoder") return encoder_config(model, architecture, dtype);
  Json out = {{"architectures", {architecture}}, {"dtype", dtype},        {"torch_dtype", dtype},
              {"tie_word_embeddings", c.tied},   {"vocab_size", c.vocab}, {"initializer_range", c.embedding_std}};
  if (architecture == "LlamaForCausalLM") {
    out.update({{"model_type", "llama"},
                {"hidden_size", c.d_model},
                {"intermediate_size", c.d_ff},
                {"num_hidden_layers", c.layers},
                {"num_attention_heads", c.heads},
                {"num_key_value_heads", c.heads_of_keys()},
                {"head_dim", c.width_of_head()},
                {"max_position_embeddings", model.length},
                {"hidden_act", "silu"},
                {"rms_norm_eps", c.norm_eps},
                {"rope_theta", c.rope_theta},
                {"rope_parameters", {{"rope_theta", c.rope_theta}, {"rope_type", "default"}}},
                {"attention_bias", c.bias},
                {"mlp_bias", c.bias},
                {"attention_dropout", c.attention_dropout}});
  } else {
    out.update({{"model_type", "gpt2"},
                {"n_embd", c.d_model},
                {"n_inner", c.d_ff},
                {"n_layer", c.layers},
                {"n_head", c.heads},
                {"n_positions", c.position_rows},
                {"activation_function", activation_out(c.feed_forward)},
                {"layer_norm_epsilon", c.norm_eps},
                {"resid_pdrop", c.dropout},
                {"embd_pdrop", c.dropout},
                {"attn_pdrop", c.attention_dropout}});
  }
  return out;
}

void read_folder(const HuggingFaceFolder& folder, const ModelConfig& model,
                 const std::function<void(const std::string& param, const std::vector<double>& values)>& put) {
  std::set<std::string> used;
  for (const FolderTensor& tensor : folder_tensors(model)) {
    const std::string name = name_in(folder, tensor.name);
    const SafetensorsFile* file = folder.file_of(name);
    if (!file) refuse(folder.path(), "no tensor " + tensor.name, "config.json describes a model that has it");
    used.insert(name);
    Shape shape;
    for (const int64_t size : file->entry(name).shape) shape.push_back(size);
    if (!(shape == tensor.shape)) refuse(folder.path(), name + " is " + shape.text(), "config.json describes " + tensor.shape.text());
    std::vector<double> values = file->values(name);
    values = in_our_order(tensor, values);
    auto at = values.begin();
    const int64_t rows = shape[tensor.order == FolderOrder::transposed ? 1 : 0], of_row = shape.count() / rows;
    for (const FolderTensor::Part& part : tensor.parts) {
      const auto end = at + part.rows * of_row;
      put(part.param, std::vector<double>(at, end));
      at = end;
    }
  }
  for (const std::string& name : folder.names())
    if (!used.contains(name) && !may_be_left_out(name, model)) refuse(folder.path(), "tensor " + name, "the model has no such parameter");
}

namespace {
void write_json(const std::string& path, const Json& json) {
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  if (!file.flush()) throw Error(ErrorCode::storage, "cannot write " + path, std::strerror(errno));
}
}  // namespace

void write_folder(const std::string& path, const ModelConfig& model, const std::string& dtype,
                  const std::function<std::vector<double>(const std::string& param)>& values, const PixelScale& scale) {
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
  writer.metadata("format", "pt");  // without which version 4 of the library refuses the file
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem) throw Error(ErrorCode::storage, "cannot make the folder " + path, problem.message());
  writer.finish((fs::path(path) / "model.safetensors").string());
  write_json((fs::path(path) / "config.json").string(), folder_config(model, dtype));
  if (model.kind == "vit") write_json((fs::path(path) / "preprocessor_config.json").string(), preprocessor_config(model, scale));
}

PixelScale pixel_scale_of_folder(const std::string& path) {
  const std::string name = (fs::path(path) / "preprocessor_config.json").string();
  if (!fs::is_regular_file(name)) return {};
  const Json config = read_json_file(name);
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
  const ImageSize image = model.image();
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
