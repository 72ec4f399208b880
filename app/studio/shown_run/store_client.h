// Reads the database on a separate thread, so that no frame waits for a disk. Requests come from the thread that draws;
// answers are immutable and swapped in whole.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/studio/compare/run_watch.h"
#include "app/studio/shown_run/stored_view.h"
#include "core/store/schema.h"

namespace comera::studio {

// The list of runs at a moment.
struct RunList {
  std::vector<RunRow> rows;      // newest first
  std::vector<RunRow> archived;  // the same of those that are hidden
  // Of settings that were asked for (want_settings): by path, then by id of the run.
  std::map<std::string, std::map<std::string, std::string>> settings;
  bool loaded = false;    // false: not read yet
  bool missing = false;   // there is no store yet: no run was ever stored
  std::string problem;    // why it could not be read
  std::string hint;       // what to do about that
  StoreFault fault = {};  // kind of fault
  std::string read_only;  // why it cannot be written; "" = it can
  bool held = false;      // another program is writing it all the time: looked at again and again until that ends
};

// The files of a store at a moment.
struct StoreFiles {
  std::string path;
  bool there = false, young = false;  // young: written so lately that a change may not show
  std::array<std::filesystem::file_time_type, 2> written{};
  std::array<uintmax_t, 2> bytes{};
  bool operator==(const StoreFiles&) const = default;
};

// A run that was asked for, whole or what is new of it; all of it belongs to whoever asked.
struct LoadedRun {
  uint64_t request = 0;
  std::shared_ptr<RunView> view;  // null when it could not be read, or only what is new was asked for
  std::shared_ptr<Replay> replay;
  std::shared_ptr<RunRows> more;  // what is new; null when it could not be read, or all was asked for
  std::string problem;
  bool damaged = false;  // the store is
};

// A change of stored runs.
struct RunChange {
  enum Kind {
    rename,
    add_tag,
    remove_tag,
    notes,
    archive,
    restore,
    purge,
    create,  // of no run: makes the store where there is none
    export_csv,
    export_jsonl,
    export_tfevents,
    export_trace,
    export_model,    // of the last checkpoint, with this program's names
    export_official  // with the names of the published PyTorch model
  };
  Kind kind = rename;
  std::vector<std::string> runs = {};   // exact ids
  std::string text = {};                // name, tag, notes, or the folder of an export
  std::vector<std::string> names = {};  // of a purge: the name of each run, as it was typed or is shown
};
struct RunChanged {
  RunChange change = {};
  std::string problem = {};  // why it was not done, or not for all; "" = done
  std::string written = {};  // of an export: the file, or the folder
  int64_t bytes = 0;         // of a purge: of the checkpoints that are gone
  size_t done = 0;           // runs that were changed or exported
  bool given_up = false;     // before all of it was done
};

class StoreClient {
 public:
  // `wake` is called from the reading thread when an answer is there.
  StoreClient(std::string store, std::function<void()> wake);
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;

  std::string path() const;
  // Switches the database: answers about the previous one are dropped.
  void open(const std::string& store);
  // Reads the list again unless that was done less than `age` seconds ago.
  void refresh(double age);
  // Reads a run, of another database when one is named; one that is being read for an earlier request is given up.
  // Returns the number of the request.
  uint64_t load(const std::string& run, const std::string& store = {});
  // The same of what is stored of it after a place.
  uint64_t load_more(const std::string& run, const std::string& store, RunPlace after);
  double progress() const { return progress_; }  // share of the run that is being read, from 0 to 1
  std::shared_ptr<const RunList> runs() const;
  int list_reads() const { return list_reads_; }    // how often the store was read for it
  std::shared_ptr<const LoadedRun> loaded() const;  // the last run that was asked for; null before
  // Reads these runs, all of them that are watched from now on. A later call replaces one that was not begun.
  void watch(std::vector<WatchRequest> runs);
  std::vector<WatchedRun> watched();  // the answers since the last call, in their order
  // Changes stored runs and reads the list again, in the order they were asked for. The destructor waits for it.
  void change(RunChange change);
  // Changes that have not begun are dropped; one that runs ends with the run that it is at, an export of tables at once and
  // without its file. changed() has all of them.
  void give_up_changes();
  std::vector<RunChange> unfinished() const;  // that are not done, or not taken from changed()
  std::vector<RunChanged> changed();          // the answers since the last call
  // Lists tell these settings of every run from now on, by their dotted paths.
  void want_settings(const std::vector<std::string>& paths);

 private:
  void work(const std::stop_token& stop);
  bool change_next();  // false: nothing is left to change
  std::shared_ptr<const RunList> read_list(const std::string& store, const std::vector<std::string>& settings);
  // `after`: only what is new since there.
  void read_run(const std::string& store, const std::string& run, const std::optional<RunPlace>& after, const std::stop_token& stop,
                LoadedRun& answer);

  const std::function<void()> wake_;
  // Of the reading thread.
  std::atomic<int> list_reads_ = 0;
  StoreFiles listed_files_;  // as they were when listed_ was read: it is not read again before they change
  std::vector<std::string> listed_settings_;
  std::shared_ptr<const RunList> listed_ = std::make_shared<const RunList>();
  std::atomic<double> progress_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable_any asked_;
  std::string path_;                       // guarded by mutex_
  bool list_wanted_ = true;                // guarded by mutex_
  double list_time_ = 0;                   // guarded by mutex_
  uint64_t request_ = 0;                   // guarded by mutex_
  std::string wanted_run_, wanted_store_;  // guarded by mutex_; "" = none, and path_
  std::optional<RunPlace> wanted_after_;   // guarded by mutex_
  bool watch_wanted_ = false;              // guarded by mutex_
  std::vector<WatchRequest> watch_;        // guarded by mutex_
  std::vector<WatchedRun> watched_;        // guarded by mutex_
  struct Change {
    std::string store;
    RunChange change;
  };
  std::deque<Change> changes_;               // guarded by mutex_
  std::optional<Change> changing_;           // guarded by mutex_: it is being done
  std::atomic<bool> gives_up_ = false;       // the one that is being done
  std::vector<RunChanged> changed_;          // guarded by mutex_
  std::vector<std::string> settings_;        // guarded by mutex_
  std::shared_ptr<const RunList> runs_;      // guarded by mutex_
  std::shared_ptr<const LoadedRun> loaded_;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace comera::studio
