// Step time of a config: of the newest stored run with the same step, else measured on this machine, else scaled from a
// measured step of another shape. Databases are read and steps measured on other threads.
#pragma once
#include <string>
#include <vector>

#include "core/train/config.h"

namespace comera::studio {

struct PaceQuestion {
  RunConfig config;
  std::string store;  // "" = there is none
};

struct Pace {
  double step_ms = 0;             // median of its last steps; 0 = no run of this shape is known
  std::string run, name, device;  // that it is from
};

// Never throws. The same step: model, weights, stash, optimizer, batch, precision, products, threads and device.
Pace find_pace(const PaceQuestion& question);

// A step measured without training, on synthetic data of a config's shapes.
struct MeasuredStep {
  std::string machine;  // where
  std::string shape;    // what: shape_text()
  std::string name;     // of the config, for people
  double step_ms = 0;   // median; 0 = it could not be measured
  double gflop = 0;     // of matrix products in a step
  std::string problem;  // why it could not
};
std::string machine_name();                          // of the processor
std::string shape_text(const RunConfig& config);     // equal for configs that compute the same step
MeasuredStep measure_step(const RunConfig& config);  // some steps of it: seconds. Never throws

// Keeps the newest of each shape, and not more than some.
void remember_step(std::vector<MeasuredStep>& known, MeasuredStep step);

struct Guess {
  double step_ms = 0;  // 0 = nothing is known
  std::string from;    // the config that was measured
  bool same = false;   // the same step, not only scaled by its matrix products
};
// Of a step with so many gflop on this machine.
Guess guess_step(const std::vector<MeasuredStep>& known, const std::string& machine, const RunConfig& config, double gflop);

// Steps of a whole run over a set of so many rows; 0 = not known.
int64_t planned_steps(const RunConfig& config, int64_t rows);

}  // namespace comera::studio
