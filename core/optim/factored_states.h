// Second moments of a matrix: their means over rows and over columns (METHODS.md 0.3). A core (a, l, b) counts as the matrix (a l, b). A
// vector has `v`, a second moment per element.
#pragma once
#include "core/optim/rule.h"

namespace comera {

inline std::vector<StateSpec> factored_states(const Param& param, const Shape& gradient, const char* row, const char* column) {
  if (gradient.rank() == 1) return {{.name = "v", .shape = gradient, .axes = all_axes(param.shape), .anew = StateSpec::mean}};
  const unsigned last = 1u << (param.shape.rank() - 1);
  Shape rows;
  for (int axis = 0; axis + 1 < gradient.rank(); ++axis) rows.push_back(gradient[axis]);
  return {{.name = row,
           .shape = rows,
           .axes = all_axes(param.shape) & ~last,
           .anew = StateSpec::mean,
           .follows = StateSpec::keeps_and_mean,
           .averages = true},
          {.name = column,
           .shape = {gradient[-1]},
           .axes = last,
           .anew = StateSpec::mean,
           .follows = StateSpec::keeps_and_mean,
           .averages = true}};
}

}  // namespace comera
