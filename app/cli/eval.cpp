// comera eval RUN|FILE and comera predict RUN|FILE: evaluate a trained model on any data.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "app/cli/cli.h"
#include "core/base/paths.h"
#include "core/config/tasks.h"
#include "core/data/datasets.h"
#include "core/data/first_rows.h"
#include "core/data/holdout.h"
#include "core/data/labels.h"
#include "core/ops/device.h"
#include "core/session/stored_run.h"
#include "core/train/scorer.h"

namespace comera::cli {
namespace {

struct EvalOptions {
  std::string model, data, split = "dev", vocab, output = "-", device = "auto";
  int64_t step = -1;
};

struct Loaded {
  std::unique_ptr<InputFile> input;  // must outlive `data`
  std::unique_ptr<Device> device;
  std::unique_ptr<Scorer> scorer;
  std::shared_ptr<const Dataset> data;
};

// Of a run whose data have no splits: the rows that it held out for validation, or those that it was trained on.
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
                "put the file back as it was, or evaluate on all rows of a file with --data FILE");
  return dev ? part(true) : training;
}

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

Loaded load(const Context& context, const EvalOptions& options, bool needs_labels) {
  Loaded loaded;
  loaded.input = std::make_unique<InputFile>(options.data);
  loaded.device = open_device(device_to_begin_on(options.device));
  const ModelPath model = model_file(context, options.model, options.step);
  loaded.scorer = std::make_unique<Scorer>(model.path, *loaded.device);
  RunConfig config = loaded.scorer->config();
  if (model.data) config.data.set = model.data->set, config.data.vocab = model.data->vocab;
  DataSpec spec = data_spec(config);
  std::vector<std::string> names;
  if (config.model.info().reads == Reads::texts) names = names_of_classes(*loaded.scorer, spec);
  if (!options.data.empty()) {
    if (config.model.info().reads == Reads::clicks) spec.training = clicks_of_tables(spec);
    spec.training = spec.training.empty() ? picture_folder(spec) : spec.training;  // its classes are the model's
    spec.path = loaded.input->path();
  }
  if (options.vocab.empty() && loaded.scorer->vocabulary().empty()) check_vocabulary(config);
  spec.label_names = names;
  spec.split = options.split;
  spec.labels = needs_labels;
  if (!options.vocab.empty()) spec.vocab = options.vocab;
  spec.classes = config.model.classes;
  loaded.data = open_dataset(spec);
  const DatasetInfo& info = loaded.data->info();
  refuse_reordered_classes(names, info.label_names);
  if (needs_labels && names.empty() && info.label_texts == LabelTexts::learned_names)
    throw Error(ErrorCode::config, "the model's classes have no names", "the labels of " + info.name + " are names",
                "write labels.txt next to the data file with the model's classes, one name a line, in its order");
  if (needs_labels && options.data.empty() && is_whole(spec))
    loaded.data = part_of_run(loaded.data, config.data, options.split, options.vocab.empty() ? model.data_fingerprint : "");
  return loaded;
}

int eval(const Context& context, const EvalOptions& options) {
  const Loaded loaded = load(context, options, true);
  const Score score = loaded.scorer->score(*loaded.data);
  if (score.examples == 0) throw Error(ErrorCode::config, "the data have no labels", "accuracy and loss need labels", "use comera predict");
  Json document = {{"model", options.model}, {"data", loaded.data->info().name}, {"accuracy", score.accuracy},
                   {"loss", score.loss},     {"examples", score.examples},       {"left_out", loaded.data->info().left_out}};
  std::vector<std::vector<std::string>> rows = {{"accuracy", significant(score.accuracy)}, {"loss", significant(score.loss)}};
  for (const auto& [name, value] : score.more) {
    document[name] = value;
    rows.push_back({name, significant(value)});
  }
  const bool per_token = find_task(loaded.scorer->config().model.task).per_token != nullptr;
  rows.push_back({per_token ? "tokens" : "rows", thousands(static_cast<double>(score.examples))});
  if (loaded.data->info().left_out > 0)
    rows.push_back({"rows left out, without a text or a label", thousands(static_cast<double>(loaded.data->info().left_out))});
  if (context.json)
    print_json(document);
  else
    print_table(context, {"metric", "value"}, rows);
  return 0;
}

int predict(const Context& context, const EvalOptions& options) {
  check_stdout(context, options.output);
  const Loaded loaded = load(context, options, false);
  OutputFile file(options.output);
  std::ostream& out = file.stream();
  const std::vector<std::string>& of_model = loaded.scorer->label_names();
  const DatasetInfo& info = loaded.data->info();  // names that it learned from these data are not the model's
  const std::vector<std::string>& names = of_model.empty() && info.label_texts != LabelTexts::learned_names ? info.label_names : of_model;
  int64_t rows = 0;
  loaded.scorer->score(*loaded.data, [&](int64_t row, const std::vector<double>& logits) {
    const auto best = static_cast<size_t>(loaded.scorer->predicted(logits));
    Json line = {{"row", row}, {"label", best < names.size() ? Json(names[best]) : Json(best)}, {"logits", logits}};
    out << line.dump() << "\n";
    ++rows;
  });
  file.finish();
  if (options.output != "-") {
    if (context.json)
      print_json({{"rows", rows}, {"file", options.output}});
    else
      note(context, "wrote " + thousands(static_cast<double>(rows)) + " rows to " + options.output);
  }
  return 0;
}

}  // namespace

void add_eval(Verb& program, Context& context) {
  const auto options = std::make_shared<EvalOptions>();
  const auto shared = [options](Verb verb) {
    verb.option("model", options->model, "run id or name, or a checkpoint file").required();
    verb.option("--data", options->data, "file, folder or data set (default: the run's own); - for stdin");
    verb.option("--split", options->split, "split of a data set: train, dev or test").shows_default();
    verb.option("--vocab", options->vocab, "vocab.txt, tokenizer.json or a folder with one (default: the run's)");
    verb.option("--step", options->step, "checkpoint at this step (default: the last)").not_negative();
    verb.option("--device", options->device, "auto, cpu or cuda:N");
  };
  Verb eval_verb = program.verb("eval", "evaluate a trained model on labelled data: accuracy and loss");
  shared(eval_verb);
  eval_verb.does([&context, options] { return eval(context, *options); });
  Verb predict_verb = program.verb("predict", "print one JSON line per row with logits and the most likely label");
  shared(predict_verb);
  predict_verb.option("-o,--output", options->output, "file; - for stdout").shows_default();
  predict_verb.does([&context, options] { return predict(context, *options); });
}

}  // namespace comera::cli
