// Reads several stored runs side by side and keeps up with those that still train. Lives on the reading thread of
// StoreClient; what it gives is plain data for the thread that draws.
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
  std::string run;       // id, its beginning, or a name
  int64_t step = -1;     // also how it was at this step; -1 = no
  bool whole = false;    // read it from the start, also when it is known
  bool refresh = false;  // look for what was stored since
  bool operator==(const WatchRequest&) const = default;
};

// New data of a run: everything the first time, then increments.
struct WatchedRun {
  std::string run;                                          // as it was asked for
  std::string problem;                                      // why it cannot be read; the rest is empty then
  std::shared_ptr<RunView> view;                            // whole; only the first time. Belongs to whoever takes it
  std::shared_ptr<const Snapshot> latest;                   // null = nothing came since
  Records records;                                          // since the last answer
  std::vector<std::pair<std::string, std::string>> config;  // dotted path and JSON text, as it began; with `view`
  std::vector<int64_t> checkpoints;                         // their steps; with `view` and `latest`
  int64_t step = -1;                                        // as asked for
  std::shared_ptr<const Snapshot> past;                     // at that step
};

// Thread: one at a time.
class RunWatch {
 public:
  // Another database: forgets the runs of the one before.
  void open(const std::string& store);
  // Forgets the runs that are not among these.
  void keep(const std::vector<WatchRequest>& requests);
  // Never throws: a run that cannot be read is a `problem`.
  WatchedRun read(const WatchRequest& request);

 private:
  std::string store_;
  std::map<std::string, std::unique_ptr<Replay>> replays_;  // by what was asked for
};

}  // namespace comera::studio
