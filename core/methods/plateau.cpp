#include "core/methods/plateau.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace comera {
namespace {
constexpr double kStays = 0.99;        // minibatch losses are noisy: average over about 100 steps
constexpr int64_t kWarmUp = 100;       // before that the average is a lucky or unlucky few batches
constexpr double kImprovement = 1e-3;  // a new minimum by less than 0.1 % is noise
}  // namespace

void PlateauState::update(double loss) {
  ++steps;
  average = kStays * average + (1 - kStays) * loss;
  if (steps < kWarmUp) return;
  if (best_step == 0 || smoothed() < best - kImprovement * std::fabs(best)) {
    best = smoothed();
    best_step = steps;
  }
}

double PlateauState::smoothed() const { return steps == 0 ? 0 : average / (1 - std::pow(kStays, static_cast<double>(steps))); }

Json PlateauState::to_json() const { return {{"steps", steps}, {"average", average}, {"best", best}, {"best_step", best_step}}; }

PlateauState PlateauState::from_json(const Json& json) {
  return {json.at("steps"), json.at("average"), json.at("best"), json.at("best_step")};
}

}  // namespace comera
