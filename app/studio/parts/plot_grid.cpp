#include "app/studio/parts/plot_grid.h"

#include <algorithm>
#include <cstddef>

namespace comera::studio {

std::vector<PlotPlace> place_plots(const std::vector<PlotCells>& plots, int columns, int& rows) {
  columns = std::max(columns, 1);
  std::vector<std::vector<bool>> taken;  // [row][column]
  const auto row_of = [&](int row) -> std::vector<bool>& {
    while (static_cast<int>(taken.size()) <= row) taken.emplace_back(static_cast<size_t>(columns), false);
    return taken[static_cast<size_t>(row)];
  };
  const auto all = [&](const PlotPlace& at, auto&& holds) {
    for (int row = at.row; row < at.row + at.cells.rows; ++row)
      for (int column = at.column; column < at.column + at.cells.columns; ++column)
        if (!holds(row_of(row), static_cast<size_t>(column))) return false;
    return true;
  };
  std::vector<PlotPlace> places;
  for (const PlotCells& plot : plots) {
    PlotPlace at{.cells = {std::clamp(plot.columns, 1, columns), std::max(plot.rows, 1)}};
    while (!all(at, [](const std::vector<bool>& row, size_t column) { return !row[column]; }))
      if (++at.column + at.cells.columns > columns) {
        at.column = 0;
        ++at.row;
      }
    all(at, [](std::vector<bool>& row, size_t column) {
      row[column] = true;
      return true;
    });
    places.push_back(at);
  }
  rows = static_cast<int>(taken.size());
  return places;
}

}  // namespace comera::studio
