// Runs that differ in nothing but the seed, taken together: their mean, and a band around it.
#pragma once
#include <string>
#include <vector>

#include "app/studio/parts/curve.h"

namespace comera::studio {

struct Compare;

struct SeedGroup {
  std::vector<size_t> runs;  // indices into Compare::runs, in their order
};
// Every run is in one group; alone when no other one has the same settings and edits, or when its settings are not known.
std::vector<SeedGroup> seed_groups(const Compare& compare);

// extremes: from the lowest to the highest of them. deviation: the standard deviation (of n - 1) to both sides of the mean.
enum class SeedBand { extremes, deviation };
const char* name_of(SeedBand band);

// A metric of a group over the axis of the comparison, where all of its runs have points: at those of the first run.
struct GroupCurve {
  Curve mean, low, high;
  std::string made_of;  // what it was computed of
};
// Kept by `compare` and computed anew only when something of it changed. `smooth`: of the smoothed curves.
const GroupCurve& group_curve(Compare& compare, const SeedGroup& group, const std::string& metric, bool smooth);

}  // namespace comera::studio
