// A score against what it costs: the Pareto front, and the chart of it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "app/figure/figure.h"

namespace comera {

struct ParetoPoint {
  int64_t step = 0;
  double cost = 0;          // memory in MiB, or a time: less is better
  double score = 0;         // accuracy, 0..1, or minus a loss: more is better
  bool checkpoint = false;  // there is a checkpoint at this step
};

// The Pareto front by ascending cost: the score of each point is above those of all cheaper ones.
std::vector<ParetoPoint> pareto_front(std::vector<ParetoPoint> points);

// A point with a name of its own, and how far its score varies up and down (NaN = not known).
struct NamedParetoPoint {
  std::string name;
  ParetoPoint point;
  double deviation = 0;
};
// Each point in a colour and marker of its own, bars of the deviation, and the front as a dashed staircase. At least one point.
// `by_loss`: scores are minus a loss, else accuracies, which are drawn in percent.
Figure pareto_figure(const std::vector<NamedParetoPoint>& points, bool by_loss, const std::string& title, const std::string& note,
                     const std::string& x_title);

}  // namespace comera
