// The axes of parallel coordinates: the settings that differ among the compared runs, then their results.
#pragma once
#include <string>
#include <vector>

#include "app/studio/compare/compare.h"

namespace comera::studio {

struct ParallelAxis {
  std::string id, title;
  std::string group;  // second line of the title: "method.comera", or how a result is computed, "median of 1,000"
  bool setting = false;
  std::vector<std::string> texts = {};  // one per run
  std::vector<float> places = {};       // one per run, 0..1 from the lower end; NaN = not recorded or not used
  std::vector<bool> unused = {};        // one per run: the setting has no effect in it, so it has no value
  std::string low = {}, high = {};      // labels of the ends; empty for words, which are drawn at their places
};

// Numbers are placed by value, large ranges on a logarithmic scale; words at equal distances. Constant or unknown quantities get no axis.
std::vector<ParallelAxis> parallel_axes(const Compare& compare);
// Sets `faded` of each run outside a selected range.
void fade_unbrushed(Compare& compare);

}  // namespace comera::studio
