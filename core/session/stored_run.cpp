#include "core/session/stored_run.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/config/renamed_settings.h"
#include "core/data/datasets.h"
#include "core/data/first_rows.h"
#include "core/data/holdout.h"
#include "core/data/kept_tokenizer.h"
#include "core/data/labels.h"
#include "core/data/tokenizer.h"
#include "core/records/events.h"
#include "core/store/checkpoint_files.h"
#include "core/store/run_reader.h"
#include "core/train/model_import.h"
#include "core/train/trainer.h"

namespace comera {
namespace fs = std::filesystem;

std::optional<ScheduledChange> change_of(int64_t step, const std::string& kind, const std::string& body) {
  if (kind == EditEvent::kind) {
    const auto event = read_event<EditEvent>(body);
    return ScheduledChange{step, current_path(event.path), event.value};
  }
  if (kind == StageEvent::kind)
    if (const auto event = read_event<StageEvent>(body); event.by_command()) return ScheduledChange{step, "stage", event.stage};
  return {};
}

Error StoredRun::lacks_first_checkpoint() const {
  return {ErrorCode::not_found, "run " + id + " cannot be computed again",
          is_fork() ? "the checkpoint it was forked from is gone" : "the checkpoint of its first weights is gone",
          is_fork() ? "fork its parent " + parent + " once more" : "start once more from " + imported};
}

StoredRun load_stored_run(const std::string& store, const std::string& id_or_name) {
  const RunReader reader(store);
  const RunRow row = reader.find(id_or_name);
  StoredRun run;
  run.id = row.id;
  run.status = row.status;
  run.parent = row.parent;
  run.data_fingerprint = row.data_fingerprint;
  run.pid = row.pid;
  run.fork_step = row.fork_step;
  run.config = config_from_json(parse_json(reader.config(row.id), "the stored config"), "run " + row.id);
  const Series steps = reader.metric(row.id, "train_loss");
  run.step = steps.steps.empty() ? row.summary.step : steps.steps.back();
  for (const EventRow& event : reader.events(row.id)) {
    if (event.kind == StartEvent::kind) run.imported = read_event<StartEvent>(event.body).imported.value_or("");
    const auto change = change_of(event.step, event.kind, event.body);
    if (!change) continue;
    if (change->path.empty() || (change->of_stage() && change->value != "late" && change->value != "early"))
      throw Error(ErrorCode::storage, "run " + run.id + " has a damaged event at step " + std::to_string(event.step),
                  "the change is missing", "use another run, or a copy of the store");
    run.changes.push_back(*change);
  }
  std::stable_sort(run.changes.begin(), run.changes.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  for (const CheckpointRow& checkpoint : reader.checkpoints(row.id))
    if (fs::exists(checkpoint.path)) run.checkpoints[checkpoint.step] = checkpoint.path;
  std::set<std::string> folders = {checkpoint_folder(store, run.id), checkpoint_folder(store, run.id, true)};
  for (const auto& [step, path] : run.checkpoints) folders.insert(fs::path(path).parent_path().string());
  for (const std::string& folder : folders) run.config.data.vocab = kept_tokenizer(run.config.data.vocab, folder);
  return run;
}

std::string base_folder(const std::string& store, StoredRun run) {
  while (run.imported.empty() && !run.parent.empty()) run = load_stored_run(store, run.parent);
  return !run.imported.empty() && is_model_folder(run.imported) ? run.imported : "";
}

bool only_of_runs(const std::string& text) { return text.rfind("rank.", 0) == 0 || text.rfind("stage=", 0) == 0; }

ScheduledChange parse_change(const std::string& text, int64_t step) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw Error(ErrorCode::usage, text + ": not of the form path=value", "", "for example train.lr_rank=2e-3");
  ScheduledChange change{step, current_path(text.substr(0, equals)), text.substr(equals + 1)};
  if (change.of_stage() && change.value != "late" && change.value != "early")
    throw Error(ErrorCode::usage, "cannot change stage", "'" + change.value + "' is not a stage", "it is stage=late or stage=early");
  return change;
}

void apply_changes(Trainer& trainer, std::vector<ScheduledChange>& changes) {
  while (!changes.empty() && changes.front().step <= trainer.state().step + 1) {
    const ScheduledChange change = changes.front();
    changes.erase(changes.begin());
    trainer.edit(change.path, change.value);
  }
}

DataSpec data_spec(const RunConfig& config) {
  DataSpec spec;
  spec.path = config.data.set;
  spec.vocab = config.data.vocab;
  spec.length = config.model.length;
  spec.task = text_task(config.model.task);
  spec.join = config.data.join;
  spec.assets = assets_folder();
  spec.columns = {config.data.text_column, config.data.second_column, config.data.label_column};
  spec.min_count = config.data.min_count;
  const ModelInfo model = config.model.info();
  spec.tables = model.tables;
  spec.height = model.image.height, spec.width = model.image.width, spec.channels = model.image.channels;
  spec.pixel_mean = config.data.pixel_mean, spec.pixel_std = config.data.pixel_std;
  return spec;
}

void make_paths_absolute(RunConfig& config) {
  std::error_code ignored;  // else it is the name of a set
  for (std::string* path : {&config.data.set, &config.data.vocab})
    if (!path->empty() && fs::path(*path).is_relative() && fs::exists(*path, ignored))
      *path = fs::absolute(*path).lexically_normal().string();
}

void check_vocabulary(const RunConfig& config) {
  constexpr int64_t kPadding = 128;  // tables are rounded up to a multiple of it at most
  const bool decoder = config.model.kind == "decoder";
  if (!config.data.vocab.empty() || (!decoder && config.model.kind != "encoder")) return;
  const int64_t tokens = decoder ? config.model.decoder.vocab : config.model.encoder.vocab;
  const int64_t known = decoder ? 256 : open_tokenizer(bert_vocabulary(assets_folder()))->size();
  if (tokens < known + kPadding) return;
  throw Error(ErrorCode::config, "the model's tokenizer is not known",
              "the model has " + std::to_string(tokens) + " tokens; without data.vocab " +
                  (decoder ? "tokens are the " + std::to_string(known) + " bytes"
                           : "the program's own vocabulary of " + std::to_string(known) + " tokens is used"),
              "--set data.vocab=FILE, its tokenizer.json, vocab.txt or vocab.json with merges.txt, or a folder with one");
}

namespace {
// Learned names are numbered in alphabetical order, which the numbers in another file need not follow.
void check_labels(const DatasetInfo& train, const DatasetInfo& validation) {
  const auto differ = [](const DatasetInfo& names, const DatasetInfo& numbers) {
    return names.label_texts == LabelTexts::learned_names && numbers.label_texts == LabelTexts::numbers;
  };
  if (!differ(train, validation) && !differ(validation, train)) return;
  const auto kind = [](const DatasetInfo& info) {
    return info.name + " has " + (info.label_texts == LabelTexts::numbers ? "numbers" : "names");
  };
  throw Error(ErrorCode::config, "training and validation data have different kinds of labels", kind(train) + ", " + kind(validation),
              "write the same labels in both files");
}
}  // namespace

RunData open_run_data(const RunConfig& config, const std::function<void(double)>& progress) {
  if (config.data.set.empty())
    throw Error(ErrorCode::config, "no data set is given", "data.set is empty",
                "use --set data.set=NAME; comera data list shows the names");
  DataSpec spec = data_spec(config);
  spec.progress = progress;
  RunData data;
  std::shared_ptr<const Dataset> training = open_dataset(spec);
  if (config.model.task == "classification") refuse_one_class(training->info().label_names);
  if (is_whole(spec)) {
    if (config.data.holdout > 0) {
      data.validation =
          std::make_shared<FirstRows>(std::make_shared<Holdout>(training, config.data.holdout, true), config.data.validation_rows);
      training = std::make_shared<Holdout>(std::move(training), config.data.holdout, false);
    }
    data.train = std::make_shared<FirstRows>(std::move(training), config.data.train_rows);
    return data;
  }
  data.train = std::make_shared<FirstRows>(std::move(training), config.data.train_rows);
  spec.split = "dev";
  spec.classes = data.train->info().classes;
  spec.label_names = data.train->info().label_names;
  data.validation = std::make_shared<FirstRows>(open_dataset(spec), config.data.validation_rows);
  check_labels(data.train->info(), data.validation->info());
  return data;
}

RunData open_run_data(const RunConfig& config, const StoredRun& run, const std::function<void(double)>& progress) {
  RunData data = open_run_data(config, progress);
  const std::string& now = data.train->info().fingerprint;
  if (!run.data_fingerprint.empty() && now != run.data_fingerprint)
    throw Error(ErrorCode::config, "the data of run " + run.id + " has changed since it was trained",
                "rows or vocabulary of " + config.data.set + " have fingerprint " + now.substr(0, 12) + ", the run has " +
                    run.data_fingerprint.substr(0, 12),
                "put the files back as they were, or train a new run on the new ones");
  return data;
}

}  // namespace comera
