// A session as another program sees it: how it begins, commands, snapshots and records as JSON, which a socket carries (session_socket.h).
// Both ends are the same build, so nothing here is kept or versioned.
#pragma once
#include "core/base/json.h"
#include "core/session/command.h"
#include "core/session/session.h"

namespace comera {

// All but `processes`, `others` and `open`, which belong to one of the programs.
Json wire_start(const SessionStart& start);
Json wire_command(const Command& command);
Json wire_snapshot(const Snapshot& snapshot);
Json wire_records(const Records& records);

// What these made. Throws Error(storage) where it is anything else.
SessionStart start_of_wire(const Json& json);
Command command_of_wire(const Json& json);
Snapshot snapshot_of_wire(const Json& json);
Records records_of_wire(const Json& json);

}  // namespace comera
