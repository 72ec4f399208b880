// Which plots the metrics panel shows, and how they are laid out; kept between two starts.
#pragma once
#include <map>
#include <set>
#include <string>

#include "app/studio/parts/plot_grid.h"
#include "app/studio/parts/x_axis.h"

namespace comera::studio {

struct MetricsGrid {
  XAxis axis = XAxis::step;
  std::string over;                             // a metric that the others are drawn over instead; "" = none
  int columns = 0;                              // 1 to 4; 0 = as many as there is room for
  std::set<std::string> toggled;                // plots that are shown but would not be, or the other way round; by id
  std::set<std::string> pinned;                 // come first
  std::string alone;                            // the one that fills the panel; "" = all
  std::map<std::string, PlotCells> cells = {};  // of those that take more than one; by id
};

}  // namespace comera::studio
