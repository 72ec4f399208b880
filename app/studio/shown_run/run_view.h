// All data of one run that panels draw, from a session (live_run.h) or from stored records (store_client.h). Panels see no difference,
// except `live`.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/studio/parts/curve.h"
#include "core/config/config.h"
#include "core/session/snapshot.h"
#include "core/session/step_profile.h"

namespace comera::studio {

enum class Level { info, good, warning, error };

struct LogLine {
  // Order of the lines of a step: edits before it, rank drops, other lines in order of arrival, and the state of a stored run.
  enum Place { before, ranks, after, now };
  Level level = Level::info;
  int64_t step = 0;
  std::string text;
  Place place = after;
};

// An event at a step, drawn in plots and on the timeline.
struct Mark {
  enum Kind { late_stage, early_stage, edit, checkpoint, cut, growth, alert, segment };
  int64_t step = 0;
  Kind kind = edit;
  std::string text;
};

// A live edit of a setting, in effect from a step on.
struct Edit {
  int64_t step = 0;
  std::string path, value;
};

// A drop of a live rank.
struct RankDrop {
  int64_t step = 0;
  std::string layer;
  int64_t bond = 0;  // from 1
  int64_t from = 0, to = 0;
};

// Why a run failed or diverged, with advice in a line of its own.
std::string failure_text(const Snapshot& s);

struct RunView {
  // `begins_with`: config at the start of the run; edits follow with the records.
  explicit RunView(RunConfig begins_with = {})
      : config(begins_with), unused(unused_settings(fields_of(config))), first_config_(std::move(begins_with)) {}

  std::shared_ptr<const Snapshot> snapshot = std::make_shared<const Snapshot>();  // the newest
  RunConfig config;                                                               // with all edits in effect
  UnusedSettings unused;                                                          // no edit changes them
  std::map<std::string, Curve> metrics;                                           // by store name: train_loss, val_accuracy, ...
  std::array<Curve, kPurposes> memory;                                            // bytes by purpose, with a point at each change
  // Live rank by (layer, bond from 1): the initial rank, then a point at each change.
  std::map<std::pair<std::string, int64_t>, Curve> bond_ranks;
  std::vector<RankDrop> drops;        // by step, then layer and bond
  RunningSum trained_ms;              // total time of the steps so far, ms
  Curve wall;                         // completion time of each step, seconds since 1970
  Curve rank_drops;                   // decrease of the sum of all ranks, at the steps with drops
  std::vector<Mark> marks;            // by step
  std::vector<LogLine> log;           // by step
  std::vector<LogLine> new_lines;     // live runs: lines since the last LiveRun::take_lines()
  std::vector<Edit> edits;            // by step
  std::vector<StepProfile> profiles;  // profiles of steps, by step
  std::string parent;                 // id of the run that this one was forked from; "" = none
  // Discarded branches of this run, oldest first.
  struct Replaced {
    int64_t step = 0;  // last step that was kept
    std::string run;
  };
  std::vector<Replaced> replaced;
  std::string store;           // database of the run; "" = not stored
  double late_entries = 0;     // live entries when the current late stage began; 0 = not known
  bool live = false;           // fed by a session of this window
  std::string config_problem;  // why the stored config could not be read; `config` is then a default

  void take(std::shared_ptr<const Snapshot> now, const Records& records);
  // Sets all points of a metric (or of `wall`, if `name` is "wall"), sharing the values with their owner. The existing points must be the
  // first ones. Before the owner appends, call let_go(); until the next share() the curves must not be read.
  void share(const std::string& name, const Rising<int64_t>& steps, std::shared_ptr<std::vector<double>> values);
  void let_go();
  // Inserts missing points of metrics and times; leaves existing points unchanged.
  void fill_in(const Records& missing);
  void add_log(Level level, int64_t step, std::string text, LogLine::Place place = LogLine::after);

  const Curve& metric(const std::string& name) const;  // empty if there is none
  bool ended() const;
  bool uses(const std::string& path) const { return !unused.contains(path); }  // a setting or a group: whether it has an effect
  size_t edits_until(int64_t step) const;                                      // number of edits in effect at a step
  RunConfig config_at(int64_t step) const;
  // Size of the tensor trains that a size target is a fraction of: when the late stage began, or the current size in the early stage.
  double target_base_entries(const Snapshot& at) const;

 private:
  void take_event(const EventRow& event);
  void take_ranks(const std::vector<RankRow>& rows);
  void take_back(int64_t after_step);
  struct StageSwitch {
    int64_t step = 0;
    bool late = false;
    double entries = 0;  // live entries when this late stage began; 0 = not known
  };
  void add_switch(StageSwitch to);
  void find_late_entries();
  double entries_at_begin(int64_t step) const;  // for the late stage at this step; 0 = not known

  RunConfig first_config_;
  RankOverrides overrides_;
  size_t edits_in_force_ = 0;        // number of edits that `config` includes
  bool edits_changed_ = false;       // an edit was inserted or removed among these
  bool begins_late_ = false;         // fork that starts in the late stage
  double first_late_entries_ = 0;    // live entries when that late stage began; 0 = not known
  std::vector<StageSwitch> stages_;  // by step
  MemoryByPurpose memory_now_;
};

bool has_ended(Phase phase);
// Text of an alert event.
std::string alert_text(const EventRow& event);

}  // namespace comera::studio
