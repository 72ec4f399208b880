// Plots of the metrics panel and their layout; kept between sessions.
#pragma once
#include <map>
#include <set>
#include <string>

#include "app/studio/parts/plot_grid.h"
#include "app/studio/parts/x_axis.h"

namespace comera::studio {

struct MetricsGrid {
  XAxis axis = XAxis::step;
  std::string over;                             // a metric that replaces the x axis; "" = none
  int columns = 0;                              // 1 to 4; 0 = automatic
  std::set<std::string> toggled;                // ids of plots whose visibility differs from the default
  std::set<std::string> pinned;                 // ids of plots that come first
  std::string alone;                            // id of the plot that fills the panel; "" = all plots
  std::map<std::string, PlotCells> cells = {};  // by id: plots that span several cells
};

}  // namespace comera::studio
