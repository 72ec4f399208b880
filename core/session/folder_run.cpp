#include "core/session/folder_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/dataset.h"
#include "core/session/stored_run.h"

namespace comera {
namespace {

// The last value that a list of path=value gives to a setting.
std::optional<std::string> value_in(const std::vector<std::string>& sets, const std::string& path) {
  std::optional<std::string> value;
  for (const std::string& set : sets)
    if (set.starts_with(path + "=")) value = set.substr(path.size() + 1);
  return value;
}

// What the folder says of a run, as a config file would.
Json settings_of(const RunConfig& of_folder) {
  Json all = config_to_json(of_folder);
  Json model = {{"kind", all["model"]["kind"]}, {"task", all["model"]["task"]}, {"classes", all["model"]["classes"]}};
  model["length"] = all["model"]["length"];
  model[of_folder.model.kind] = all["model"][of_folder.model.kind];
  // The sides of trained matrices have no structure of modes, so two factors lose least at a size; tables lose most of their entries as TTM
  // cores.
  for (const char* kind : {"attention", "ffn_in", "ffn_out", "classifier", "head"}) model["tt"][kind]["cores"] = 1;
  model["tt"]["embedding"]["tensorise"] = false;
  Json settings = {{"name", of_folder.name}, {"model", model}, {"method", {{"weights", "dense"}}}};
  settings["data"] = {{"pixel_mean", of_folder.data.pixel_mean}, {"pixel_std", of_folder.data.pixel_std}};
  if (!of_folder.data.vocab.empty()) settings["data"]["vocab"] = of_folder.data.vocab;
  return settings;
}

void check_start(const RunConfig& config, const FolderStart& from) {
  const bool by_gradients = from.gradient_batches > 0, by_error = from.most_error >= 0, by_size = from.compression != 0;
  const std::string option = by_size ? "--tt-compression" : by_error ? "--tt-error" : "--tt-gradients";
  if ((by_error || by_size || by_gradients) && config.trains().empty())
    throw Error(ErrorCode::usage, option + " needs tensor trains", "method.weights is " + config.method.weights,
                "add --set method.weights=tt, or --method comera");
  if (by_error && by_size)
    throw Error(ErrorCode::usage, "--tt-error and --tt-compression do not go together", "both choose the ranks", "leave one out");
  if (by_error && by_gradients)
    throw Error(ErrorCode::usage, "--tt-error and --tt-gradients do not go together",
                "--tt-error bounds the error of all entries, which is then not the one that is minimised",
                "give a size with --tt-gradients: --tt-compression 4");
  if (by_size && !(from.compression >= 1))
    throw Error(ErrorCode::usage, "--tt-compression is " + Json(from.compression).dump(),
                "it says how many times fewer values the trains have", "a number of at least 1, such as 4");
  if (by_gradients && config.data.set.empty())
    throw Error(ErrorCode::usage, "--tt-gradients needs data", "it takes the gradients of training batches", "add --data FILE");
}

}  // namespace

std::optional<std::string> folder_named(const std::string& name) {
  if (!name.starts_with(kFolderSource)) return {};
  return name.substr(std::string_view(kFolderSource).size());
}

RunConfig folder_config(const std::string& folder, const std::vector<std::string>& sets) {
  const RunConfig of_folder = config_of_folder(folder, value_in(sets, "model.task").value_or(""));
  RunConfig config = load_config(settings_of(of_folder), folder, sets);
  if (!config.data.set.empty()) check_vocabulary(config);
  const bool classes_are_open = config.model.task == "classification" && !value_in(sets, "model.classes") && !config.data.set.empty();
  if (classes_are_open && brings_no_head(folder, config))
    config.model.classes = std::max<int64_t>(2, open_run_data(config).train->info().classes);
  return config;
}

std::shared_ptr<const FolderWeights> weights_of_folder(const FolderStart& from, RunConfig& config, std::function<bool()> stopped) {
  check_start(config, from);
  if (from.weights) return from.weights;
  TrainFit fit{.gradient_batches = from.gradient_batches};
  if (from.most_error >= 0) fit.most_error = from.most_error;
  if (from.compression > 0) fit.compression = from.compression;
  fit.stopped = std::move(stopped);
  if (fit.gradient_batches > 0) fit.data = open_run_data(config).train;
  return std::make_shared<const FolderWeights>(read_weights(from.path, config, fit));
}

}  // namespace comera
