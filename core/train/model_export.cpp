#include "core/train/model_export.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/layers/tt_export.h"
#include "core/models/huggingface.h"
#include "core/train/checkpoint.h"
#include "core/train/engine.h"

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

}  // namespace comera
