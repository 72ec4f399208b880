// A compared run: its data, its positions on an axis, and the quantities of the comparison. Independent of drawing.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/studio/parts/x_axis.h"
#include "app/studio/shown_run/run_view.h"
#include "core/config/metrics.h"

namespace comera::studio {

inline constexpr size_t kMostCompared = 8;  // the number of series colours

struct ComparedRun {
  std::string wanted;                                       // as requested: id, prefix of an id, or a name
  int slot = 0;                                             // colour, dash and marker; unique among compared runs
  int chosen_slot = -1;                                     // chosen by the user; -1 = none
  bool asked = false;                                       // reading was requested
  std::string listed;                                       // state in the list of runs at that time
  std::string problem;                                      // why it cannot be read
  std::shared_ptr<RunView> view;                            // null until read
  std::shared_ptr<const Snapshot> past;                     // snapshot at the cursor; null = at the newest step
  std::vector<std::pair<std::string, std::string>> config;  // initial config: dotted path and JSON text
  std::vector<int64_t> checkpoints;                         // steps of the checkpoints
  std::optional<std::vector<std::string>> tags;             // as in all_tags(); nullopt = the run is not in the list
  bool faded = false;                                       // outside the selected ranges
  bool dimmed = false;                                      // another run is under the mouse

  bool faint() const { return faded || dimmed; }
  bool read() const { return view != nullptr; }
  const std::string& id() const { return view ? view->snapshot->run : wanted; }
  const std::string& name() const { return view && !view->snapshot->name.empty() ? view->snapshot->name : id(); }
  int64_t last_step() const { return view ? view->snapshot->step : 0; }
  const Snapshot& snapshot() const;  // at the cursor
  double step() const { return static_cast<double>(snapshot().step); }
};

// Default slot of a run (colour, dash and marker), 0..7: a hash of its id.
int slot_of(const std::string& id);
// A colour that the user chose is stored as a tag of the run: "color:3" for slot 2; -1 = no such tag.
std::string color_tag(int slot);
int slot_of_tags(const std::vector<std::string>& tags);

// As in x_axis.h.
StepAxis axis_of(const ComparedRun& run, XAxis axis);
const char* no_axis(const ComparedRun& run, XAxis axis);

// A quantity of the comparison, evaluated for each run at its step of the cursor.
struct Quantity {
  std::string id, title;
  std::string how;  // how it is averaged over steps; "" = the value at the step
  std::string help;
  Better better = Better::none;
  bool relative = false;                            // differences are in percent of the baseline
  std::function<double(const ComparedRun&)> value;  // NaN = not recorded for this run
  std::function<std::string(double)> text;
  std::function<std::string(double)> difference = text;  // absolute value of a difference that is not relative
  bool both = false;                                     // differences are both absolute and in percent
};
// The results, then all other metrics of the runs by name. All tabs use these, so a name has the same value everywhere.
std::vector<Quantity> results();
// Quantity for a stored metric: the result computed from it, else its value at the last step.
Quantity quantity_of(const std::string& metric);
std::vector<Quantity> other_metrics(const std::vector<std::shared_ptr<ComparedRun>>& runs);

// Why the values of two runs are not comparable, such as "different data"; null = comparable. `id`: id of a quantity, or name of a metric.
const char* incomparable(const ComparedRun& run, const ComparedRun& with, const std::string& id);

// Difference from the baseline.
struct Delta {
  enum Verdict { unknown, same, better, worse, different };  // different: neither direction counts as better
  Verdict verdict = unknown;
  double difference = 0;
  std::string text;  // signed: "+0.62 points", "-23.4 %"
};
Delta delta_of(const Quantity& quantity, double value, double baseline);
const char* name_of(Delta::Verdict verdict);

// Size of all parameters in MiB if the tensor trains have `entries` live entries (metric `entries`); NaN = not known.
double whole_mebibytes(const ComparedRun& run, double entries);

// A setting of a run with its edits: "1e-3 -> 5e-4 at 200"; "" = the run lacks it.
std::string setting_of(const ComparedRun& run, const std::string& path);
// True if another setting makes this one ineffective.
bool has_no_use_of(const ComparedRun& run, const std::string& path);
// JSON text without quotes around strings.
std::string unquoted(const std::string& text);

// A setting of all runs, in the form of setting_of().
struct SettingRow {
  std::string path;
  std::vector<std::string> values;  // one per run; "" = the run lacks it
  bool same = true;
};
std::vector<SettingRow> settings_of(const std::vector<std::shared_ptr<ComparedRun>>& runs);

}  // namespace comera::studio
