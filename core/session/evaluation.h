// A trained model on data: which checkpoint, which rows, its scores and its predictions. `comera eval`, `comera predict` and the window use
// it. Nothing of a run changes.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/data/dataset.h"
#include "core/session/stored_run.h"
#include "core/train/scorer.h"

namespace comera {

class Device;

struct ModelPath {
  std::string path, name;               // of what is made of it: the id of the run, or the file's name without its ending
  std::optional<DataConfig> data = {};  // of a run: where its data are now
  std::string data_fingerprint = {};    // of a run: of the rows that it was trained on
};
// The checkpoint of a run at a step (-1: the last). Throws Error(not_found).
ModelPath model_of_run(const StoredRun& run, int64_t step = -1);

// What there is to choose for a stored run.
struct EvaluationChoices {
  std::vector<int64_t> steps;       // of its checkpoints whose files are there, ascending
  int64_t best = -1;                // of these, the first one at or after the lowest validation loss; -1: not known
  std::string data;                 // the run's own; "" = it has none
  bool whole = false;               // these have no splits: rows were held out as dev, or none
  std::vector<std::string> splits;  // of the run's own data: "dev", "test", "train", ...; of whole ones those of part_of_run()
  std::string no_splits;            // why there are none
  bool predicts = true;             // its rows have a class each: not of a language model
};
// Throws as load_stored_run().
EvaluationChoices evaluation_choices(const std::string& store, const std::string& id_or_name);

struct EvaluationOf {
  std::string data = {};      // a file, a folder or the name of a set; "" = the run's own
  std::string split = "dev";  // of a set or a folder; of the run's own data where they are one file: "dev" or "train"
  std::string vocab = {};     // a tokenizer; "" = the one kept with the run
  std::string device = "auto";
  bool labels = true;  // read them: scores need them, predictions do not
};

// Of a run whose data have no splits: the rows that it held out for validation (`split` dev), or those that it was trained on (train).
// `trained_on`: fingerprint of these, "" = not known. Throws Error(usage) for another split, Error(config) where the rows have changed.
std::shared_ptr<const Dataset> part_of_run(const std::shared_ptr<const Dataset>& data, const DataConfig& config, const std::string& split,
                                           const std::string& trained_on);

class Evaluation {
 public:
  // Opens model and data. `progress` gets the share of a file that is read for the first time; what it throws passes through. Throws as
  // Scorer, open_dataset() and part_of_run() do, and Error(config) where the labels of the data are not the model's classes.
  Evaluation(const ModelPath& model, const EvaluationOf& of, const std::function<void(double)>& progress = {});
  ~Evaluation();
  Evaluation(Evaluation&&) noexcept;

  const DatasetInfo& info() const { return data_->info(); }
  bool per_token() const;  // examples are tokens, not rows
  // Scores of all rows. `progress` gets the share that is done after each batch; what it throws passes through. Throws as Scorer::score(),
  // and Error(config) where no row has a label.
  Score score(const std::function<void(double)>& progress = {});

  struct Prediction {
    int64_t row = 0, label = 0;  // the most likely class
    const std::string* name;     // of that class; null = it has none
    const std::vector<double>& logits;
  };
  // Each row in order; returns their number. `progress` as of score(). Throws as Scorer::score().
  int64_t predict(const std::function<void(const Prediction&)>& each, const std::function<void(double)>& progress = {});

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Scorer> scorer_;
  std::shared_ptr<const Dataset> data_;
};

}  // namespace comera
