// Which fields a run reads from its data, and whether a data set fills them.
#pragma once
#include <optional>

#include "core/config/config.h"
#include "core/data/dataset.h"

namespace comera {

// The inputs of the model, then the targets of its task.
BatchLayout batch_layout(const ModelConfig& config);

struct Misfit {
  BatchField reads;
  std::optional<BatchField> filled;  // none: the set has no such field
  std::string text() const;          // "model.classes is 2, the data set x has 3"
  std::string remedy() const;        // "model.classes=3"; "" = no setting mends it
};
// The first field that the set does not fill, or fills with more values than the run has room for.
std::optional<Misfit> misfit(const BatchLayout& reads, const DatasetInfo& info);

// Throws Error(config) where a run cannot train on a set.
void check_fit(const RunConfig& config, const DatasetInfo& train, const DatasetInfo* validation);

}  // namespace comera
