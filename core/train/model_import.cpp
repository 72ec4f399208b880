#include "core/train/model_import.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/data/tokenizer.h"
#include "core/layers/tt_export.h"
#include "core/models/huggingface.h"
#include "core/models/model.h"
#include "core/train/checkpoint.h"
#include "core/train/matrix_moments.h"
#include "core/train/trainer.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> sizes(const Shape& shape) {
  std::vector<int64_t> out;
  for (int axis = 0; axis < shape.rank(); ++axis) out.push_back(shape[axis]);
  return out;
}

// The training state of a fresh run, with the engine's parameters in it.
void save_fresh(Engine& engine, const RunConfig& config, const TrainedOn& data, const std::string& output) {
  Json state = TrainState().to_json();
  engine.method().save(state);
  save_checkpoint(engine, config, state, data, output);
}

// Parameters and states are the same for any batch: a small one needs no room for activations.
RunConfig with_small_batch(RunConfig config) {
  config.train.micro_batches = 1;
  config.train.batch = config.method.chosen_weights().shares;
  config.model.length = std::min<int64_t>(config.model.length, 8);
  config.data.pack = false;
  return config;
}

// The settings of a layer's kind of matrix.
TTOptions& options_of(TTKinds& kinds, const std::string& layer) {
  if (layer.starts_with("emb.")) return kinds.embedding;
  if (layer == "head") return kinds.head;
  if (layer.starts_with("classifier.") || layer.starts_with("masked.")) return kinds.classifier;
  if (layer.find(".attn.") != std::string::npos) return kinds.attention;
  return layer.ends_with(".out") || layer.ends_with(".down") ? kinds.ffn_out : kinds.ffn_in;
}

// The config's ranks become the largest of each kind; layers that the folder does not have keep theirs.
void take_ranks(RunConfig& config, const FolderWeights& weights) {
  std::map<TTOptions*, int64_t> largest;
  for (const Compressed& layer : weights.compressed) {
    int64_t& rank = largest[&options_of(config.model.tt, layer.layer)];
    rank = std::max(rank, layer.ranks.empty() ? 1 : *std::max_element(layer.ranks.begin(), layer.ranks.end()));
  }
  for (const auto& [options, rank] : largest) {
    options->ranks.clear();
    options->rank = rank;
  }
}

// Ranks up to those of the engine's model.
void cut_to(Engine& engine, const LiveRanks& ranks) {
  BondEntries cut;
  bool smaller = false;
  const auto& layers = engine.params().rank_layers();
  for (size_t i = 0; i < layers.size(); ++i) {
    cut.emplace_back();
    for (size_t bond = 0; bond < layers[i].ranks.size(); ++bond) {
      cut.back().emplace_back(static_cast<size_t>(ranks[i][bond]));
      std::iota(cut.back().back().begin(), cut.back().back().end(), int64_t{0});
      smaller = smaller || ranks[i][bond] < layers[i].ranks[bond]->count();
    }
  }
  if (smaller) resize_bonds(engine, cut);
}

using Moments = std::map<std::string, GradientMoments>;

void check_not_stopped(const TrainFit& fit, const HuggingFaceFolder& folder) {
  if (fit.stopped && fit.stopped()) throw Error(ErrorCode::other, "reading the weights of " + folder.path() + " was stopped");
}

// The rank of each matrix, for fit.compression; `moments` is empty without gradients.
std::map<std::string, int64_t> chosen_ranks(const HuggingFaceFolder& folder, const RunConfig& config, const TrainFit& fit,
                                            const std::map<std::string, const RankLayer*>& layers, const Moments& moments) {
  std::vector<std::string> names;
  std::vector<RankChoice> choices;
  int64_t dense = 0, of_tables = 0, least = 0;
  read_folder(folder, config.model, [&](const std::string& name, const std::vector<double>& values) {
    const auto found = layers.find(name);
    if (found == layers.end()) return;
    check_not_stopped(fit, folder);
    const RankLayer& layer = *found->second;
    dense += layer.dense_entries();
    if (!is_matrix(layer)) {
      for (const Param* core : layer.cores) of_tables += core->count();
      return;
    }
    if (!is_two_factors(layer))
      throw Error(ErrorCode::config, "ranks for a size need one core a side",
                  layer.name + " has " + std::to_string(layer.cores.size()) + " cores",
                  "set model.tt.KIND.cores to 1, which is the default of model folders");
    const auto known = moments.find(name);
    names.push_back(name);
    choices.push_back(rank_choice(layer, values, known == moments.end() ? nullptr : &known->second));
    least += choices.back().each;
  });
  const auto most = static_cast<int64_t>(static_cast<double>(dense) / *fit.compression);
  if (least + of_tables > most)
    throw Error(ErrorCode::config, "the tensor trains cannot have " + std::to_string(most) + " values, as --tt-compression asks",
                "at rank 1 matrices have " + std::to_string(least) + ", and tables " + std::to_string(of_tables), "a smaller compression");
  const std::vector<int64_t> found = ranks_for_size(choices, most - of_tables);
  std::map<std::string, int64_t> ranks;
  for (size_t i = 0; i < names.size(); ++i) ranks[names[i]] = found[i];
  return ranks;
}

}  // namespace

bool is_model_folder(const std::string& path) { return fs::is_regular_file(fs::path(path) / "config.json"); }

RunConfig config_of_folder(const std::string& path, const std::string& task) {
  RunConfig config;
  config.model = model_of_folder(HuggingFaceFolder(path), task);
  config.method.weights = "dense";
  if (config.model.info().reads == Reads::images) {
    const PixelScale scale = pixel_scale_of_folder(path);
    config.data.pixel_mean = scale.mean, config.data.pixel_std = scale.std;
  }
  config.data.vocab = tokenizer_file_in(fs::absolute(fs::path(path)).lexically_normal().string());
  config.name = fs::path(path).lexically_normal().filename().string();
  if (config.name.empty()) config.name = fs::path(path).parent_path().filename().string();
  return config;
}

bool brings_no_head(const std::string& path, const RunConfig& config) { return needs_new_head(HuggingFaceFolder(path), config.model); }

std::vector<std::string> check_folder(const std::string& path, const RunConfig& config) {
  return read_folder(HuggingFaceFolder(path), config.model, {});
}

FolderWeights read_weights(const std::string& path, RunConfig& config, const TrainFit& fit) {
  FolderWeights weights{.path = path, .fresh = check_folder(path, config)};
  if (config.trains().empty()) return weights;
  const std::unique_ptr<Device> device = open_device("cpu");
  const Engine engine(with_small_batch(config), *device);
  const auto trains = std::make_shared<std::map<std::string, TrainOfMatrix>>();
  std::map<std::string, const RankLayer*> layers;
  for (const RankLayer& layer : engine.params().rank_layers()) layers[layer.name + ".weight"] = &layer;
  std::set<std::string> weighted;
  for (const auto& [name, layer] : layers)
    if (fit.gradient_batches > 0 && is_matrix(*layer)) weighted.insert(name);
  Moments moments;
  if (!weighted.empty()) moments = matrix_moments(path, config, weighted, fit.data, fit.gradient_batches, fit.stopped);
  const HuggingFaceFolder folder(path);
  std::map<std::string, int64_t> ranks;
  if (fit.compression) ranks = chosen_ranks(folder, config, fit, layers, moments);
  read_folder(folder, config.model, [&](const std::string& name, const std::vector<double>& values) {
    const auto found = layers.find(name);
    if (found == layers.end()) return;
    check_not_stopped(fit, folder);
    const RankLayer& layer = *found->second;
    const auto chosen = ranks.find(name);
    std::optional<double> weighted_error;
    TrainOfMatrix train;
    if (const auto known = moments.find(name); known != moments.end()) {
      TrainByGradients by_gradients = tt_svd(layer, values, known->second, chosen == ranks.end() ? 0 : chosen->second);
      train = std::move(by_gradients.train);
      weighted_error = by_gradients.weighted_error;
    } else {
      train = chosen == ranks.end() ? tt_svd(layer, values, fit.most_error) : two_factors(layer, values, chosen->second);
    }
    Compressed row{layer.name, layer.dense_entries(), 0, train.error, weighted_error, train.ranks};
    for (const std::vector<double>& core : train.cores) row.entries += static_cast<int64_t>(core.size());
    weights.compressed.push_back(row);
    (*trains)[layer.name] = std::move(train);
  });
  weights.ranks = held_ranks(engine.params());
  for (size_t i = 0; i < weights.ranks.size(); ++i)
    if (const auto train = trains->find(engine.params().rank_layers()[i].name); train != trains->end())
      weights.ranks[i] = train->second.ranks;
  weights.trains = trains;
  if (fit.most_error || fit.compression) take_ranks(config, weights);
  return weights;
}

void write_start(const FolderWeights& weights, const RunConfig& config, const std::string& output) {
  const std::unique_ptr<Device> device = open_device("cpu");
  Engine engine(with_small_batch(config), *device);
  engine.allocate();
  if (!weights.ranks.empty()) cut_to(engine, weights.ranks);
  std::set<std::string> trains;
  for (const RankLayer& layer : engine.params().rank_layers()) {
    if (!weights.trains || !weights.trains->contains(layer.name)) continue;
    trains.insert(layer.name + ".weight");
    const TrainOfMatrix& train = weights.trains->at(layer.name);
    for (size_t k = 0; k < layer.cores.size(); ++k) from_host(*device, *layer.cores[k], train.cores[k]);
  }
  const HuggingFaceFolder folder(weights.path);
  read_folder(folder, config.model, [&](const std::string& name, const std::vector<double>& values) {
    if (trains.contains(name)) return;
    const Param* param = engine.params().find(name);
    CHECK(param, "no place for " << name);
    from_host(*device, *param, values);
  });
  save_fresh(engine, config, {.label_names = needs_new_head(folder, config.model) ? std::vector<std::string>() : label_names_of(folder)},
             output);
}

void import_model(const std::string& path, const RunConfig& config, const std::string& output) {
  const std::unique_ptr<Device> device = open_device("cpu");
  Engine engine(with_small_batch(config), *device);
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
  LiveRanks ranks;
  for (const RankLayer& layer : engine.params().rank_layers()) {
    ranks.emplace_back();
    for (const Param* rank : layer.ranks) {
      const int64_t stored = file.entry(name_of_param(*rank)).count();
      if (stored < 1 || stored > rank->count())
        throw Error(ErrorCode::config, "the rank of " + rank->name + " is " + std::to_string(stored) + " in the file",
                    "the config has " + std::to_string(rank->count()), "give a config with at least the file's ranks");
      ranks.back().push_back(stored);
    }
  }
  cut_to(engine, ranks);
  for (Param& param : engine.params().params()) {
    const std::string name = name_of_param(param);
    if (param.kind == ParamKind::factor && !file.has(name)) continue;  // the file has the matrix alone: factors begin as drawn
    const SafetensorsEntry& entry = file.entry(name);
    if (entry.shape != sizes(param.shape))
      throw Error(ErrorCode::config, "tensor '" + name + "' has another shape than the config's " + param.shape.text(),
                  "the file and the config are of different sizes", "give the config the model was made with: --config");
    from_host(*device, param, file.values(name));
  }
  save_fresh(engine, config, file.metadata().contains("comera") ? trained_on(checkpoint_metadata(file)) : TrainedOn(), output);
}

}  // namespace comera
