// The methods of a duel with what their runs in a store came to: the Pareto front of them, and which runs to compare.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "app/figure/pareto.h"
#include "core/session/duel.h"

namespace comera {

struct DuelRow {
  const DuelMethod* method;
  DuelResult result;
  bool on_front = false;
  // Language models are compared by validation loss, whose exponential is the perplexity; others by validation accuracy.
  bool by_loss() const { return method->config.model.per_token(); }
  const Spread& score() const { return by_loss() ? result.val_loss : result.val_accuracy; }
  bool placed() const { return score().count > 0 && std::isfinite(result.peak_bytes); }
  ParetoPoint point() const { return {.cost = result.peak_bytes / (1 << 20), .score = by_loss() ? -score().mean : score().mean}; }
};

// A row a method, in their order; they must outlive the rows. `data`: fingerprint of the training data. Without a store no method has runs.
std::vector<DuelRow> duel_rows(const std::string& store, const std::vector<DuelMethod>& methods, const std::string& data,
                               const std::string& imported = "");
// Ids of the first run of each method that was trained, those of the Pareto front first; at most `most`.
std::vector<std::string> runs_to_compare(const std::vector<DuelRow>& rows, size_t most);

}  // namespace comera
