// A trained model without its training: scores and predicts from a checkpoint or an exported file.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/config/config.h"
#include "core/data/dataset.h"
#include "core/tasks/score.h"
#include "core/train/trained_on.h"

namespace comera {

class Device;
class Engine;

class Scorer {
 public:
  // `file`: a checkpoint, or any safetensors file with a config in its metadata. `device` must outlive the scorer.
  Scorer(const std::string& file, Device& device);
  ~Scorer();
  const RunConfig& config() const;
  const std::vector<std::string>& label_names() const { return data_.label_names; }  // by class; empty: not known
  const std::string& vocabulary() const { return data_.vocabulary; }  // fingerprint of the one it was trained with; "": not known
  int64_t predicted(const std::vector<double>& outputs) const;        // the class that a row of outputs says

  // Every row in order, the last partial batch too. `each`, when given, gets (row, its outputs); `progress` the share of the rows that
  // is done, 0..1, after each batch: what it throws passes through. Throws Error(config) where the data are not of the model's kind or
  // size, or were read with another vocabulary.
  Score score(const Dataset& data, const std::function<void(int64_t, const std::vector<double>&)>& each = {},
              const std::function<void(double)>& progress = {});

 private:
  std::unique_ptr<Engine> engine_;
  TrainedOn data_;
};

}  // namespace comera
