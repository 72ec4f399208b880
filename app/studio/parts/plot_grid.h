// Placement of plots in a grid of cells; a plot may span several cells.
#pragma once
#include <vector>

namespace comera::studio {

inline constexpr int kMostColumns = 4, kMostRows = 3;

// Size of a plot in cells.
struct PlotCells {
  int columns = 1;  // 1 to kMostColumns
  int rows = 1;     // 1 to kMostRows
  bool operator==(const PlotCells&) const = default;
};

// First cell of a plot, from 0.
struct PlotPlace {
  int column = 0, row = 0;
  PlotCells cells;
};

// Places each plot in the first free position, row by row, so that small plots fill gaps next to large ones. A plot wider than the grid is
// reduced to its width. `rows`: the resulting number of rows.
std::vector<PlotPlace> place_plots(const std::vector<PlotCells>& plots, int columns, int& rows);

}  // namespace comera::studio
