#include "core/train/model_export.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/layers/tt_export.h"
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
    std::set<const Param*> gone;
    for (const auto& form : engine.forms())
      form->dense(*device, [&](const HostTensor& matrix, const std::vector<const Param*>& parts) {
        add(matrix.name, matrix.shape, matrix.values);
        gone.insert(parts.begin(), parts.end());
      });
    for (const Param& param : engine.params().params())
      if (!gone.contains(&param)) add(param.name, param.shape, to_host(*device, param));
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

void import_model(const std::string& path, const RunConfig& config, const std::string& output) {
  const SafetensorsFile file(path);
  const std::unique_ptr<Device> device = open_device("cpu");
  // The training state of a fresh run, with the file's parameters in it.
  Engine engine(config, *device);
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
  Json state = TrainState().to_json();
  engine.method().save(state);
  save_checkpoint(engine, config, state, "", output);
}

}  // namespace comera
