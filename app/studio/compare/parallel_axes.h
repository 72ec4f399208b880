// The axes of parallel coordinates: the settings that differ among the compared runs, then their results.
#pragma once
#include <string>
#include <vector>

#include "app/studio/compare/compare.h"

namespace comera::studio {

struct ParallelAxis {
  std::string id, title;
  std::string group;  // context of the title: "method.comera", or how a result is computed, "median of 1,000"
  bool setting = false;
  std::vector<std::string> texts = {};  // of each run
  std::vector<float> places = {};       // of each run, 0..1 from the lower end; NaN = not recorded, or not used
  std::vector<bool> unused = {};        // of each run: a setting that it has no use of, and so no value
  std::string low = {}, high = {};      // at the ends; words stand at their own places
};

// Numbers at their values, large ranges on a logarithmic scale; words at even distances. Constant or unknown quantities get
// no axis.
std::vector<ParallelAxis> parallel_axes(const Compare& compare);
// Sets `faded` of each run that lies outside of a brushed range.
void fade_unbrushed(Compare& compare);

}  // namespace comera::studio
