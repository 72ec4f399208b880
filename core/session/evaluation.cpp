#include "core/session/evaluation.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/config/tasks.h"
#include "core/data/datasets.h"
#include "core/data/first_rows.h"
#include "core/data/holdout.h"
#include "core/data/labels.h"
#include "core/ops/device.h"
#include "core/store/run_reader.h"

namespace comera {
namespace {

constexpr const char* kSplitsOfSets[] = {"dev", "dev_mismatched", "test", "test_mismatched", "train"};

// Class names by number: those in the checkpoint, or else those of the training data, where these still exist.
std::vector<std::string> names_of_classes(const Scorer& scorer, const DataSpec& trained_on) {
  if (!scorer.label_names().empty() || trained_on.path.empty() || trained_on.task != TextTask::classification) return scorer.label_names();
  try {
    return open_dataset(trained_on)->info().label_names;
  } catch (const Error&) {  // they no longer exist
    return {};
  }
}

// The click log that a model was trained on, whose values number the rows of its tables.
std::string clicks_of_tables(const DataSpec& spec) {
  try {
    return find_data_file(spec);
  } catch (const Error& error) {
    throw Error(error.code(), error.what(), "the values in it number the rows of the model's tables, also for other data",
                "put the file back");
  }
}

void find_splits(const RunConfig& config, EvaluationChoices& choices) {
  if (config.data.set.empty()) {
    choices.no_splits = "The run has no data of its own";
    return;
  }
  DataSpec spec = data_spec(config);
  try {
    choices.whole = is_whole(spec);
    if (choices.whole) {
      if (config.data.holdout > 0) choices.splits.emplace_back("dev");
      choices.splits.emplace_back("train");
      return;
    }
  } catch (const Error& error) {
    choices.no_splits = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
    return;
  }
  for (const char* split : kSplitsOfSets) {
    spec.split = split;
    try {
      find_data_file(spec);
      choices.splits.emplace_back(split);
    } catch (const Error&) {  // it has none of that name
    }
  }
}

}  // namespace

ModelPath model_of_run(const StoredRun& run, int64_t step) {
  auto found = run.checkpoints.end();
  if (step >= 0)
    found = run.checkpoints.find(step);
  else if (!run.checkpoints.empty())
    found = std::prev(run.checkpoints.end());
  if (found == run.checkpoints.end()) {
    std::string steps;
    for (const auto& [at, path] : run.checkpoints) steps += (steps.empty() ? "" : ", ") + std::to_string(at);
    throw Error(ErrorCode::not_found, "run " + run.id + " has no checkpoint" + (step >= 0 ? " at step " + std::to_string(step) : ""),
                steps.empty() ? "its store lists no checkpoint that still exists" : "its checkpoints are at steps: " + steps,
                steps.empty() && run.status != "running" ? "train it again, or use the store that it was trained in" : "");
  }
  return {found->second, run.id, run.config.data, run.data_fingerprint};
}

EvaluationChoices evaluation_choices(const std::string& store, const std::string& id_or_name) {
  const StoredRun run = load_stored_run(store, id_or_name);
  EvaluationChoices choices;
  for (const auto& [step, path] : run.checkpoints) choices.steps.push_back(step);
  const Series losses = RunReader(store).metric(run.id, "val_loss");
  const auto lowest = std::min_element(losses.values.begin(), losses.values.end(),
                                       [](double a, double b) { return std::isfinite(a) && (!std::isfinite(b) || a < b); });
  if (lowest != losses.values.end() && std::isfinite(*lowest)) {
    const int64_t step = losses.steps[static_cast<size_t>(lowest - losses.values.begin())];
    if (const auto kept = run.checkpoints.lower_bound(step); kept != run.checkpoints.end()) choices.best = kept->first;
  }
  choices.data = run.config.data.set;
  choices.predicts = find_task(run.config.model.task).per_token == nullptr;
  find_splits(run.config, choices);
  return choices;
}

std::shared_ptr<const Dataset> part_of_run(const std::shared_ptr<const Dataset>& data, const DataConfig& config, const std::string& split,
                                           const std::string& trained_on) {
  const double holdout = config.holdout;
  const bool dev = split == "dev";
  if ((!dev && split != "train") || (dev && holdout == 0))
    throw Error(ErrorCode::usage, "the data of the run have no split '" + split + "'",
                holdout > 0 ? "they are one file, of which every " + std::to_string(std::llround(1 / holdout)) + "th row is held out as dev"
                            : "the run was trained on every row",
                dev ? "name other data with --data, or use --split train" : "use --split dev or --split train");
  const auto part = [&](bool held_out) { return std::make_shared<Holdout>(data, holdout, held_out); };
  const std::shared_ptr<const Dataset> training = holdout > 0 ? part(false) : data;
  if (!trained_on.empty() && FirstRows(training, config.train_rows).info().fingerprint != trained_on)
    throw Error(ErrorCode::config, "the data of the run have changed since it was trained",
                "other rows of " + config.set + " would be held out, and the run may have been trained on them",
                "put the file back as it was, or evaluate on all rows of a file, named as other data (--data FILE)");
  return dev ? part(true) : training;
}

Evaluation::Evaluation(const ModelPath& model, const EvaluationOf& of, const std::function<void(double)>& progress)
    : device_(open_device(device_to_begin_on(of.device))), scorer_(std::make_unique<Scorer>(model.path, *device_)) {
  RunConfig config = scorer_->config();
  if (model.data) config.data.set = model.data->set, config.data.vocab = model.data->vocab;
  DataSpec spec = data_spec(config);
  spec.progress = progress;
  std::vector<std::string> names;
  if (config.model.info().reads == Reads::texts) names = names_of_classes(*scorer_, spec);
  if (!of.data.empty()) {
    if (config.model.info().reads == Reads::clicks) spec.training = clicks_of_tables(spec);
    spec.training = spec.training.empty() ? picture_folder(spec) : spec.training;  // its classes are the model's
    spec.path = of.data;
  }
  if (of.vocab.empty() && scorer_->vocabulary().empty()) check_vocabulary(config);
  spec.label_names = names;
  spec.split = of.split;
  spec.labels = of.labels;
  if (!of.vocab.empty()) spec.vocab = of.vocab;
  spec.classes = config.model.classes;
  data_ = open_dataset(spec);
  refuse_reordered_classes(names, info().label_names);
  if (of.labels && names.empty() && info().label_texts == LabelTexts::learned_names)
    throw Error(ErrorCode::config, "the model's classes have no names", "the labels of " + info().name + " are names",
                "write labels.txt next to the data file with the model's classes, one name a line, in its order");
  if (of.labels && of.data.empty() && is_whole(spec))
    data_ = part_of_run(data_, config.data, of.split, of.vocab.empty() ? model.data_fingerprint : "");
}

Evaluation::~Evaluation() = default;
Evaluation::Evaluation(Evaluation&&) noexcept = default;

bool Evaluation::per_token() const { return find_task(scorer_->config().model.task).per_token != nullptr; }

Score Evaluation::score(const std::function<void(double)>& progress) {
  const Score score = scorer_->score(*data_, {}, progress);
  if (score.examples == 0)
    throw Error(ErrorCode::config, "the data have no labels", "accuracy and loss need labels", "predictions need none: comera predict");
  return score;
}

int64_t Evaluation::predict(const std::function<void(const Prediction&)>& each, const std::function<void(double)>& progress) {
  const std::vector<std::string>& of_model = scorer_->label_names();  // names that it learned from these data are not the model's
  const std::vector<std::string>& names =
      of_model.empty() && info().label_texts != LabelTexts::learned_names ? info().label_names : of_model;
  int64_t rows = 0;
  scorer_->score(
      *data_,
      [&](int64_t row, const std::vector<double>& logits) {
        const int64_t label = scorer_->predicted(logits);
        const auto place = static_cast<size_t>(label);
        each({row, label, place < names.size() ? &names[place] : nullptr, logits});
        ++rows;
      },
      progress);
  return rows;
}

}  // namespace comera
