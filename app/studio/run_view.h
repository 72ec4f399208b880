// Everything the panels draw of one run. Filled from a running session (live_run.h) or from the store
// (store_client.h); panels cannot tell which, but for `live`.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/studio/curve.h"
#include "core/session/snapshot.h"
#include "core/store/run_reader.h"
#include "core/train/config.h"

namespace comera::studio {

enum class Level { info, good, warning, error };

struct LogLine {
  Level level = Level::info;
  int64_t step = 0;
  std::string text;
};

// Something that happened at a step, drawn as a line in every plot.
struct Mark {
  enum Kind { late_stage, edit, checkpoint };
  int64_t step = 0;
  Kind kind = edit;
  std::string text;
};

struct RunView {
  std::shared_ptr<const Snapshot> snapshot = std::make_shared<const Snapshot>();
  RunConfig config;  // with every edit that is in force
  RankOverrides overrides;
  std::map<std::string, Curve> metrics;    // by the store's names: train_loss, val_accuracy, ...
  std::array<Curve, kPurposes> memory;     // bytes by purpose, a point where one changed
  std::map<std::string, Curve> rank_sums;  // of each layer, over steps; changes as stairs
  std::vector<Mark> marks;                 // by step
  std::vector<LogLine> log;
  double late_entries = 0;                 // live entries when the late stage began; 0 = not known
  bool live = false;      // fed by a session of this program
  bool has_plan = false;  // snapshot->memory_planned is known

  // The sum of a layer's live ranks from this step on.
  void add_ranks(int64_t step, const LayerRanks& layer);
  const Curve& metric(const std::string& name) const;  // an empty one when there is none
  bool ended() const;
  // Size of the tensorised layers when the late stage began, or now before that: what a size target is a share of.
  double target_base_entries() const;
};

bool has_ended(Phase phase);
Phase phase_of(const std::string& status);  // of a stored run

// A stored run as it was at a step (-1: its last). Reads the store; not for the thread that draws.
std::shared_ptr<RunView> load_run_view(const RunReader& reader, const std::string& id, int64_t step);

}  // namespace comera::studio
