// Records one run. The trainer calls, a thread of the writer's own writes: no call here waits for the disk except the
// constructors, flush() and the destructor.
//
// One transaction every half second; a sign of life (heartbeat) every two seconds even when nothing happens.
//
// When the store fails (disk full, locked for long, file deleted) training goes on. Rows wait in memory; after
// `spill_after_s` of failure, beyond `ram_bytes`, or when the run has ended, they go to a file (spill.h) beside the store or
// where there is room, which is merged when the store works again, else when the store is opened next. If none can be written,
// rows stay in memory up to `hard_ram_bytes`; from then on metric values are dropped and counted in store_problem(), while
// events, ranks and checkpoints (few and small) are still kept. When the store works again an event `alert` says which were lost.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/store/run_types.h"

namespace comera {

struct RunWriterOptions {
  double commit_s = 0.5;               // one transaction per this time
  double heartbeat_s = 2;              // must stay well under the reader's 10 s
  double busy_s = 2;                   // wait for another connection's lock, on the writer's thread
  double retry_s = 1;                  // between attempts while the store fails
  double spill_after_s = 10;           // of failure, before rows go to the spill file
  int64_t ram_bytes = 64 << 20;        // about 2 million metric values
  int64_t hard_ram_bytes = 256 << 20;  // when the spill file fails too
};

// Thread: any; calls are ordered as they come. Values may be NaN and infinite.
class RunWriter {
 public:
  // Begins a run: creates the store if need be, migrates an old one, merges spill files. Throws Error(storage).
  RunWriter(const std::string& store, const RunStart& start, RunWriterOptions options = {});
  // Continues run `run_id`. Throws Error(not_found) when there is none, Error(storage) when someone else writes it.
  RunWriter(const std::string& store, const std::string& run_id, RunWriterOptions options = {});
  // Writes (or spills) what is left. A run without finish() becomes `interrupted`. Never throws.
  ~RunWriter();
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  const std::string& run_id() const;

  // Values of one step, stored with the wall time of this call. A value already there is replaced.
  void metrics(int64_t step, const NamedValues& values);
  void rank(int64_t step, const std::string& layer, int64_t bond, int64_t rank);      // only on change
  void memory(int64_t step, const std::string& purpose, int64_t bytes);               // only on change
  void event(int64_t step, const std::string& kind, const std::string& body = "{}");  // body: JSON text
  void checkpoint(int64_t step, const std::string& path, int64_t bytes, const std::string& kind);
  void forget_checkpoint(int64_t step);                            // its file is gone
  void forget_edits(const std::string& path, int64_t after_step);  // events `edit` of this setting, past a step
  // The latest values for the list of runs; only the newest one of a half second is written.
  void summary(const RunSummary& summary);
  // Removes all rows past `step`, as a resume from there needs. Rows given later are not touched. Checkpoint files
  // are not removed.
  void truncate_after(int64_t step);
  // Of a run that is continued, before anything else: all rows past `course.step` become a run of their own, spare_id(),
  // with the status that this one had. Paths of checkpoints are those in a folder of its id from then on; moving the files
  // there is left to the caller.
  void set_aside(ReplacedCourse course);
  const std::string& spare_id() const;  // of no run yet; "" for a run that begins
  // The run has ended: finished | stopped | interrupted | failed | diverged. The heartbeat stops.
  void finish(const std::string& status, const std::string& message = "");

  // Waits until all that was given so far, and was not lost, is in the store; false when the store fails (see store_problem()).
  bool flush();
  // Text for the red banner; "" = the store works.
  std::string store_problem() const;
  // Time of the last successful transaction.
  double saved_at() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace comera
