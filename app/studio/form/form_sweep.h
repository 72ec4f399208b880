// The sweep of the form of a new run: which settings vary, with which values and seeds. Threads plan its points, their peak memory and what
// of them is trained already.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/studio/background.h"
#include "app/studio/form/sweep_file.h"
#include "app/studio/run_queue.h"

namespace comera::studio {

struct NewRun;
struct RunList;
struct UiState;

struct PeakQuestion {
  std::shared_ptr<const PlannedSweep> plan;
  size_t first = 0;  // point
};
struct PlannedPeaks {
  std::vector<int64_t> bytes;  // of the points from `first` on; 0 = a point that is left out
  int64_t available = 0;       // on the device of these points; 0 = none was planned
};

struct TrainedQuestion {
  std::string store;
  std::shared_ptr<const PlannedSweep> plan;
};

struct FormSweep {
  bool shown = false;
  std::string name = "sweep";
  std::vector<VariedSetting> varied;                         // in the order in which they were chosen
  VariedSetting seeds{.path = "train.seed", .text = ""};     // "" = the seed of the form
  std::map<std::string, std::string> texts;                  // as last typed, by path: a setting that varies again has them back
  uint64_t edits = 0;                                        // counts changes of the values above
  const VariedSetting* find(const std::string& path) const;  // null = it does not vary
  std::string problem() const;                               // the first of the values; "" = none
  size_t runs() const;                                       // with refused points

  std::shared_ptr<const PlannedSweep> plan;  // newest; null = none was made yet
  std::vector<int64_t> peaks;                // of its first points
  int64_t available = 0;                     // least free memory that the points were planned for; 0 = not known
  QueueState trained;                        // its runs in the store
  size_t largest() const;                    // point with the largest of `peaks`, which must not be empty
  int64_t runs_over() const;                 // of `trained`

  // Questions that are being answered; 0 = none.
  uint64_t of_edits = 0, of_form = 0;  // `edits` and NewRun::outlook_number of the plan that was asked for last
  uint64_t plan_number = 0, peak_number = 0, trained_number = 0;
  std::shared_ptr<const RunList> list;  // the list of runs for which `trained` was asked
  std::string store;                    // its database
  struct Threads {
    Background<std::string, std::shared_ptr<const PlannedSweep>> planner;
    Background<PeakQuestion, PlannedPeaks> meter;
    Background<TrainedQuestion, QueueState> looker;
    explicit Threads(const std::function<void()>& wake);
  };
  std::unique_ptr<Threads> threads;  // null until the sweep is shown for the first time
};

// Whether the form shows a sweep: a fork has none.
bool shows_sweep(const NewRun& form);
// Whether the plan is about the values of now.
bool is_planned(const NewRun& form);
// And all that is shown about it is known.
bool is_known(const NewRun& form);
// Lets a setting vary, from the value of the form on, or no more.
void set_varied(NewRun& form, const std::string& path, bool varies);
// Lets all settings vary that differ from the source.
void vary_changed(NewRun& form);
void set_values(FormSweep& sweep, VariedSetting& varied, const std::string& text);
void set_sweep_name(FormSweep& sweep, const std::string& name);
// Takes answers and asks the next questions. Called once a frame; never waits.
void tick_form_sweep(UiState& ui);

}  // namespace comera::studio
