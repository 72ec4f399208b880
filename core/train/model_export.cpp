#include "core/train/model_export.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/mapped_file.h"
#include "core/config/named_methods.h"
#include "core/data/kept_tokenizer.h"
#include "core/data/random_rows.h"
#include "core/data/tokenizer.h"
#include "core/layers/lora.h"
#include "core/layers/tt_export.h"
#include "core/models/gguf.h"
#include "core/models/huggingface.h"
#include "core/models/peft.h"
#include "core/train/checkpoint.h"
#include "core/train/engine.h"

namespace comera {

namespace fs = std::filesystem;

namespace {

std::string exported_name(const std::string& name, ExportNames names) {
  if (names == ExportNames::own) return name;
  const std::string official = official_name(name);
  if (official.empty())
    throw Error(ErrorCode::config, "the parameter " + name + " has no name in the published model",
                "only the text classifier was published", "leave out --names official");
  return official;
}

// The values in the front corner of a larger shape, zeros elsewhere.
HostTensor padded(const Shape& from, const std::vector<double>& values, const Shape& to) {
  HostTensor out;
  out.shape = to;
  out.values.assign(static_cast<size_t>(to.count()), 0);
  for (int64_t i = 0; i < from.count(); ++i) {
    int64_t rest = i, place = 0, stride = 1;
    for (int axis = from.rank() - 1; axis >= 0; --axis) {
      place += rest % from[axis] * stride;
      rest /= from[axis];
      stride *= to[axis];
    }
    out.values[static_cast<size_t>(place)] = values[static_cast<size_t>(i)];
  }
  return out;
}

// put(tensor) for every parameter of the same model with dense matrices.
void each_dense(Engine& engine, const std::function<void(const HostTensor& tensor)>& put) {
  std::set<const Param*> gone;
  for (const auto& form : engine.forms())
    form->dense(engine.device(), [&](const HostTensor& matrix, const std::vector<const Param*>& parts) {
      put(matrix);
      gone.insert(parts.begin(), parts.end());
    });
  for (const Param& param : engine.params().params())
    if (!gone.contains(&param)) put({param.name, param.shape, to_host(engine.device(), param)});
}

// Axis by axis the larger of two shapes.
Shape covering(const Shape& a, const Shape& b) {
  Shape out;
  for (int axis = 0; axis < a.rank(); ++axis) out.push_back(std::max(a[axis], b[axis]));
  return out;
}

}  // namespace

void export_model(const std::string& path, const std::string& output, ExportNames names, bool dense, bool folded) {
  const SafetensorsFile file(path);
  const Json metadata = checkpoint_metadata(file);
  const RunConfig config = config_from_json(metadata.at("config"), path);
  if (names == ExportNames::official && (config.model.encoder.norm != "layer" || config.model.encoder.rotary))
    throw Error(ErrorCode::config, "the model has no counterpart among the published ones",
                "its norms are not layer norms, or its positions are rotary", "leave out --names official");
  const std::unique_ptr<Device> device = open_device("cpu");
  Engine engine(config, *device);
  engine.allocate();
  // The published model cannot be made with ranks that were cut: dead slices come back as zeros, up to the config's ranks.
  std::map<std::string, Shape> whole;
  if (names == ExportNames::official)
    for (const Param& param : engine.params().params()) whole[param.name] = param.shape;
  load_parameters(engine, file);
  const double threshold = config.method.comera.train_ranks ? config.method.comera.threshold : -1;
  SafetensorsWriter writer;
  const auto add = [&](const std::string& name, const Shape& shape, const std::vector<double>& values) {
    writer.add_values(exported_name(name, names), "F32", shape.sizes(), values);
  };
  if (dense) {
    each_dense(engine, [&](const HostTensor& tensor) { add(tensor.name, tensor.shape, tensor.values); });
  } else if (folded) {
    for (const HostTensor& tensor : fold(engine.params(), *device, threshold)) add(tensor.name, tensor.shape, tensor.values);
  } else {
    for (const Param& param : engine.params().params()) {
      const Shape shape = whole.empty() ? param.shape : covering(param.shape, whole.at(param.name));
      add(param.name, shape, padded(param.shape, to_host(*device, param), shape).values);
    }
  }
  // The published model keeps the row numbers of its position table as a buffer: part of its state_dict, not trained.
  std::vector<int64_t> position_ids(static_cast<size_t>(config.model.encoder.positions));
  std::iota(position_ids.begin(), position_ids.end(), int64_t{0});
  if (names == ExportNames::official)
    writer.add("encoder.embedding.position_ids", "I64", {1, config.model.encoder.positions}, position_ids.data());
  writer.metadata("format", "pt");
  Json config_of_file = metadata.at("config");
  if (dense) config_of_file["method"]["weights"] = "dense";
  writer.metadata("comera_config", config_of_file.dump());
  writer.finish(output);
}

namespace {

using Values = std::map<std::string, std::vector<double>>;  // of dense parameters

// A small batch: outputs are computed, nothing is trained.
RunConfig with_few_tokens(RunConfig config) {
  config.train.micro_batches = 1;
  config.train.batch = 2 * config.method.chosen_weights().shares;
  config.model.length = std::min<int64_t>(config.model.length, 16);
  config.data.pack = false;
  return config;
}

// Outputs for random inputs, the same for each model of these sizes.
std::vector<double> logits_of(Engine& engine) {
  const RunConfig& config = engine.config();
  BatchOptions options;
  options.batch_size = config.train.batch;
  options.length = config.model.length;
  options.shuffle = false;
  const Batch batch = random_batch(engine.layout(), options);
  StepScalars scalars;
  scalars.step = 1;
  scalars.threshold = config.method.comera.threshold;
  scalars.pruning = config.method.comera.train_ranks ? 1 : 0;
  std::vector<double> logits;
  engine.score(batch, scalars, &logits);
  return logits;
}

// A model as other programs have it, and what it computes.
struct KnownModel {
  RunConfig config;
  Values dense;     // products multiplied out
  Adapter factors;  // those of LoRA, and their dropout
  Values frozen;    // the matrices that have factors, without them
  std::vector<double> logits;
  std::vector<std::string> label_names;
};

bool is_tied(const ModelConfig& model) { return model.per_token() && model.info().tied; }
void untie(ModelConfig& model) { model.decoder.tied = model.encoder.tied = false; }

// RoFormer's embeddings always have segments: those of a rotary encoder without them are 0.
void add_segments(ModelConfig& model, Values& dense) {
  if (model.kind != "encoder" || !model.encoder.rotary || model.encoder.segments > 0) return;
  model.encoder.segments = 1;
  dense["emb.segment"] = std::vector<double>(static_cast<size_t>(model.encoder.d_model), 0);
}

KnownModel read_known_model(const std::string& path) {
  const SafetensorsFile file(path);
  const Json metadata = checkpoint_metadata(file);
  const RunConfig config = checkpoint_config(file, metadata);
  KnownModel model{config, {}, {}, {}, {}, trained_on(metadata).label_names};
  add_segments(model.config.model, model.dense);
  architecture_of(model.config.model);  // refuses a model without a form before anything is written
  const std::unique_ptr<Device> device = open_device("cpu");
  Engine engine(with_few_tokens(config), *device);
  engine.keep_token_outputs();
  engine.allocate();
  load_parameters(engine, file);
  each_dense(engine, [&](const HostTensor& tensor) { model.dense[tensor.name] = tensor.values; });
  const LoraConfig& lora = config.method.lora;
  model.factors.dropout = lora.dropout;
  for (const auto& [a, b] : lora_factors(engine.params())) {
    const std::string name = a->name.substr(0, a->name.size() - std::string(".lora.a").size()) + ".weight";
    const Param& matrix = *engine.params().find(name);
    model.factors.products[name] = {to_host(*device, *a), to_host(*device, *b), a->shape[0], lora.scale(), matrix.kind == ParamKind::table};
    model.frozen[name] = to_host(*device, matrix);
  }
  model.logits = logits_of(engine);
  return model;
}

// Of a dense model with these parameters.
std::vector<double> logits_of(const RunConfig& of, const ModelConfig& model, const Values& values) {
  RunConfig config;
  config.model = model;
  config.model.length = of.model.length;
  config.train.precision = of.train.precision;
  set_method(config.method, "lomo");  // dense matrices, and no memory for gradients and states
  const std::unique_ptr<Device> device = open_device("cpu");
  Engine engine(with_few_tokens(config), *device);
  engine.keep_token_outputs();
  engine.allocate();
  for (const Param& param : engine.params().params()) {
    const auto own = values.find(param.name);
    CHECK(own != values.end(), "no values for " << param.name);
    from_host(*device, param, own->second);
  }
  return logits_of(engine);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK(a.size() == b.size(), a.size() << " and " << b.size() << " values");
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, a[i] == b[i] ? 0 : std::fabs(a[i] - b[i]));
  return largest;
}

// The values that were read again, `of_model` being the model that they are of.
void difference(const KnownModel& model, const ModelConfig& of_model, const Values& again, Difference& out) {
  for (const auto& [name, values] : again) out.weight = std::max(out.weight, largest_difference(model.dense.at(name), values));
  out.logit = largest_difference(model.logits, logits_of(model.config, of_model, again));
}

// A head that is tied to a table with factors has the table without them.
void untie_from_factors(KnownModel& model) {
  const auto table = model.frozen.find("emb.token.weight");
  if (table == model.frozen.end() || !is_tied(model.config.model)) return;
  untie(model.config.model);
  model.dense["head.weight"] = table->second;
}

// The config.json next to the tokenizer, if it is of a model with as many tokens.
std::optional<Json> model_config_beside(const std::string& tokenizer, const ModelConfig& model) {
  const fs::path path = fs::path(tokenizer).parent_path() / "config.json";
  if (!fs::is_regular_file(path)) return {};
  const Json config = try_parse_json(MappedFile(path.string()).bytes());
  const int64_t tokens = model.kind == "decoder" ? model.decoder.vocab : model.encoder.vocab;
  if (!config.is_object() || config.value("vocab_size", Json()) != Json(tokens)) return {};
  return config;
}

// The file of the run's tokenizer, or that it is gone; of images and bytes neither.
void find_tokenizer(const RunConfig& config, Difference& out) {
  const std::string& named = config.data.vocab;
  if (named.empty()) {
    if (config.model.kind == "encoder") out.tokenizer = bert_vocabulary(assets_folder());
    return;
  }
  try {
    out.tokenizer = tokenizer_file(named);
  } catch (const Error&) {  // the folder no longer has one
  }
  if (out.tokenizer.empty() || !fs::exists(out.tokenizer)) out = {.missing = named};
}

// What config.json says of the special tokens: as in the config.json next to the tokenizer, if that is a model's with as many tokens, or as
// the tokenizer says. The library has defaults for ids that a decoder's config.json lacks.
Json token_ids(const std::string& tokenizer, const ModelConfig& model) {
  Json ids = Json::object();
  if (model.info().reads == Reads::images) return ids;
  const bool decoder = model.kind == "decoder";
  if (decoder) ids = {{"bos_token_id", nullptr}, {"eos_token_id", nullptr}, {"pad_token_id", nullptr}};
  // config.json has the padding's id already where positions start after it (RoBERTa).
  if (tokenizer.empty() || (!decoder && model.encoder.first_position > 0)) return ids;
  if (const auto config = model_config_beside(tokenizer, model)) {
    for (const char* name : {"bos_token_id", "eos_token_id", "pad_token_id"})
      if (const auto id = config->find(name); id != config->end()) ids[name] = *id;
    return ids;
  }
  const auto known = open_tokenizer(tokenizer);
  if (decoder && known->end() >= 0) ids["eos_token_id"] = known->end();
  if (known->pad() >= 0) ids["pad_token_id"] = known->pad();
  return ids;
}

}  // namespace

Difference export_folder(const std::string& path, const std::string& folder, const std::string& dtype) {
  KnownModel model = read_known_model(path);
  untie_from_factors(model);
  const DataConfig& data = model.config.data;
  Difference out;
  find_tokenizer(model.config, out);
  if (!out.tokenizer.empty()) check_place_of_tokenizer(out.tokenizer, folder);
  write_folder(
      folder, model.config.model, dtype, [&](const std::string& param) { return model.dense.at(param); }, {data.pixel_mean, data.pixel_std},
      model.label_names, token_ids(out.tokenizer, model.config.model));
  const HuggingFaceFolder again(folder);
  const ModelConfig of_folder = model_of_folder(again);
  Values read;
  read_folder(again, of_folder, [&](const std::string& param, const std::vector<double>& values) { read[param] = values; });
  difference(model, of_folder, read, out);
  if (out.tokenizer.empty()) return out;
  const bool of_model = model_config_beside(out.tokenizer, model.config.model).has_value();
  copy_tokenizer(out.tokenizer, folder, of_model ? std::vector<std::string>{"generation_config.json"} : std::vector<std::string>());
  return out;
}

Difference export_adapter(const std::string& path, const std::string& base, const std::string& folder) {
  KnownModel model = read_known_model(path);
  if (model.factors.products.empty())
    throw Error(ErrorCode::config, "the run has no factors of LoRA", "its method.weights is " + model.config.method.weights,
                "use --to huggingface, or train with --method lora");
  const HuggingFaceFolder library(base);
  Values of_base;
  read_folder(library, model.config.model, [&](const std::string& param, const std::vector<double>& values) { of_base[param] = values; });
  for (const auto& [name, frozen] : model.frozen)
    if (largest_difference(of_base.at(name), frozen) > 0)
      throw Error(ErrorCode::config, name + " is not that of " + base, "the run did not begin with this base model",
                  "export step 0 of the run as the base: comera export RUN --step 0 --to huggingface");
  for (const auto& [name, values] : model.dense)
    if (const auto own = of_base.find(name); !model.frozen.contains(name) && (own == of_base.end() || own->second != values))
      model.factors.replaced[name] = values;
  write_adapter(folder, model.config.model, model.factors, std::filesystem::absolute(base).lexically_normal().string(),
                [&](const std::string& param) -> const std::vector<double>& {
                  const auto without_factors = model.frozen.find(param);
                  return without_factors == model.frozen.end() ? model.dense.at(param) : without_factors->second;
                });
  ModelConfig of_model = model.config.model;
  untie_from_factors(model);
  Values read;
  read_adapter(folder, library, of_model, [&](const std::string& param, const std::vector<double>& values) { read[param] = values; });
  Difference out;
  difference(model, model.config.model, read, out);
  return out;
}

Difference export_gguf(const std::string& path, const std::string& output, const std::string& dtype) {
  KnownModel model = read_known_model(path);
  untie_from_factors(model);
  const GgufType type = dtype == "q8_0" ? GgufType::q8_0 : dtype == "float16" ? GgufType::f16 : GgufType::f32;
  Difference out;
  find_tokenizer(model.config, out);
  if (!out.tokenizer.ends_with(".json") || out.tokenizer.ends_with("vocab.json")) out.tokenizer = "";
  write_gguf(output, model.config.model, type, model.config.name, out.tokenizer, token_ids(out.tokenizer, model.config.model),
             [&](const std::string& param) { return model.dense.at(param); });
  Values read;
  read_gguf(GgufFile(output), model.config.model,
            [&](const std::string& param, const std::vector<double>& values) { read[param] = values; });
  difference(model, model.config.model, read, out);
  return out;
}

}  // namespace comera
