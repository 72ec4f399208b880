// Accuracy against memory: the Pareto front, and the chart of it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "app/figure/figure.h"

namespace comera {

struct ParetoPoint {
  int64_t step = 0;
  double mebibytes = 0;
  double accuracy = 0;      // 0..1
  bool checkpoint = false;  // there is a checkpoint at this step
};

// The Pareto front by ascending memory: each point is more accurate than all smaller ones.
std::vector<ParetoPoint> pareto_front(std::vector<ParetoPoint> points);

// A point with a name of its own, and how far its accuracy varies up and down (0..1; NaN = not known).
struct NamedParetoPoint {
  std::string name;
  ParetoPoint point;
  double deviation = 0;
};
// Each point in a colour and marker of its own, bars of the deviation, and the front as a dashed staircase. At least one point.
Figure pareto_figure(const std::vector<NamedParetoPoint>& points, const std::string& title, const std::string& note,
                     const std::string& x_title);

}  // namespace comera
