// Computes a stored run again, or some of its steps, from its config, seed and event log, and compares every stored value.
#pragma once
#include <functional>
#include <string>

#include "core/session/stored_run.h"

namespace comera {

class RunReader;

// What computes a step: the program's version, the device, the BLAS. "" = not stored, as by earlier versions.
struct ComputedWith {
  std::string program, device, blas;
};

// Of a step of a stored run: each start and resume tells of the steps after it.
ComputedWith computed_with(const RunReader& reader, const std::string& run, int64_t step);

struct Reproduction {
  std::string run;
  bool identical = true;
  int64_t from = 0;               // the step it began after: 0, where the run was forked, or a checkpoint
  int64_t steps = 0, values = 0;  // computed again; compared
  bool weights_compared = false;  // there is a checkpoint of the last step
  // The first difference: a metric at a step, or a tensor of that checkpoint.
  int64_t step = 0;
  std::string what;
  double stored = 0, computed = 0;
  ComputedWith then, now;  // of that step, or else of the last one
};

// Which steps: after the last checkpoint at or before `after`, so that few are computed; up to `last`, -1 = all.
struct ReproducedSteps {
  int64_t after = 0, last = -1;
};

// `progress(step, last)` is told of each step; returning false ends early. Of a run that still trains `last` must be
// given: what is stored of it by then. Throws Error as training does; a fork whose starting checkpoint is gone cannot be
// reproduced: Error(not_found).
Reproduction reproduce_run(const std::string& store, const std::string& id_or_name,
                           const std::function<bool(int64_t, int64_t)>& progress = {}, ReproducedSteps steps = {});

// A tensor in which two safetensors files differ: a bit of it, its shape or format, or it is in one of them only; the first by
// name of those that both have. "" = there is none. Metadata are not compared.
std::string first_file_difference(const std::string& a, const std::string& b);

}  // namespace comera
