// RunView and Replay of a stored run; both share the values in memory.
#pragma once
#include <memory>
#include <string>

#include "app/studio/shown_run/run_view.h"
#include "core/session/replay.h"

namespace comera::studio {

// All data of a run that was just read. `store`: its database.
std::shared_ptr<RunView> view_of(Replay& replay, const std::string& store);

// Appends rows that were read after the replay's place() to both; the replay's cursor stays. The time depends on the new rows only. False:
// the rows do not continue the run, nothing was changed, and the run must be read as a whole.
bool append(RunView& view, Replay& replay, RunRows rows);

}  // namespace comera::studio
