// config.json of a model folder, read and written.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <type_traits>

#include "core/base/error.h"
#include "core/models/folder_errors.h"
#include "core/models/huggingface.h"

namespace comera {
namespace {

using folder_errors::refuse;
using folder_errors::shown;

constexpr int64_t kLongest = 65536;  // the largest model.length: longer texts are cut

// The settings of config.json, which the library leaves out where they have their default.
class Settings {
 public:
  explicit Settings(const HuggingFaceFolder& folder) : Settings(folder.path() + "/config.json", folder.config()) {}
  Settings(std::string path, const Json& config) : path_(std::move(path)), config_(config) {}

  template <class T>
  T get(const char* key, const std::optional<T>& otherwise = {}) const {
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) {
      if (otherwise) return *otherwise;
      refuse(path_, std::string("no ") + key, "the model's sizes are not known without it");
    }
    T value;
    if (!read(*found, value)) refuse(path_, std::string(key) + " is " + shown(*found), "it has another type, or is out of range");
    return value;
  }
  // Settings that no model here follows, unless they have this value.
  template <class T>
  void expect(const char* key, const T& only) const {
    if (get<T>(key, only) != only)
      refuse(path_, std::string(key) + " is " + shown(config_.at(key)), "this form of the model is not offered");
  }
  // New files have it among rope_parameters.
  double rope_theta() const {
    const auto rope = config_.find("rope_parameters");
    if (rope == config_.end() || !rope->is_object()) {
      if (const auto scaling = config_.find("rope_scaling"); scaling != config_.end() && !scaling->is_null())
        refuse(path_, "rope_scaling is set", "scaled rotary positions are not offered");
      return get<double>("rope_theta", 10000.0);
    }
    const Settings parameters(path_, *rope);
    if (parameters.get<std::string>("rope_type", std::string("default")) != "default")
      refuse(path_, "rope_type is " + shown(rope->at("rope_type")), "scaled rotary positions are not offered");
    return parameters.get<double>("rope_theta", 10000.0);
  }
  bool is_list(const char* key) const {
    const auto found = config_.find(key);
    return found != config_.end() && found->is_array();
  }
  // The number of classes: of the names of labels, or 2.
  int64_t labels() const {
    const auto names = config_.find("id2label");
    return names != config_.end() && names->is_object() ? static_cast<int64_t>(names->size()) : get<int64_t>("num_labels", int64_t{2});
  }
  const std::string& path() const { return path_; }

 private:
  static bool read(const Json& json, bool& value) { return json.is_boolean() && (value = json.get<bool>(), true); }
  static bool read(const Json& json, double& value) { return json.is_number() && std::isfinite(value = json.get<double>()); }
  static bool read(const Json& json, std::string& value) { return json.is_string() && (value = json.get<std::string>(), true); }
  // Far from where sums and products of sizes overflow.
  static bool read(const Json& json, int64_t& value) {
    const bool whole = json.is_number_integer() || (json.is_number_float() && std::floor(json.get<double>()) == json.get<double>());
    if (!whole || std::fabs(json.get<double>()) > 1e12) return false;
    value = json.get<int64_t>();
    return true;
  }
  template <class T>
  static bool read(const Json& json, std::vector<T>& value) {
    if (!json.is_array()) return false;
    for (const Json& item : json)
      if (!read(item, value.emplace_back())) return false;
    return true;
  }

  const std::string path_;
  const Json& config_;
};

// Activation functions, by their name in config.json.
std::string activation_in(const Settings& s, const char* key) {
  static const std::map<std::string, std::string> kNames = {
      {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"}, {"gelu", "gelu"}, {"relu", "relu"}, {"silu", "silu"}};
  const std::string name = s.get<std::string>(key, std::string(key == std::string("activation_function") ? "gelu_new" : "gelu"));
  if (!kNames.contains(name)) refuse(s.path(), std::string(key) + " is '" + shown(name) + "'", "this form of the model is not offered");
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
  model.length = std::min<int64_t>(s.get<int64_t>("max_position_embeddings", int64_t{2048}), kLongest);
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
  if (s.get<bool>("mlp_bias", false) != c.bias)
    refuse(s.path(), "attention_bias and mlp_bias differ", "here all linear layers have biases, or none");
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
  c.tied = s.get<bool>("tie_word_embeddings", true);
  s.expect<bool>("is_decoder", false);
  return model;
}

ModelConfig bert(const Settings& s) {
  ModelConfig model = bert_sizes(s);
  s.expect<std::string>("position_embedding_type", "absolute");
  model.length = model.encoder.positions;
  return model;
}

ModelConfig roberta(const Settings& s) {
  ModelConfig model = bert_sizes(s);
  s.expect<std::string>("position_embedding_type", "absolute");
  model.encoder.first_position = s.get<int64_t>("pad_token_id", int64_t{1}) + 1;
  model.length = model.encoder.positions - model.encoder.first_position;
  return model;
}

ModelConfig roformer(const Settings& s) {
  ModelConfig model = bert_sizes(s);
  EncoderConfig& c = model.encoder;
  model.length = std::min<int64_t>(s.get<int64_t>("max_position_embeddings", int64_t{1536}), kLongest);
  c.rotary = true;
  c.classifier_activation = c.activation;
  s.expect<int64_t>("embedding_size", c.d_model);
  s.expect<bool>("rotary_value", false);
  return model;
}

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
  c.tied = s.get<bool>("tie_word_embeddings", true);
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

// `head`: the task of the head that such a folder has; "": it has none.
struct Architecture {
  const char* name;
  ModelConfig (*read)(const Settings& settings);
  const char* head;
};
constexpr Architecture kArchitectures[] = {{"LlamaForCausalLM", llama, "language"},
                                           {"LlamaModel", llama, ""},
                                           {"GPT2LMHeadModel", gpt2, "language"},
                                           {"GPT2Model", gpt2, ""},
                                           {"BertForSequenceClassification", bert, "classification"},
                                           {"BertForMaskedLM", bert, "masked"},
                                           {"BertForPreTraining", bert, "masked"},
                                           {"BertModel", bert, ""},
                                           {"RobertaForSequenceClassification", roberta, "classification"},
                                           {"RobertaForMaskedLM", roberta, "masked"},
                                           {"RobertaModel", roberta, ""},
                                           {"RoFormerForSequenceClassification", roformer, "classification"},
                                           {"RoFormerForMaskedLM", roformer, "masked"},
                                           {"RoFormerModel", roformer, ""},
                                           {"DistilBertForSequenceClassification", distilbert, "classification"},
                                           {"DistilBertForMaskedLM", distilbert, "masked"},
                                           {"DistilBertModel", distilbert, ""},
                                           {"ViTForImageClassification", vit, "classification"},
                                           {"ViTModel", vit, ""}};

const Architecture& architecture_in(const Settings& settings) {
  const auto names = settings.get<std::vector<std::string>>("architectures", std::vector<std::string>());
  std::string known;
  for (const Architecture& each : kArchitectures) {
    if (std::find(names.begin(), names.end(), each.name) != names.end()) return each;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  refuse(settings.path(), "architecture " + (names.empty() ? "is not given" : shown(names.front())), "no model here has this form",
         "known are " + known);
}

// The task that is asked for, or that of the folder's head, of a model that can have it.
std::string task_of(const Settings& settings, const Architecture& architecture, const ModelConfig& model, const std::string& wanted) {
  const std::string task = wanted.empty() ? architecture.head : wanted;
  if (task.empty())
    refuse(settings.path(), std::string(architecture.name) + " has no head", "it does not say which task the model is for",
           "name one: comera train hf:FOLDER --task classify, or --set model.task=classification");
  const bool masks = model.kind == "encoder";
  const bool fits = model.kind == "decoder" ? task == "language" : task == "classification" || (masks && task == "masked");
  if (!fits)
    refuse(settings.path(), std::string("a ") + architecture.name + " cannot be trained with model.task " + task,
           model.kind == "decoder" ? "its tokens see those before them alone: it is a language model"
           : task == "language"    ? "its tokens see those after them, too"
                                   : "it has no such head",
           model.kind == "decoder" ? "use --task lm"
           : masks                 ? "use --task classify or mlm"
                                   : "use --task classify");
  return task;
}

bool is_gpt2(const DecoderConfig& c) {
  return c.positions == "learned" && c.norm == "layer" && c.feed_forward != "swiglu" && c.bias && c.heads_of_keys() == c.heads &&
         c.heads * c.width_of_head() == c.d_model;
}
bool is_llama(const DecoderConfig& c) { return c.positions == "rotary" && c.norm == "rms" && c.feed_forward == "swiglu"; }

// The library's encoder of this form (null: none), and the activation function of its classifier.
struct EncoderForm {
  const char* name = nullptr;
  std::string classifier = {};
};
EncoderForm encoder_form(const EncoderConfig& c) {
  if (c.norm != "layer") return {};
  if (c.rotary) return c.segments > 0 ? EncoderForm{"RoFormer", c.activation} : EncoderForm();
  if (c.segments >= 2 && c.first_position == 0) return {"Bert", "tanh"};
  if (c.segments == 1 && c.first_position > 0) return {"Roberta", "tanh"};
  if (c.segments == 0 && c.first_position == 0 && c.norm_eps == 1e-12) return {"DistilBert", "relu"};  // the library's epsilon is fixed
  return {};
}

}  // namespace

ModelConfig model_of_folder(const HuggingFaceFolder& folder, const std::string& task) {
  const Settings settings(folder);
  const Architecture& architecture = architecture_in(settings);
  ModelConfig model = architecture.read(settings);
  model.task = task_of(settings, architecture, model, task);
  if (model.classes < 2 && task.empty())
    refuse(settings.path(), "the model has " + std::to_string(model.classes) + " label", "a regression is not offered");
  model.classes = std::max<int64_t>(model.classes, 2);
  std::vector<Problem> problems;
  ModelConfig checked = model;
  fields_from_json(fields_of(checked), fields_to_json(fields_of(model)), problems);  // ranges
  if (problems.empty()) problems = model.problems(false);
  if (!problems.empty()) refuse(settings.path(), problems.front().path + " " + problems.front().text, problems.front().hint);
  const std::string form = architecture_of(model);
  for (const Architecture& each : kArchitectures)
    if (each.name == form && each.read != architecture.read)
      refuse(settings.path(), std::string("no form of ") + architecture.name, "its settings describe a " + form);
  return model;
}

bool needs_new_head(const HuggingFaceFolder& folder, const ModelConfig& model) {
  const Settings settings(folder);
  const Architecture& architecture = architecture_in(settings);
  return model.task != architecture.head || (model.task == "classification" && settings.labels() != model.classes);
}

std::string architecture_of(const ModelConfig& model) {
  if (model.kind == "decoder" && is_llama(model.decoder)) return "LlamaForCausalLM";
  if (model.kind == "decoder" && is_gpt2(model.decoder)) return "GPT2LMHeadModel";
  if (const auto [name, classifier] = encoder_form(model.encoder); model.kind == "encoder" && name) {
    if (model.task == "masked") return std::string(name) + "ForMaskedLM";
    if (model.task == "classification" && model.encoder.classifier_activation == classifier)
      return std::string(name) + "ForSequenceClassification";
  }
  if (model.kind == "vit" && model.task == "classification") return "ViTForImageClassification";
  throw Error(ErrorCode::config, "this model has no form of the transformers library",
              "language models are LLaMA's (rotary, RMS norm, SwiGLU) or GPT-2's (learned positions, layer norm, biases), text "
              "classifiers and masked language models BERT's, RoBERTa's, DistilBERT's or RoFormer's (rotary; the classifier has the "
              "activation of the "
              "blocks), image classifiers ViT's",
              "export it as safetensors");
}

namespace {

// As the library calls classes without names.
std::string numbered_label(int64_t i) { return "LABEL_" + std::to_string(i); }

Json classifier_config(const ModelConfig& model, const std::string& architecture, const std::string& dtype,
                       const std::vector<std::string>& label_names) {
  Json names = Json::object(), ids = Json::object();
  const bool named = static_cast<int64_t>(label_names.size()) == model.classes && model.task == "classification";
  for (int64_t i = 0; i < model.classes; ++i) {
    const std::string name = named ? label_names[static_cast<size_t>(i)] : numbered_label(i);
    names[std::to_string(i)] = name;
    ids[name] = i;
  }
  return {{"architectures", {architecture}}, {"dtype", dtype}, {"torch_dtype", dtype}, {"id2label", names}, {"label2id", ids}};
}

std::string activation_out(const std::string& activation) { return activation == "gelu_tanh" ? "gelu_new" : activation; }

Json vit_config(const ModelConfig& model, const std::string& architecture, const std::string& dtype,
                const std::vector<std::string>& label_names) {
  const VitConfig& c = model.vit;
  Json out = classifier_config(model, architecture, dtype, label_names);
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

Json encoder_config(const ModelConfig& model, const std::string& architecture, const std::string& dtype,
                    const std::vector<std::string>& label_names) {
  const EncoderConfig& c = model.encoder;
  const std::string activation = activation_out(c.activation);
  Json out = classifier_config(model, architecture, dtype, label_names);
  out.update({{"vocab_size", c.vocab}, {"max_position_embeddings", c.rotary ? model.length : c.positions}});
  if (model.task == "masked") out["tie_word_embeddings"] = c.tied;
  if (architecture.starts_with("DistilBert")) {
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
  out.update({{"model_type", c.rotary                              ? "roformer"
                             : architecture.starts_with("Roberta") ? "roberta"
                                                                   : "bert"},
              {"hidden_size", c.d_model},
              {"intermediate_size", c.d_ff},
              {"num_hidden_layers", c.layers},
              {"num_attention_heads", c.heads},
              {"type_vocab_size", c.segments},
              {"hidden_act", activation},
              {"hidden_dropout_prob", c.dropout},
              {"attention_probs_dropout_prob", c.attention_dropout},
              {"layer_norm_eps", c.norm_eps}});
  if (c.rotary) out.update({{"embedding_size", c.d_model}, {"rotary_value", false}});
  if (c.first_position > 0) out["pad_token_id"] = c.first_position - 1;
  return out;
}

}  // namespace

std::vector<std::string> label_names_of(const HuggingFaceFolder& folder) {
  const auto found = folder.config().find("id2label");
  std::vector<std::string> names;
  if (found == folder.config().end() || !found->is_object()) return names;
  bool named = false;
  for (size_t i = 0; i < found->size(); ++i) {
    const auto name = found->find(std::to_string(i));
    if (name == found->end() || !name->is_string()) return {};
    names.push_back(*name);
    named = named || names.back() != numbered_label(static_cast<int64_t>(i));
  }
  return named ? names : std::vector<std::string>();
}

Json folder_config(const ModelConfig& model, const std::string& dtype, const std::vector<std::string>& label_names) {
  const DecoderConfig& c = model.decoder;
  const std::string architecture = architecture_of(model);
  if (model.kind == "vit") return vit_config(model, architecture, dtype, label_names);
  if (model.kind == "encoder") return encoder_config(model, architecture, dtype, label_names);
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

}  // namespace comera
