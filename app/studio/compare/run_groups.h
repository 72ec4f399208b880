// Groups of compared runs: equal except for the seed, equal value of a setting, or with and without a tag. A group is drawn
// as mean or median with a band.
#pragma once
#include <string>
#include <vector>

#include "app/studio/parts/curve.h"

namespace comera::studio {

struct Compare;

// Values of Compare::group_by: "" = no grouping, this, "tag:good", else the dotted path of a setting.
inline constexpr const char* kBySeed = "seed";
inline constexpr const char* kByTag = "tag:";

struct RunGroup {
  std::vector<size_t> runs;  // indices into Compare::runs, in their order; at least one
  std::string title;         // "train.lr_core = 0.001"; of seeds, or of a run that goes alone, the name of the first run
  const char* each = "";     // what its runs are called: "seed", "run"; "" = it is a run that goes alone
  bool together() const { return *each != '\0'; }
};
// Every run is in one group; groups are in the order of their first runs. A run forms its own group without a grouping, if
// its config or tags are not known, or if no other run differs only in the seed. All runs do if the grouping does not
// separate them, or if a metric is the x axis: means need steps.
std::vector<RunGroup> run_groups(const Compare& compare);
// "train.lr_core = 0.001 (3 runs)", when it is of so many of its runs.
std::string legend_of(const RunGroup& group, size_t runs);
// Possible groupings of these runs: seeds, settings that differ, tags that only some have.
std::vector<std::string> group_choices(const Compare& compare);
// The next one of these; nothing after the last one.
void choose_next_group(Compare& compare);

enum class GroupMiddle { mean, median };
const char* name_of(GroupMiddle middle);
double middle_of(std::vector<double> values, GroupMiddle middle);  // NaN when there is none

// extremes: from the lowest to the highest of them. deviation: the standard deviation (of n - 1) to both sides of their mean.
enum class GroupBand { extremes, deviation };
const char* name_of(GroupBand band);

// A metric of a group over the axis of the comparison, where all of its runs have points: at those of the first run.
struct GroupCurve {
  Curve middle, low, high;
  std::string made_of;  // what it was computed of
};
// Kept by `compare` and computed anew only when something of it changed. `smooth`: of the smoothed curves.
const GroupCurve& group_curve(Compare& compare, const std::vector<size_t>& runs, const std::string& metric, bool smooth);

}  // namespace comera::studio
