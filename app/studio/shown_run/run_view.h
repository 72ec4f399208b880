// All data of one run that panels draw, filled from a RunSource: a session (live_run.h) or stored records (store_client.h).
// Panels see no difference, except `live`.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/studio/parts/curve.h"
#include "core/session/snapshot.h"
#include "core/session/step_profile.h"
#include "core/train/config.h"

namespace comera::studio {

enum class Level { info, good, warning, error };

struct LogLine {
  // Order among the lines of a step: edits before it, rank drops, all others in order of arrival, and the current state of
  // a stored run.
  enum Place { before, ranks, after, now };
  Level level = Level::info;
  int64_t step = 0;
  std::string text;
  Place place = after;
};

// Something that happened at a step, drawn in plots and on the timeline.
struct Mark {
  enum Kind { late_stage, early_stage, edit, checkpoint, cut, growth, alert, segment };
  int64_t step = 0;
  Kind kind = edit;
  std::string text;
};

// A change of a live setting, in force from a step on.
struct Edit {
  int64_t step = 0;
  std::string path, value;
};

// A live rank that fell.
struct RankDrop {
  int64_t step = 0;
  std::string layer;
  int64_t bond = 0;  // from 1
  int64_t from = 0, to = 0;
};

struct RunView {
  // State at the start of a run; edits follow with the records.
  explicit RunView(RunConfig begins_with = {}) : config(begins_with), first_config_(std::move(begins_with)) {}

  std::shared_ptr<const Snapshot> snapshot = std::make_shared<const Snapshot>();  // the newest
  RunConfig config;                                                               // with every edit that is in force now
  std::map<std::string, Curve> metrics;                                           // by the store's names: train_loss, val_accuracy, ...
  std::array<Curve, kPurposes> memory;                                            // bytes by purpose, a point where one changed
  // Live rank of each (layer, bond from 1): a point where it changed, the first one its rank at the start.
  std::map<std::pair<std::string, int64_t>, Curve> bond_ranks;
  std::vector<RankDrop> drops;        // by step; those of a step by layer and bond
  RunningSum trained_ms;              // time of the steps so far, over steps
  Curve wall;                         // when each step was, seconds since 1970, over steps
  Curve rank_drops;                   // by how much the sum of all ranks fell, at the steps where it did
  std::vector<Mark> marks;            // by step
  std::vector<LogLine> log;           // by step
  std::vector<LogLine> new_lines;     // of a live one: those that came since somebody took them
  std::vector<Edit> edits;            // by step
  std::vector<StepProfile> profiles;  // where the time of some steps went, by step
  std::string parent;                 // id of the run it was forked from; "" = none
  // Discarded branches of this run, oldest first.
  struct Replaced {
    int64_t step = 0;  // that it went back to
    std::string run;
  };
  std::vector<Replaced> replaced;
  std::string store;           // database that it is in; "" = it is not stored
  double late_entries = 0;     // live entries when the last late stage began; 0 = not known
  bool live = false;           // fed by a session of this program
  std::string config_problem;  // why the stored config could not be read: `config` is then not the run's

  void take(std::shared_ptr<const Snapshot> now, const Records& records);
  // All points of a metric, or of `wall` for the name "wall": shared with whoever gives them. Those that are there already are
  // the first of them. To be added to, they are let go before: then nothing else is asked of the view.
  void share(const std::string& name, const Rising<int64_t>& steps, std::shared_ptr<std::vector<double>> values);
  void let_go();
  // Metrics and times of steps that are missing among those that are there; the rest stays.
  void fill_in(const Records& missing);
  void add_log(Level level, int64_t step, std::string text, LogLine::Place place = LogLine::after);

  const Curve& metric(const std::string& name) const;  // an empty one when there is none
  bool ended() const;
  size_t edits_until(int64_t step) const;  // how many are in force at a step
  RunConfig config_at(int64_t step) const;
  // Size of the tensorised layers when the late stage began, or now before that: what a size target is a share of.
  double target_base_entries(const Snapshot& at) const;

 private:
  void take_event(const EventRow& event);
  void take_ranks(const std::vector<RankRow>& rows);
  void take_back(int64_t after_step);
  struct StageSwitch {
    int64_t step = 0;
    bool late = false;
    double entries = 0;  // live ones when a late stage began; 0 = not known
  };
  void add_switch(StageSwitch to);
  void find_late_entries();
  double entries_at_begin(int64_t step) const;  // of the late stage that a step is in; 0 = not known

  RunConfig first_config_;
  RankOverrides overrides_;
  size_t edits_in_force_ = 0;        // of the first ones
  bool edits_changed_ = false;       // among those
  bool begins_late_ = false;         // a fork that begins in the late stage
  double first_late_entries_ = 0;    // when the late stage of such a one began; 0 = not known
  std::vector<StageSwitch> stages_;  // by step
  MemoryByPurpose memory_now_;
};

bool has_ended(Phase phase);
// Text of an alert event.
std::string alert_text(const EventRow& event);

}  // namespace comera::studio
