// Values of one bond or core from a checkpoint, for past steps without a session.
#pragma once
#include <string>
#include <vector>

#include "core/session/snapshot.h"

namespace comera::studio {

struct CheckpointQuestion {
  std::string path;  // of the checkpoint
  int64_t step = 0;  // that it is of
  std::string layer;
  int64_t bond = 0, core = 0;  // from 1; the other one is 0
  bool operator==(const CheckpointQuestion&) const = default;
};

struct CheckpointValues {
  CheckpointQuestion question;
  InspectedBond bond;
  InspectedCore core;   // without a gradient
  std::string problem;  // why they could not be read
};

// Reads one tensor of the file. Never throws.
CheckpointValues read_checkpoint_values(const CheckpointQuestion& question);

}  // namespace comera::studio
