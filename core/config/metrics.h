// Every stored metric with its one description: the command line, exports, plots and comparison read it.
#pragma once
#include <span>
#include <string>

namespace comera {

enum class Better { none, lower, higher };
// Recorded at each step, at each evaluation, or about once a second.
enum class Recorded { step, evaluation, second };

struct MetricInfo {
  const char* name;       // in the store
  const char* title;      // of a plot or a column
  const char* symbol;     // in a legend beside others
  const char* help;       // sentences
  const char* unit = "";  // in which it is shown; "" = a number without one
  double factor = 1;      // from the stored value to that unit; of `entries` the bytes of a value come on top
  Recorded recorded = Recorded::step;
  Better better = Better::none;
  bool main = false;       // every run shows it without being asked
  bool noisy = false;      // of one batch each: drawn smoothed
  bool from_zero = false;  // its axis begins at 0
  bool log = false;        // may be drawn on a logarithmic axis
  bool measured = false;   // a time, or memory: does not repeat when a run is computed again
};

std::span<const MetricInfo> all_metrics();               // in display order
const MetricInfo* find_metric(const std::string& name);  // null = not one of these, as of an imported run
MetricInfo describe_metric(const std::string& name);     // the same, else with `name` as its title, which must outlive it

}  // namespace comera
