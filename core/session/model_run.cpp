#include "core/session/model_run.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/base/remove_later.h"
#include "core/data/kept_tokenizer.h"
#include "core/records/events.h"
#include "core/session/stored_run.h"
#include "core/store/checkpoint_files.h"
#include "core/store/process.h"
#include "core/store/run_reader.h"
#include "core/store/run_writer.h"
#include "core/tensor/safetensors.h"
#include "core/train/checkpoint.h"
#include "core/train/model_import.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

// What a file of this program says of itself.
struct Carried {
  bool checkpoint = false;
  int64_t step = 0;
  std::optional<RunConfig> config;
};

Carried read_carried(const std::string& path) {
  Carried carried;
  if (is_model_folder(path)) {
    carried.config = config_of_folder(path);
    return carried;
  }
  const SafetensorsFile file(path);
  if (file.metadata().contains("comera")) {
    const Json metadata = checkpoint_metadata(file);
    carried.checkpoint = true;
    carried.config = checkpoint_config(file, metadata);
    const Json& state = metadata.at("state");
    if (!state.is_object() || !state.contains("step") || !state["step"].is_number_integer() || state["step"] < 0)
      throw Error(ErrorCode::storage, path + " is not a checkpoint of this program", "it does not say which step it is of",
                  "use another checkpoint of the run");
    carried.step = state["step"];
  } else if (const auto config = file.metadata().find("comera_config"); config != file.metadata().end()) {
    carried.config = config_from_json(parse_json(config->second, path), path);
  }
  return carried;
}

bool same_bytes(const std::string& a, const std::string& b) {
  std::ifstream first(a, std::ios::binary), second(b, std::ios::binary);
  std::vector<char> x(1 << 20), y(1 << 20);
  while (first && second) {
    first.read(x.data(), static_cast<std::streamsize>(x.size()));
    second.read(y.data(), static_cast<std::streamsize>(y.size()));
    if (first.gcount() != second.gcount() || !std::equal(x.begin(), x.begin() + first.gcount(), y.begin())) return false;
  }
  return first.eof() && second.eof();
}

void find_run_of(ModelFile& model, const std::string& path, const std::string& store) {
  std::error_code error;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  for (const RunReader reader(store); const RunRow& run : reader.runs(true)) {
    const std::vector<CheckpointRow> checkpoints = reader.checkpoints(run.id);
    for (const CheckpointRow& row : checkpoints) {
      if (row.step != model.step || !(fs::equivalent(path, row.path, error) || (row.bytes == bytes && same_bytes(path, row.path))))
        continue;
      model.run = run.id;
      model.name = run.name;
      model.newest = row.step == checkpoints.back().step;
      return;
    }
  }
}

}  // namespace

ModelFile look_at_model(const std::string& path, const std::string& store) {
  const Carried carried = read_carried(path);
  if (!carried.config)
    throw Error(ErrorCode::storage, path + " holds weights of another program", "it does not say which model they are of",
                "comera import FILE --config CONFIG imports such weights as a run");
  ModelFile model{is_model_folder(path), carried.checkpoint, carried.config->name, carried.step, "", false};
  std::error_code error;
  if (!carried.checkpoint || store.empty() || !fs::exists(store, error)) return model;
  try {
    find_run_of(model, path, store);
  } catch (const Error&) {  // the list of runs says what is wrong with the store
  }
  return model;
}

std::string store_model(const std::string& store, const std::string& path, const RunConfig* given, const std::string& name,
                        std::vector<Compressed>* compressed) {
  const Carried carried = given ? Carried() : read_carried(path);
  if (!given && !carried.config)
    throw Error(ErrorCode::usage, "a model needs the config it belongs to", "the file holds no sizes of modes and heads",
                "add --config encoder6-mnli, or the model's own config file");
  RunConfig config = given ? *given : *carried.config;
  if (!name.empty()) config.name = name;
  make_paths_absolute(config);
  paths::ensure_folder_of(store);
  const std::string part = store + ".import-" + random_text(8) + ".safetensors";
  const RemoveLater remove_part(part);
  if (carried.checkpoint) {
    std::error_code error;
    if (!fs::copy_file(path, part, error)) throw Error(ErrorCode::storage, "cannot copy " + path, error.message(), "free some disk space");
  } else if (is_model_folder(path)) {
    FolderWeights weights = read_weights(path, config);
    write_start(weights, config, part);
    if (compressed) *compressed = std::move(weights.compressed);
  } else {
    import_model(path, config, part);
  }
  RunStart start;
  start.name = config.name;
  start.config = config_to_json(config).dump();
  start.seed = config.train.seed;
  start.device = "imported";
  start.total_steps = carried.checkpoint ? std::max(config.train.steps, carried.step) : 0;
  if (carried.checkpoint) start.tags = {"imported"};
  RunWriter writer(store, start);
  const std::string folder = checkpoint_folder(store, writer.run_id());
  fs::create_directories(folder);
  char file[64];
  std::snprintf(file, sizeof file, "/step-%09lld.safetensors", static_cast<long long>(carried.step));
  fs::rename(part, folder + file);
  keep_tokenizer(config.data.vocab, folder);  // a model without one is a model all the same
  writer.checkpoint(carried.step, folder + file, static_cast<int64_t>(fs::file_size(folder + file)), "import");
  writer.event(carried.step, StartEvent::kind, json_of(StartEvent{.imported = fs::absolute(path).string()}).dump());
  if (carried.checkpoint) {
    RunSummary summary;
    summary.step = carried.step;
    summary.total_steps = start.total_steps;
    writer.summary(summary);
  }
  writer.finish("finished");
  if (!writer.flush()) throw Error(ErrorCode::storage, "the run was not stored", writer.store_problem(), "check the disk");
  return writer.run_id();
}

}  // namespace comera
