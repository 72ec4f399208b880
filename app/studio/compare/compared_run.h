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

namespace comera::studio {

inline constexpr size_t kMostCompared = 8;  // as many as there are colours

struct ComparedRun {
  std::string wanted;                                       // as it was asked for: id, its beginning, or a name
  int slot = 0;                                             // its colour, dash and marker, of no other compared one
  int chosen_slot = -1;                                     // the one that was chosen by hand; -1 = none was
  bool asked = false;                                       // reading has been asked for
  std::string listed;                                       // what the list of runs said of it then
  std::string problem;                                      // why it cannot be read
  std::shared_ptr<RunView> view;                            // null until it is read
  std::shared_ptr<const Snapshot> past;                     // at the cursor; null = at its newest step
  std::vector<std::pair<std::string, std::string>> config;  // dotted path and JSON text, as it began
  std::vector<int64_t> checkpoints;                         // their steps
  std::optional<std::vector<std::string>> tags;             // as in all_tags(); nullopt = the run is not in the list
  bool faded = false;                                       // outside of the selected ranges
  bool dimmed = false;                                      // another one is under the mouse

  bool faint() const { return faded || dimmed; }
  bool read() const { return view != nullptr; }
  const std::string& id() const { return view ? view->snapshot->run : wanted; }
  const std::string& name() const { return view && !view->snapshot->name.empty() ? view->snapshot->name : id(); }
  int64_t last_step() const { return view ? view->snapshot->step : 0; }
  const Snapshot& snapshot() const;  // at the cursor
  double step() const { return static_cast<double>(snapshot().step); }
};

// The colour, dash and marker that a run would have: always the same for an id, 0..7.
int slot_of(const std::string& id);
// A colour chosen by the user is a tag of the run, "color:3" for slot 2; -1 = none.
std::string color_tag(int slot);
int slot_of_tags(const std::vector<std::string>& tags);

// As x_axis.h has them.
StepAxis axis_of(const ComparedRun& run, XAxis axis);
const char* no_axis(const ComparedRun& run, XAxis axis);

enum class Better { none, lower, higher };

// A quantity of the comparison, of each run at its step of the cursor.
struct Quantity {
  std::string id, title;
  std::string how;  // how it is computed over steps; "" = the value at the step
  std::string help;
  Better better = Better::none;
  bool relative = false;                            // differences in percent of the baseline
  std::function<double(const ComparedRun&)> value;  // NaN = not recorded for this run
  std::function<std::string(double)> text;
  std::function<std::string(double)> difference = text;  // without its sign, when that is not relative
  bool both = false;                                     // as they are and in percent
};
// The results, then all other metrics of the runs by name. All tabs use these, so that one name has one value.
std::vector<Quantity> results();
// The value of a stored metric: the result that is made of it, else the metric at its last step.
Quantity quantity_of(const std::string& metric);
std::vector<Quantity> other_metrics(const std::vector<std::shared_ptr<ComparedRun>>& runs);

// Why the values of two runs are not comparable, such as "different data"; null = comparable.
// `id`: of a quantity, or the name of a metric.
const char* incomparable(const ComparedRun& run, const ComparedRun& with, const std::string& id);

// Difference of a value to the baseline.
struct Delta {
  enum Verdict { unknown, same, better, worse, different };  // different: neither direction is better
  Verdict verdict = unknown;
  double difference = 0;
  std::string text;  // signed: "+0.62 points", "-23.4 %"
};
Delta delta_of(const Quantity& quantity, double value, double baseline);
const char* name_of(Delta::Verdict verdict);

// Everything trained, MiB, when the tensor trains had that many live entries (metric `entries`); NaN = not known.
double whole_mebibytes(const ComparedRun& run, double entries);

// A setting of a run with its edits: "1e-3 -> 5e-4 at 200"; "" = it has no such setting.
std::string setting_of(const ComparedRun& run, const std::string& path);
// The setting has no effect because of another one.
bool has_no_use_of(const ComparedRun& run, const std::string& path);
// JSON text as people write it.
std::string unquoted(const std::string& text);

// A setting over all runs, as setting_of() has it.
struct SettingRow {
  std::string path;
  std::vector<std::string> values;  // of each run; "" = it has no such setting
  bool same = true;
};
std::vector<SettingRow> settings_of(const std::vector<std::shared_ptr<ComparedRun>>& runs);

}  // namespace comera::studio
