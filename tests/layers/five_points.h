// Gradients of smooth layers and whole models against five-point differences, whose error is of order step^4: about
// 1e-11 of the loss, so small gradients are checked as sharply as large ones. Every parameter (and the input) is moved
// along random directions over all its entries: one wrong entry is seen.
#pragma once
#include <map>
#include <string>

#include "tests/layers/check_layer.h"

namespace comera::layer_test {

struct DirectionCheck {
  double step = 1e-3;
  double tolerance = 1e-8;  // of the tensor's gradient, or of `floor` times the largest one where that is more
  double floor = 1e-2;
  int directions = 2;
  uint64_t dy_seed = 5;
};

inline double length(const Values& values) { return std::sqrt(dot(values, values)); }

// Returns the largest relative error. Gradients that are exactly 0 must be so by differences too.
inline double check_directions(Rig& rig, const Probe& probe, DirectionCheck check = {}) {
  const Values dy = noise_values(static_cast<int64_t>(pass(rig, probe).y.size()), check.dy_seed);
  for (Param& param : rig.params.params())  // gradients are "=": what lay there must not matter
    if (param.has_grad()) rig.set(param.grad, Values(static_cast<size_t>(param.count()), std::numeric_limits<double>::quiet_NaN()));
  const Pass exact = pass(rig, probe, dy);
  std::map<std::string, std::pair<Tensor, Values>> gradients;  // read before the moved passes overwrite them
  double largest = 0;
  const auto add = [&](const std::string& name, const Tensor& tensor, const Values& gradient) {
    gradients[name] = {tensor, gradient};
    for (double entry : gradient) ASSERT_TRUE(std::isfinite(entry)) << "gradient of " << name;
    largest = std::max(largest, length(gradient));
  };
  for (Param& param : rig.params.params())
    if (param.has_grad()) add(param.name, param.value, rig.get(param.grad));
  if (probe.x) add("the input", probe.x, exact.dx);
  double worst = 0;
  uint64_t seed = 1000;
  for (const auto& [name, entry] : gradients) {
    const auto& [tensor, gradient] = entry;
    const Values values = rig.get(tensor);
    for (int i = 0; i < check.directions; ++i) {
      Values direction = noise_values(tensor.count(), ++seed);
      const double size = length(direction);
      for (double& x : direction) x /= size;
      const auto loss = [&, &tensor = tensor](double distance) {
        Values moved = values;
        for (size_t j = 0; j < moved.size(); ++j) moved[j] += distance * direction[j];
        rig.set(tensor, moved);
        return dot(pass(rig, probe, dy).y, dy);
      };
      const double h = check.step;
      const double slope = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h);
      const double error = std::fabs(slope - dot(gradient, direction)) / std::max(length(gradient), check.floor * largest);
      EXPECT_LE(error, check.tolerance) << "gradient of " << name;
      worst = std::max(worst, error);
    }
    rig.set(tensor, values);
  }
  return worst;
}

}  // namespace comera::layer_test
