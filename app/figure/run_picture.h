// Pictures of a stored run: curves, rank map, diagram of tensor trains.
#pragma once
#include <string>
#include <vector>

#include "app/figure/drawing.h"
#include "core/session/replay.h"

namespace comera {

enum class RunPicture { curves, ranks, tensor_trains };

// Draws the run at the current step of `replay`. `metrics`: names of the metrics in one plot; empty = training loss, and validation loss if
// there is one. Throws Error(not_found) for a metric that the run lacks, or if it has no ranks to draw.
Drawing draw_run(Replay& replay, RunPicture picture, const std::vector<std::string>& metrics = {});

}  // namespace comera
