// RunView and Replay of a stored run, which share their values in memory.
#pragma once
#include <memory>
#include <string>

#include "app/studio/shown_run/run_view.h"
#include "core/session/replay.h"

namespace comera::studio {

// All of a run that was just read. `store`: the database that it is in.
std::shared_ptr<RunView> view_of(Replay& replay, const std::string& store);

// Appends what was read after the replay's place() to it and to its view; the replay's cursor stays. Takes time for what is
// new, not for what is there. False, and nothing is changed, where the rows are no continuation: then the run is read whole.
bool append(RunView& view, Replay& replay, RunRows rows);

}  // namespace comera::studio
