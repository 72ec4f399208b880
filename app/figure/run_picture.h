// A stored run as a picture: its curves, its rank map, the diagram of its tensor trains.
#pragma once
#include <string>
#include <vector>

#include "app/figure/drawing.h"
#include "core/session/replay.h"

namespace comera {

enum class RunPicture { curves, ranks, tensor_trains };

// Of the run at the step where `replay` stands. `metrics`: names of what the curves show, in one plane; none = the
// training loss, and the held-back one where it was scored. Throws Error(not_found) for a metric that the run does not
// have, and where it has no ranks to draw.
Drawing draw_run(Replay& replay, RunPicture picture, const std::vector<std::string>& metrics = {});

}  // namespace comera
