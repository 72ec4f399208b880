// Alerts during training. The rules belong to the window; an alert becomes an event of the run, so that it is stored and shown in a replay.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/session/snapshot.h"

namespace comera::studio {

struct AlertRule {
  bool on = true;
  bool pause = false;  // pauses the run, so that the user can react
};

struct AlertRules {
  AlertRule not_finite;     // a loss is NaN or infinite; a run that cannot continue ends in any case
  AlertRule no_progress;    // the smoothed training loss no longer falls below its minimum, and no rank changes
  AlertRule collapsed;      // a bond has rank 0: its layer outputs 0
  AlertRule memory_margin;  // little is left of the memory that the run uses (device or machine)
  int64_t patience = 2000;  // steps without progress
  double margin = 0.05;     // fraction of that memory that should stay free
};

struct Alert {
  int64_t step = 0;
  std::string kind, text;
  bool pause = false;
};

// Checks the records of one run as they arrive. Reports each finding once, and again only after the condition had ended.
class AlertWatch {
 public:
  std::vector<Alert> look(const Records& records, const AlertRules& rules);

 private:
  void forget_progress();
  void look_at_memory(const Records& records, const AlertRules& rules, std::vector<Alert>& found);
  double sum_ = 0, norm_ = 0, best_ = 0;
  int64_t best_step_ = -1;  // -1 = no loss seen yet
  bool stuck_ = false, tight_ = false;
  std::set<std::string> not_finite_;  // names of metrics
  std::set<std::string> collapsed_;   // bonds as LAYER.BOND
};

}  // namespace comera::studio
