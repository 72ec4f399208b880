// Plans of the form's run under every method. A thread makes them one after another while the view is open, so they arrive one by one; only
// those that a change of the form affects are made again.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "app/studio/background.h"
#include "core/train/method_plans.h"

namespace comera::studio {

struct NewRun;
struct UiState;

struct MethodQuestion {
  RunConfig config;
  std::string id;
};

struct MethodMemory {
  struct Row {
    MethodPlan plan;       // as last known
    FieldValues values;    // settings of the run with this method, as they are now
    bool known = false;    // the plan was made once
    bool current = false;  // and for these settings
  };
  bool shown = false;     // the view is open
  std::vector<Row> rows;  // in display order
  std::string own;        // the method of the form; "" = none of them

  bool done() const;                            // all rows are current
  std::vector<const Row*> by_peak() const;      // planned, smallest first; then refused; then not yet known
  std::vector<MethodPlan> known_plans() const;  // in the same order

  uint64_t of = 0;                                                  // NewRun::outlook_number that the settings of the rows belong to
  uint64_t number = 0;                                              // of the question being answered; 0 = none
  size_t at = 0;                                                    // its row
  std::unique_ptr<Background<MethodQuestion, MethodPlan>> planner;  // null until the view is open for the first time
};

// Takes answers and asks the next question. Called once a frame; never waits.
void tick_methods(UiState& ui);
// Gives the form this method. Other settings stay.
void choose_method(UiState& ui, const std::string& id);

}  // namespace comera::studio
