// Made-up runs for the comparison, in the form in which the store returns them.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/studio/compare/compare.h"
#include "tests/studio/stage.h"

namespace comera::studio {

using RunSettings = std::vector<std::pair<std::string, std::string>>;

// 300 steps; loss = level + 1/step; an evaluation every 50 steps.
inline void add_run(Compare& compare, const std::string& id, double level, RunSettings settings, double ms = 10) {
  WatchedRun run;
  run.run = id;
  Snapshot s = a_snapshot(Phase::finished, 300);
  s.run = id;
  s.name = "fashion | late 0.2 | " + id;
  s.step_ms_median = ms + 2;  // differs from the last step
  Records records;
  for (int64_t step = 1; step <= 300; ++step) {
    const double x = static_cast<double>(step);
    records.add(step, {{"train_loss", level + 1 / x}, {"entries", 1e6 - x * 100}, {"epoch", x / 100}, {"step_ms", ms}});
    if (step % 50 == 0) records.add(step, {{"val_accuracy", level}});
    // Sampled about once a second; the forward pass gets slower.
    if (step % 100 == 0)
      records.add(
          step,
          {{"data_ms", 0.1 * ms}, {"forward_ms", step == 300 ? 0.6 * ms : 0.3 * ms}, {"backward_ms", 0.2 * ms}, {"update_ms", 0.1 * ms}});
  }
  run.view = std::make_shared<RunView>();
  run.view->take(std::make_shared<const Snapshot>(std::move(s)), records);
  run.config = std::move(settings);
  run.checkpoints = {100};
  pick_run(compare, id);
  take_watched(compare, std::move(run));
}

inline RunSettings settings(const char* seed, const char* target = "0.2", const char* set = "\"fashion-mnist\"") {
  return {{"name", seed}, {"train.seed", seed}, {"method.comera.target", target}, {"data.set", set}, {"train.batch", "32"}};
}

// Levels 0.5, 0.7 and 0.9 with three seeds; before the last one, a run with level 0.9 and another target.
inline void three_seeds(Compare& compare) {
  add_run(compare, "r-1", 0.5, settings("1"));
  add_run(compare, "r-2", 0.7, settings("2"), 20);
  add_run(compare, "r-other", 0.9, settings("1", "0.5"));
  add_run(compare, "r-3", 0.9, settings("3"));
}

}  // namespace comera::studio
