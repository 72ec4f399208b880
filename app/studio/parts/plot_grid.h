// Placement of plots: a grid of cells, in which a plot may span several.
#pragma once
#include <vector>

namespace comera::studio {

inline constexpr int kMostColumns = 4, kMostRows = 3;

// How many cells a plot takes.
struct PlotCells {
  int columns = 1;  // 1 to kMostColumns
  int rows = 1;     // 1 to kMostRows
  bool operator==(const PlotCells&) const = default;
};

// Column and row of a plot's first cell, from 0.
struct PlotPlace {
  int column = 0, row = 0;
  PlotCells cells;
};

// Each plot where there is room for it first, row by row, so that a later small one fills the hole beside a large one.
// One that is wider than the grid is as wide as it. `rows`: of the grid then.
std::vector<PlotPlace> place_plots(const std::vector<PlotCells>& plots, int columns, int& rows);

}  // namespace comera::studio
