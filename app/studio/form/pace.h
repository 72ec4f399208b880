// Step time of a config: from the newest stored run with the same step, else measured on this machine, else scaled from a measured step of
// another config. Background threads read databases and measure steps.
#pragma once
#include <string>
#include <vector>

#include "core/config/config.h"

namespace comera::studio {

struct PaceQuestion {
  RunConfig config;
  std::string store;  // "" = none
};

struct Pace {
  double step_ms = 0;             // median of the run's last steps; 0 = no such run
  std::string run, name, device;  // of that run
};

// Never throws. The same step means equal model, weights, stash, optimizer, batch, packing, precision, matmul, threads, device and CUDA
// graph.
Pace find_pace(const PaceQuestion& question);

// A measured step, without training: synthetic data in the shapes of a config.
struct MeasuredStep {
  std::string machine;  // machine_name()
  std::string shape;    // shape_text()
  std::string name;     // name of the config
  double step_ms = 0;   // median; 0 = measuring failed
  double gflop = 0;     // of the matrix products in a step
  std::string problem;  // why measuring failed
};
std::string machine_name();                          // processor model and number of threads
std::string shape_text(const RunConfig& config);     // equal for configs with the same step
MeasuredStep measure_step(const RunConfig& config);  // runs some steps, which takes seconds. Never throws

// Keeps the newest step per machine and shape, at most 50.
void remember_step(std::vector<MeasuredStep>& known, MeasuredStep step);

struct Guess {
  double step_ms = 0;  // 0 = not known
  std::string from;    // name of the config that was measured
  bool same = false;   // measured with the same step; else scaled by the work of matrix products
};
// Guess for a step with `gflop` of matrix products on this machine.
Guess guess_step(const std::vector<MeasuredStep>& known, const std::string& machine, const RunConfig& config, double gflop);

// Steps of a whole run over a set of `rows` rows; 0 = not known. `whole`: the set has no splits, so that a part of it is held out.
int64_t planned_steps(const RunConfig& config, int64_t rows, bool whole);

}  // namespace comera::studio
