#include "core/train/model_export.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/data/tokenizer.h"
#include "core/layers/tt_export.h"
#include "core/models/huggingface.h"
#include "core/train/checkpoint.h"
#include "core/train/trainer.h"

namespace comera {
namespace {

std::vector<int64_t> sizes(const Shape& shape) {
  std::vector<int64_t> out;
  for (int axis = 0; axis < shape.rank(); ++axis) out.push_back(shape[axis]);
  return out;
}

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

// The dense matrix NAME.weight of a tensor train NAME; null: there is no such train.
const RankLayer* train_of(Engine& engine, const std::string& name) {
  for (const RankLayer& layer : engine.params().rank_layers())
    if (name == layer.name + ".weight") return &layer;
  return nullptr;
}

Compressed take_train(Engine& engine, const RankLayer& layer, const std::vector<double>& matrix) {
  const TrainOfMatrix train = tt_svd(layer, matrix);
  Compressed out{layer.name, layer.dense_entries(), 0, train.error};
  for (size_t k = 0; k < layer.cores.size(); ++k) {
    from_host(engine.device(), *layer.cores[k], train.cores[k]);
    out.entries += layer.cores[k]->count();
  }
  return out;
}

// The matrices that a folder has go in as they are, or as tensor trains.
std::vector<Compressed> take_folder(Engine& engine, const std::string& path) {
  std::vector<Compressed> out;
  const HuggingFaceFolder folder(path);
  read_folder(folder, engine.config().model, [&](const std::string& name, const std::vector<double>& values) {
    if (const RankLayer* layer = train_of(engine, name)) {
      out.push_back(take_train(engine, *layer, values));
    } else {
      const Param* param = engine.params().find(name);
      CHECK(param, "no place for " << name);
      from_host(engine.device(), *param, values);
    }
  });
  return out;
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
  if (names == ExportNames::official && config.model.encoder.norm != "layer")
    throw Error(ErrorCode::config, "the model has no counterpart among the published ones", "its norms are not layer norms",
                "leave out --names official");
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
    writer.add_values(exported_name(name, names), "F32", sizes(shape), values);
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
  writer.metadata("comera_config", metadata.at("config").dump());
  writer.finish(output);
}

double export_folder(const std::string& path, const std::string& folder, const std::string& dtype) {
  const SafetensorsFile file(path);
  const RunConfig config = config_from_json(checkpoint_metadata(file).at("config"), path);
  architecture_of(config.model);  // refuses a model without a form before anything is written
  const std::unique_ptr<Device> device = open_device("cpu");
  Engine engine(config, *device);
  engine.allocate();
  load_parameters(engine, file);
  std::map<std::string, std::vector<double>> values;
  each_dense(engine, [&](const HostTensor& tensor) { values[tensor.name] = tensor.values; });
  write_folder(folder, config.model, dtype, [&](const std::string& param) { return values.at(param); },
               {config.data.pixel_mean, config.data.pixel_std});
  double largest = 0;
  const HuggingFaceFolder again(folder);
  read_folder(again, model_of_folder(again), [&](const std::string& param, const std::vector<double>& read) {
    const std::vector<double>& own = values.at(param);
    for (size_t i = 0; i < own.size(); ++i) largest = std::max(largest, std::fabs(own[i] - read[i]));
  });
  return largest;
}

bool is_model_folder(const std::string& path) { return std::filesystem::is_regular_file(std::filesystem::path(path) / "config.json"); }

RunConfig config_of_folder(const std::string& path) {
  RunConfig config;
  config.model = model_of_folder(HuggingFaceFolder(path));
  config.method.weights = "dense";
  if (config.model.kind == "vit") {
    const PixelScale scale = pixel_scale_of_folder(path);
    config.data.pixel_mean = scale.mean, config.data.pixel_std = scale.std;
  }
  config.data.vocab = tokenizer_file_in(std::filesystem::absolute(std::filesystem::path(path)).lexically_normal().string());
  config.name = std::filesystem::path(path).lexically_normal().filename().string();
  if (config.name.empty()) config.name = std::filesystem::path(path).parent_path().filename().string();
  return config;
}

namespace {
void save_fresh(Engine& engine, const RunConfig& config, const std::string& output) {
  Json state = TrainState().to_json();
  engine.method().save(state);
  save_checkpoint(engine, config, state, "", output);
}
}  // namespace

std::vector<Compressed> import_model(const std::string& path, const RunConfig& config, const std::string& output) {
  const std::unique_ptr<Device> device = open_device("cpu");
  // The training state of a fresh run, with the file's parameters in it.
  Engine engine(config, *device);
  if (std::filesystem::is_directory(path)) {
    engine.allocate();
    std::vector<Compressed> compressed = take_folder(engine, path);
    save_fresh(engine, config, output);
    return compressed;
  }
  const SafetensorsFile file(path);
  const bool official = [&] {
    for (const Param& param : engine.params().params())
      if (file.has(param.name)) return false;
    return true;
  }();
  const auto name_of_param = [&](const Param& param) { return official ? official_name(param.name) : param.name; };
  std::set<std::string> names;
  for (const Param& param : engine.params().params()) names.insert(name_of_param(param));
  for (const auto& [name, entry] : file.entries())  // integers are buffers of the published model, not parameters
    if (!names.contains(name) && !is_training_state(name) && entry.dtype.front() != 'I')
      throw Error(ErrorCode::config, "tensor '" + name + "' has no place in the model", "the file has layers that the config lacks",
                  "give the config the model was made with: --config");
  engine.allocate();
  BondEntries cut;
  bool smaller = false;
  for (const RankLayer& layer : engine.params().rank_layers()) {
    cut.emplace_back();
    for (const Param* rank : layer.ranks) {
      const int64_t stored = file.entry(name_of_param(*rank)).count();
      if (stored < 1 || stored > rank->count())
        throw Error(ErrorCode::config, "the rank of " + rank->name + " is " + std::to_string(stored) + " in the file",
                    "the config has " + std::to_string(rank->count()), "give a config with at least the file's ranks");
      smaller = smaller || stored < rank->count();
      std::vector<int64_t> keep;
      for (int64_t i = 0; i < stored; ++i) keep.push_back(i);
      cut.back().push_back(keep);
    }
  }
  if (smaller) resize_bonds(engine, cut);
  SafetensorsWriter writer;
  for (Param& param : engine.params().params()) {
    const std::string name = name_of_param(param);
    if (param.kind == ParamKind::factor && !file.has(name)) continue;  // the file has the matrix alone: factors begin as drawn
    const SafetensorsEntry& entry = file.entry(name);
    if (entry.shape != sizes(param.shape))
      throw Error(ErrorCode::config, "tensor '" + name + "' has another shape than the config's " + param.shape.text(),
                  "the file and the config are of different sizes", "give the config the model was made with: --config");
    from_host(*device, param, file.values(name));
  }
  save_fresh(engine, config, output);
  return {};
}

}  // namespace comera
