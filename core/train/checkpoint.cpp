// The whole state of a run in one safetensors file: parameters, optimizer state, stash ranges, and as metadata the
// config with all edits and the plain TrainState. Bond sizes may differ from the config's start (ranks were cut or grew):
// the file's shapes win.
#include "core/train/checkpoint.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/data/kept_tokenizer.h"
#include "core/data/labels.h"
#include "core/layers/lora.h"
#include "core/methods/rank_grow.h"
#include "core/train/trainer.h"

namespace comera {

Json TrainState::to_json() const {
  return {{"step", step},           {"cursor", cursor}, {"best_loss", best_loss}, {"best_accuracy", best_accuracy},
          {"best_step", best_step}, {"worse", worse}};
}

TrainState TrainState::from_json(const Json& json) {
  TrainState state;
  state.step = json.at("step");
  state.cursor = json.at("cursor");
  state.best_loss = json.at("best_loss");
  state.best_accuracy = json.at("best_accuracy");
  state.best_step = json.at("best_step");
  state.worse = json.value("worse", int64_t{0});
  return state;
}

namespace {

constexpr const char* kFormat = "comera-checkpoint-1";

// The bytes of a device tensor on the host, kept alive until the file is written.
class HostCopy {
 public:
  const void* add(Device& device, const Tensor& tensor) {
    copies_.emplace_back(static_cast<size_t>(tensor.bytes()));
    device.download(copies_.back().data(), tensor.raw(), tensor.bytes());
    return copies_.back().data();
  }

 private:
  std::deque<std::vector<char>> copies_;
};

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f64:
      return "F64";
    case DType::i32:
      return "I32";
    case DType::bf16:
      return "BF16";
    case DType::u8:
      break;
  }
  return "U8";
}

[[noreturn]] void misfit(const SafetensorsFile& file, const std::string& name, const std::string& why) {
  throw Error(ErrorCode::storage, file.path() + " does not fit this model: " + name, why, "is it a checkpoint of this run?");
}

void load(Device& device, const SafetensorsFile& file, const std::string& name, const Tensor& tensor) {
  const SafetensorsEntry& entry = file.entry(name);
  if (entry.shape != tensor.shape().sizes() || entry.dtype != dtype_name(tensor.dtype()))
    misfit(file, name, "its shape or number format differs, the model has " + tensor.shape().text() + " " + name_of(tensor.dtype()));
  device.upload(tensor.raw(), file.data(name), tensor.bytes());
  file.check_unchanged();
}

// The rank of a bond in the file; 0 where it is not one of this model.
int64_t stored_rank(const SafetensorsFile& file, const RankLayer& layer, size_t bond) {
  const Param& rank = *layer.ranks[bond];
  const SafetensorsEntry& entry = file.entry(rank.name);
  const int64_t stored = entry.shape.size() == 1 ? entry.shape[0] : 0;
  return stored <= std::max(rank.count(), rank_limit(layer, bond)) ? stored : 0;
}

// Bonds of the file may be smaller than the model's, or larger (ranks were cut, or grew): gives the model the file's
// ranks. Which slices stay does not matter, every value is overwritten afterwards.
void resize_to(Engine& engine, const SafetensorsFile& file) {
  BondEntries bonds;
  bool other = false;
  for (const RankLayer& layer : engine.params().rank_layers()) {
    bonds.emplace_back();
    for (size_t bond = 0; bond < layer.ranks.size(); ++bond) {
      const Param& rank = *layer.ranks[bond];
      const int64_t stored = stored_rank(file, layer, bond);
      if (stored < 1) misfit(file, rank.name, "its rank is out of range");
      other = other || stored != rank.count();
      std::vector<int64_t> entries(static_cast<size_t>(stored), kNewEntry);
      std::iota(entries.begin(), entries.begin() + std::min(stored, rank.count()), int64_t{0});
      bonds.back().push_back(std::move(entries));
    }
  }
  if (other) resize_bonds(engine, bonds);

  FactorEntries factors;
  other = false;
  for (const auto& [a, b] : lora_factors(engine.params())) {
    const SafetensorsEntry& entry = file.entry(a->name);
    const int64_t stored = entry.shape.size() == 2 ? entry.shape[0] : -1;
    if (stored < 1 || entry.shape[1] != a->shape[1]) misfit(file, a->name, "its rank is out of range");
    other = other || stored != a->shape[0];
    factors.emplace_back(static_cast<size_t>(stored), kNewEntry);
    std::iota(factors.back().begin(), factors.back().begin() + std::min(stored, a->shape[0]), int64_t{0});
  }
  if (other)
    engine.reshape(
        [&](Memory& memory, Ctx& ctx) { resize_factors(engine.device(), memory, engine.params(), engine.optimizer(), ctx, factors); });
}

// A parameter that the model lacks would be a layer that is dropped silently. Optimizer and stash state may be left over, since a
// fork may use another method.
void refuse_surplus(const Engine& engine, const SafetensorsFile& file) {
  std::set<std::string> names;
  for (const Param& param : engine.params().params())
    param.stored([&](const std::string& suffix, const Tensor&) { names.insert(param.name + suffix); });
  for (const auto& [name, entry] : file.entries())
    if (!names.contains(name) && !is_training_state(name)) misfit(file, name, "the model has no such parameter");
}

}  // namespace

void take_ranks(ParamSet& params, const std::string& path) {
  const SafetensorsFile file(path);
  LiveRanks ranks;
  for (const RankLayer& layer : params.rank_layers()) {
    ranks.emplace_back();
    for (size_t bond = 0; bond < layer.ranks.size(); ++bond) {
      if (!file.has(layer.ranks[bond]->name)) return;
      ranks.back().push_back(stored_rank(file, layer, bond));
      if (ranks.back().back() < 1) return;
    }
  }
  set_ranks(params, ranks);
}

void resize_bonds(Engine& engine, const BondEntries& bonds) {
  engine.reshape([&](Memory& memory, Ctx& ctx) { resize_bonds(engine.device(), memory, engine.params(), engine.optimizer(), ctx, bonds); });
}

bool is_training_state(const std::string& name) { return name.starts_with("opt.") || name.starts_with("state."); }

Json checkpoint_metadata(const SafetensorsFile& file) {
  const auto found = file.metadata().find("comera");
  if (found == file.metadata().end())
    throw Error(ErrorCode::storage, file.path() + " is not a checkpoint of this program", "it has no 'comera' metadata",
                "comera import reads models of other programs");
  const Json metadata = parse_json(found->second, file.path());
  if (!metadata.is_object() || !metadata.contains("config") || !metadata.contains("state"))
    throw Error(ErrorCode::storage, file.path() + " is not a checkpoint of this program", "its 'comera' metadata has no config or no state",
                "use another checkpoint of the run");
  return metadata;
}

RunConfig checkpoint_config(const SafetensorsFile& file, const Json& metadata) {
  RunConfig config = config_from_json(metadata.at("config"), file.path());
  config.data.vocab = kept_tokenizer(config.data.vocab, std::filesystem::path(file.path()).parent_path().string());
  return config;
}

RunConfig checkpoint_config(const std::string& path) {
  const SafetensorsFile file(path);
  return checkpoint_config(file, checkpoint_metadata(file));
}

void load_parameters(Engine& engine, const SafetensorsFile& file) {
  refuse_surplus(engine, file);
  resize_to(engine, file);
  for (const Param& param : engine.params().params())
    param.stored([&](const std::string& suffix, const Tensor& tensor) { load(engine.device(), file, param.name + suffix, tensor); });
}

TrainedOn trained_on(const Json& metadata) {
  TrainedOn data;
  if (const auto found = metadata.find("vocabulary"); found != metadata.end() && found->is_string()) data.vocabulary = *found;
  const auto names = metadata.find("label_names");
  if (names == metadata.end() || !names->is_array() || !std::ranges::all_of(*names, [](const Json& name) { return name.is_string(); }))
    return data;
  for (const Json& name : *names) data.label_names.push_back(name);
  return data;
}

void save_checkpoint(Engine& engine, const RunConfig& config, const Json& state, const TrainedOn& data, const std::string& path) {
  SafetensorsWriter writer;
  HostCopy host;
  Device& device = engine.device();
  const auto add = [&](const std::string& name, const Tensor& tensor) {
    writer.add(name, dtype_name(tensor.dtype()), tensor.shape().sizes(), host.add(device, tensor));
  };
  for (const Param& param : engine.params().params())
    param.stored([&](const std::string& suffix, const Tensor& tensor) { add(param.name + suffix, tensor); });
  for (Param& param : engine.params().params())
    engine.optimizer().states(param, [&](const std::string& name, Tensor& value) { add("opt." + name + "." + param.name, value); });
  for (State& item : engine.params().states()) add("state." + item.name, item.value);
  Json metadata = {{"format", kFormat}, {"config", config_to_json(config)}, {"state", state}};
  if (!data.vocabulary.empty()) metadata["vocabulary"] = data.vocabulary;
  if (!data.label_names.empty()) metadata["label_names"] = data.label_names;
  writer.metadata("comera", metadata.dump());
  writer.metadata("step", state.at("step").dump());
  writer.finish(path);
}

void Trainer::collect() {
  drain();
  if (!engine_.has_blocks()) return;
  tell_call("collect");
  engine_.collect_blocks();
}

void Trainer::save(const std::string& path) {
  CHECK(averaged_, "a checkpoint between two averages");
  collect();
  Json state = state_.to_json();
  engine_.method().save(state);
  if (method_changes_) {
    MethodConfig in_force = engine_.config().method;
    state["optimizer"] = fields_to_json(fields_of(static_cast<OptimizerSettings&>(in_force)));
    state["lora"] = fields_to_json(fields_of(in_force.lora));
  }
  const DatasetInfo& info = train_->info();
  save_checkpoint(engine_, config_, state, {info.vocab_fingerprint, info.label_names.empty() ? label_names_ : info.label_names}, path);
}

// The file has the values and states of the settings that were in force: those of its config, unless an edit waited for the next step. A
// fork may have others of the same optimizer and weights, which they follow.
void Trainer::restore_method(const Json& metadata, const std::string& path) {
  const MethodConfig stored = config_from_json(metadata.at("config"), path).method;
  MethodConfig in_force = method_wanted(config_);
  std::vector<Problem> problems;
  const Json& state = metadata.at("state");
  const auto take = [&]<class Settings>(const char* name, Settings& settings, const Settings& of_config) {
    settings = of_config;
    if (state.contains(name)) fields_from_json(fields_of(settings), state.at(name), problems);
  };
  if (stored.optimizer == in_force.optimizer && stored.inner_rule() == in_force.inner_rule())
    take("optimizer", static_cast<OptimizerSettings&>(in_force), static_cast<const OptimizerSettings&>(stored));
  if (stored.weights == in_force.weights) take("lora", in_force.lora, stored.lora);
  if (!problems.empty())
    throw Error(ErrorCode::storage, "the method's settings of the checkpoint are damaged",
                problems.front().path + " " + problems.front().text, "use another checkpoint of the run");
  in_force.adam.weight_decay = engine_.config().method.adam.weight_decay;
  in_force.adam.decay_vectors = engine_.config().method.adam.decay_vectors;
  MethodConfig own = method_wanted(config_);
  if (field_values(fields_of(own)) == field_values(fields_of(in_force))) return;
  engine_.change_method(in_force, 0);
  method_changes_ = true;
}

void Trainer::restore(const std::string& path) {
  tell_call("restore", std::filesystem::absolute(path).string());
  const SafetensorsFile file(path);
  const Json metadata = checkpoint_metadata(file);
  label_names_ = trained_on(metadata).label_names;
  refuse_reordered_classes(label_names_, train_->info().label_names);
  engine_.allocate();
  restore_method(metadata, path);
  load_parameters(engine_, file);
  Device& device = engine_.device();
  for (Param& param : engine_.params().params())
    engine_.optimizer().states(
        param, [&](const std::string& name, Tensor& value) { load(device, file, "opt." + name + "." + param.name, value); });
  for (State& state : engine_.params().states()) load(device, file, "state." + state.name, state.value);
  try {
    state_ = TrainState::from_json(metadata.at("state"));
    engine_.method().restore(metadata.at("state"));
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::storage, "the training state of the checkpoint is damaged", "a value is missing or of the wrong kind",
                "use another checkpoint of the run");
  }
  restart_prefetch();
  report_all();
  meet_others();
}

}  // namespace comera
