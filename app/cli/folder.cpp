#include "app/cli/folder.h"

#include <cstdio>

namespace comera::cli {

void FolderOptions::add_to(Verb& verb, bool with_error) {
  verb.option("--data", data, "data.set: a data file, a folder of one, or the name of a set");
  verb.option("--task", task,
              "model.task: classify, mlm (masked tokens) or lm (next tokens); a model folder without such a head gets a new one")
      .one_of({"classify", "mlm", "lm"});
  if (!with_error) return;
  verb.option("--tt-error", tt_error,
              "of a model folder: the smallest ranks for which the relative error of each tensor train is at most this")
      .not_negative();
  verb.option("--tt-compression", tt_compression,
              "of a model folder: choose the ranks with the smallest errors at which the tensor trains together have at least this many "
              "times fewer values than their matrices; dense tables do not count")
      .positive();
  verb.option("--tt-gradients", tt_gradients,
              "of a model folder: weight the errors of tensor trains by the gradients of this many training batches")
      .not_negative();
}

void FolderOptions::add_to(std::vector<std::string>& sets) const {
  if (!data.empty()) sets.push_back("data.set=" + data);
  if (!task.empty())
    sets.push_back(std::string("model.task=") + (task == "classify" ? "classification" : task == "mlm" ? "masked" : "language"));
}

std::optional<FolderRun> folder_run(const std::string& config, const std::vector<std::string>& sets, const FolderOptions& options) {
  if (const std::optional<std::string> folder = folder_named(config)) {
    FolderRun run{
        folder_config(*folder, sets),
        {.path = *folder, .most_error = options.tt_error, .compression = options.tt_compression, .gradient_batches = options.tt_gradients}};
    run.start.weights = weights_of_folder(run.start, run.config);
    return run;
  }
  const std::string given = options.tt_error >= 0        ? "--tt-error"
                            : options.tt_compression > 0 ? "--tt-compression"
                            : options.tt_gradients > 0   ? "--tt-gradients"
                                                         : "";
  if (!given.empty())
    throw Error(ErrorCode::usage, given + " needs a model folder", config + " begins with drawn weights",
                "give hf:FOLDER, or ranks: --set model.tt.ffn_in.rank=16");
  return {};
}

Json tensor_trains_json(const std::vector<Compressed>& compressed) {
  Json layers = Json::array();
  for (const Compressed& c : compressed) {
    layers.push_back(
        {{"layer", c.layer}, {"dense_entries", c.dense}, {"entries", c.entries}, {"relative_error", c.error}, {"ranks", c.ranks}});
    if (c.weighted_error) layers.back()["error_by_gradients"] = *c.weighted_error;
  }
  return layers;
}

void note_tensor_trains(const Context& context, const std::vector<Compressed>& compressed) {
  int64_t dense = 0, entries = 0;
  for (const Compressed& c : compressed) {
    dense += c.dense, entries += c.entries;
    char text[200];
    std::snprintf(text, sizeof text, "%-24s %10lld -> %8lld entries (%.1fx), relative error %.3g", c.layer.c_str(),
                  static_cast<long long>(c.dense), static_cast<long long>(c.entries),
                  static_cast<double>(c.dense) / static_cast<double>(c.entries), c.error);
    std::string line = text;
    if (c.weighted_error) {
      std::snprintf(text, sizeof text, ", by gradients %.3g", *c.weighted_error);
      line += text;
    }
    note(context, line);
  }
  if (compressed.size() < 2) return;
  char text[200];
  std::snprintf(text, sizeof text, "%-24s %10lld -> %8lld entries (%.2fx)", "total", static_cast<long long>(dense),
                static_cast<long long>(entries), static_cast<double>(dense) / static_cast<double>(entries));
  note(context, text);
}

Json weights_json(const FolderWeights& weights) {
  return {{"folder", weights.path}, {"new_parameters", weights.fresh}, {"tensor_trains", tensor_trains_json(weights.compressed)}};
}

void note_weights(const Context& context, const FolderWeights& weights) {
  note_tensor_trains(context, weights.compressed);
  std::string fresh;
  for (const std::string& name : weights.fresh) fresh += (fresh.empty() ? "" : ", ") + name;
  if (!fresh.empty()) note(context, "new head, drawn as for a fresh run: " + fresh);
}

}  // namespace comera::cli
