// Verbs as one of several processes, which mpirun or srun started.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "app/cli/cli.h"
#include "core/comm/communicator.h"

namespace comera::cli {

using Processes = std::shared_ptr<Communicator>;  // the others; null: there are none

// The verb, alone or as one of the processes that mpirun or srun started. Of those, process 0 alone prints, stores and has the exit code:
// mpirun kills all when one returns another than 0, and process 0 may still write.
int in_processes(const Context& context, const std::function<int(const Context&, Processes)>& verb);

// Of `comera serve-session SOCKET`, which the window starts through mpirun: process 0 runs the session that the window asks for.
inline constexpr const char* kServeSession = "serve-session";
int serve_session_at(const Context& context, const std::string& socket);

}  // namespace comera::cli
