// Reads several stored runs side by side and follows those that still train. Runs on the reading thread of StoreClient; its results are
// plain data for the drawing thread.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/studio/shown_run/run_view.h"
#include "core/session/replay.h"

namespace comera::studio {

struct WatchRequest {
  std::string run;       // id, prefix of an id, or a name
  int64_t step = -1;     // also read the snapshot at this step; -1 = none
  bool whole = false;    // read from the start, even if already known
  bool refresh = false;  // check for new records
  bool operator==(const WatchRequest&) const = default;
};

// New data of a run: everything in the first answer, then increments.
struct WatchedRun {
  std::string run;                                          // `run` of the request
  std::string problem;                                      // why it cannot be read; other members are then empty
  std::shared_ptr<RunView> view;                            // the whole run, only in the first answer; the receiver owns it
  std::shared_ptr<const Snapshot> latest;                   // null = nothing new
  Records records;                                          // since the previous answer
  std::vector<std::pair<std::string, std::string>> config;  // initial config: dotted path and JSON text; set together with `view`
  std::vector<int64_t> checkpoints;                         // steps of the checkpoints; set together with `view` or `latest`
  int64_t step = -1;                                        // `step` of the request
  std::shared_ptr<const Snapshot> past;                     // snapshot at that step
};

// Not thread-safe.
class RunWatch {
 public:
  // Selects the database; on a change, forgets all runs.
  void open(const std::string& store);
  // Forgets runs that are not in `requests`.
  void keep(const std::vector<WatchRequest>& requests);
  // Never throws: if a run cannot be read, `problem` says why.
  WatchedRun read(const WatchRequest& request);

 private:
  std::string store_;
  std::map<std::string, std::unique_ptr<Replay>> replays_;  // by WatchRequest::run
};

}  // namespace comera::studio
