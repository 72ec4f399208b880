// Compared runs taken together: those that differ in nothing but the seed, those with the same value of a setting, or those
// that have a tag and those that have it not. A group is drawn as the middle of its runs, with a band around it.
#pragma once
#include <string>
#include <vector>

#include "app/studio/parts/curve.h"

namespace comera::studio {

struct Compare;

// What runs are taken together by (Compare::group_by): "" = nothing, this, "tag:good", else the dotted path of a setting.
inline constexpr const char* kBySeed = "seed";
inline constexpr const char* kByTag = "tag:";

struct RunGroup {
  std::vector<size_t> runs;  // indices into Compare::runs, in their order; at least one
  std::string title;         // "train.lr_core = 0.001"; of seeds, or of a run that goes alone, the name of the first run
  const char* each = "";     // what its runs are called: "seed", "run"; "" = it is a run that goes alone
  bool together() const { return *each != '\0'; }
};
// Every run is in one group; the groups are in the order of their first runs. A run goes alone when nothing is chosen, when
// its config, or whether it has the tag, is not known, and when no other one differs from it in the seed alone. All go alone
// when none differs from the others in what is chosen, and where curves are drawn over a metric: a mean is of steps.
std::vector<RunGroup> run_groups(const Compare& compare);
// "train.lr_core = 0.001 (3 runs)", when it is of so many of its runs.
std::string legend_of(const RunGroup& group, size_t runs);
// What these runs can be taken together by: seeds, settings in which they differ, tags that some have and some have not.
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
