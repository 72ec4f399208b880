// A run that several processes of this machine train, which mpirun starts; process 0 of them has the session
// (core/session/remote_session.h).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "app/studio/shown_run/live_run.h"

namespace comera::studio {

// Why none can be started: no MPI in this build, or no mpirun; "" = they can.
const std::string& no_processes();
// Words of the command that starts them.
std::vector<std::string> processes_command(int processes, const std::string& socket);
// start.processes of them.
std::unique_ptr<RunLink> start_processes(SessionStart start);

}  // namespace comera::studio
