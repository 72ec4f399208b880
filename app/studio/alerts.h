// Alerts during training. Rules belong to the window; an alert becomes an event of the run, so that it is stored and a
// replay shows it.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/session/snapshot.h"

namespace comera::studio {

struct AlertRule {
  bool on = true;
  bool pause = false;  // the run, so that the user can react
};

struct AlertRules {
  AlertRule not_finite;     // a loss is NaN or infinite. A run that cannot continue ends anyway, independent of this rule
  AlertRule no_progress;    // the smoothed training loss no longer falls below its minimum, and no rank changes
  AlertRule collapsed;      // a bond has rank 0: its layer outputs 0
  AlertRule memory_margin;  // little of the memory that the run takes from is left, of the device or of the machine
  int64_t patience = 2000;  // steps without progress
  double margin = 0.05;     // share of that memory that should stay free
};

struct Alert {
  int64_t step = 0;
  std::string kind, text;
  bool pause = false;
};

// Checks the records of one run as they arrive. Reports each finding once, and again only after it had ended.
class AlertWatch {
 public:
  std::vector<Alert> look(const Records& records, const AlertRules& rules);

 private:
  void forget_progress();
  void look_at_memory(const Records& records, const AlertRules& rules, std::vector<Alert>& found);
  double sum_ = 0, norm_ = 0, best_ = 0;
  int64_t best_step_ = -1;  // -1 = no loss seen yet
  bool stuck_ = false, tight_ = false;
  std::set<std::string> not_finite_;  // metrics
  std::set<std::string> collapsed_;   // LAYER.BOND
};

}  // namespace comera::studio
