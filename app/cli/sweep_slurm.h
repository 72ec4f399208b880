// The batch script of a sweep for Slurm.
#pragma once
#include <cstdint>
#include <string>

#include "app/cli/cli.h"

namespace comera::cli {

struct SlurmArray {
  std::string folder, name;        // name: of the sweep
  int64_t tasks = 0, at_once = 0;  // at_once 0 = all
  int64_t threads = 1;             // of a task
  bool gpu = false;
  int64_t planned_bytes = 0;  // largest planned peak of a run
};

// Writes FOLDER/NAME.sbatch and, next to it, a copy of the sweep's file, which the tasks read. Returns the exit code.
int write_slurm(const Context& context, const SlurmArray& array, const std::string& file);

}  // namespace comera::cli
