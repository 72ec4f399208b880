// Where the time of a run went, as a file of the Trace Event Format (JSON object form), which Perfetto and chrome://tracing
// open: a complete event ("X") for each recorded step; under the last step of each profile its phases and ops, which are
// means over the steps that were timed; an instant event ("i") for everything that happened. Times in microseconds since
// the run began.
#pragma once
#include <ostream>
#include <string>

#include "core/store/run_reader.h"

namespace comera {

// Throws Error(not_found) for an unknown run, Error(storage) when `out` fails.
void export_trace(const RunReader& reader, const std::string& id, std::ostream& out);

}  // namespace comera
