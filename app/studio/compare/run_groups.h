// Groups of compared runs: equal except for the seed, equal value of a setting, or with and without a tag. A group is drawn
// as mean or median with a band.
#pragma once
#include <string>
#include <vector>

#include "app/studio/parts/curve.h"

namespace comera::studio {

struct Compare;

// Values of Compare::group_by: "" = no grouping, kBySeed, "tag:good", else the dotted path of a setting.
inline constexpr const char* kBySeed = "seed";
inline constexpr const char* kByTag = "tag:";

struct RunGroup {
  std::vector<size_t> runs;  // indices into Compare::runs, ascending; at least one
  std::string title;         // "train.lr_core = 0.001"; for seeds and single runs, the name of the first run
  const char* each = "";     // noun for its runs: "seed", "run"; "" = a single run outside any group
  bool together() const { return *each != '\0'; }
};
// Each run is in one group; groups are in the order of their first runs. A run is a group of its own if there is no grouping, its config or
// tags are not known, or no other run differs only in the seed. All runs are groups of their own if the grouping does not separate them or
// a metric is the x axis, since means need steps.
std::vector<RunGroup> run_groups(const Compare& compare);
// "train.lr_core = 0.001 (3 runs)" for 3 runs.
std::string legend_of(const RunGroup& group, size_t runs);
// Possible groupings of these runs: seeds, settings that differ, tags that only some runs have.
std::vector<std::string> group_choices(const Compare& compare);
// Selects the next possible grouping; none after the last one.
void choose_next_group(Compare& compare);

enum class GroupMiddle { mean, median };
const char* name_of(GroupMiddle middle);
double middle_of(std::vector<double> values, GroupMiddle middle);  // NaN without values

// extremes: lowest to highest value. deviation: mean plus and minus the standard deviation (divisor n - 1).
enum class GroupBand { extremes, deviation };
const char* name_of(GroupBand band);

// A metric of a group over the axis of the comparison, in the range that all its runs cover, at the points of the first run.
struct GroupCurve {
  Curve middle, low, high;
  std::string made_of;  // key of the inputs; a change causes a recomputation
};
// Cached in `compare`, recomputed only when an input changed. `smooth`: use the smoothed curves.
const GroupCurve& group_curve(Compare& compare, const std::vector<size_t>& runs, const std::string& metric, bool smooth);

}  // namespace comera::studio
