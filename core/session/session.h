// The only thing the command line and the window know about training: a run on a thread of its own, told by commands,
// seen through snapshots. Three threads: the caller's, the trainer's, the loader's; the store writes on a fourth.
// Every member function may be called from any thread; none waits for a step.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "core/session/command.h"
#include "core/session/folder_start.h"
#include "core/session/run_source.h"
#include "core/session/stored_run.h"

namespace comera {

class Communicator;
class Device;

// What to train, and from where.
struct SessionStart {
  RunConfig config;                      // new run; resume and fork take the parent's with its edits
  FolderStart folder;                    // of a new run; no path: its weights are drawn
  std::string store;                     // database file; "" = nothing is stored
  std::string checkpoint_folder;         // "" = beside the store
  std::string resume_run;                // continue this run
  std::string fork_run;                  // start a new run from this one ...
  int64_t at_step = -1;                  // ... at this step (-1 = its last)
  std::vector<std::string> sets;         // path=value, applied at the start; of a new run only what no config has (only_of_runs)
  std::vector<ScheduledChange> changes;  // made before their steps, which must be still to come
  int64_t extend = 0;                    // steps more than planned
  std::vector<std::string> tags;
  double max_seconds = 0;                     // stop with a checkpoint after this time; 0 = no limit
  bool paused = false;                        // begin paused
  bool watched = false;                       // somebody reads its speed: the rates of the device are measured once, after some seconds
  bool attended = false;                      // somebody is there to resume it: it pauses where ranks find no room to grow
  size_t most_waiting = 4'000'000;            // points of metrics that drain() may have waiting, at 16 bytes each; see there
  std::string device;                         // instead of the config's; "" = that one. For a run that goes on where its device is not
  int processes = 1;                          // for whoever starts it elsewhere: how many train it together (remote_session.h)
  std::shared_ptr<Communicator> others = {};  // processes that train with this one, which is process 0 (with_others.h); null: none
  std::function<std::unique_ptr<Device>(const std::string& name, int threads)> open = {};  // of tests; empty: open_device
};

class Session final : public RunSource {
 public:
  explicit Session(SessionStart start);
  ~Session() override;  // stops with a checkpoint if still running; never throws
  Session(const Session&) = delete;

  Ticket post(Command command);
  std::shared_ptr<const Snapshot> latest() const override;
  // Kept until asked for. What every step adds to is kept as far as SessionStart::most_waiting: when nobody asks for so long,
  // the metrics that wait are left out and the records say of which steps; the store has them. Events, ranks and memory are
  // always whole: they come where something changes, and there is only so much to change.
  Records drain() override;
  // Waits until the run has ended (or the time is over); true when it has.
  bool wait(double seconds);
  void join();

 private:
  friend class Runner;
  // For the runner, on the trainer's thread.
  std::deque<std::pair<Ticket, Command>> take_commands(double wait_seconds);
  void publish(std::shared_ptr<const Snapshot> snapshot, Records records);
  void run(SessionStart start);

  mutable std::mutex mutex_;
  std::condition_variable wake_, ended_;
  std::deque<std::pair<Ticket, Command>> commands_;  // guarded by mutex_
  std::shared_ptr<const Snapshot> latest_;           // guarded by mutex_
  const size_t most_waiting_;
  Records records_;         // guarded by mutex_
  Ticket next_ticket_ = 1;  // guarded by mutex_
  bool has_ended_ = false;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace comera
