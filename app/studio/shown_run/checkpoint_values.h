// Values of one bond or core from a checkpoint, for past steps, where no session can be asked.
#pragma once
#include <string>
#include <vector>

#include "core/session/snapshot.h"

namespace comera::studio {

struct CheckpointQuestion {
  std::string path;  // of the checkpoint file
  int64_t step = 0;  // of the checkpoint
  std::string layer;
  int64_t bond = 0, core = 0;  // from 1; one of them is 0
  bool operator==(const CheckpointQuestion&) const = default;
};

struct CheckpointValues {
  CheckpointQuestion question;
  InspectedBond bond;
  InspectedCore core;   // gradient not available
  std::string problem;  // why the values could not be read
};

// Reads one tensor of the file. Never throws.
CheckpointValues read_checkpoint_values(const CheckpointQuestion& question);

}  // namespace comera::studio
