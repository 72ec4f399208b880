// Reads the database on a separate thread, so that no frame waits for a disk. Requests come from the drawing thread; answers are immutable
// and replaced as a whole.
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

// The list of runs at one time.
struct RunList {
  std::vector<RunRow> rows;      // newest first
  std::vector<RunRow> archived;  // hidden runs, newest first
  // Values of requested settings (want_settings): by path, then by run id.
  std::map<std::string, std::map<std::string, std::string>> settings;
  bool loaded = false;    // false: not read yet
  bool missing = false;   // the store does not exist yet
  std::string problem;    // why it could not be read
  std::string hint;       // advice
  StoreFault fault = {};  // kind of fault
  std::string read_only;  // why it cannot be written; "" = writable
  bool held = false;      // another program holds the write lock for a long time; checked repeatedly until it is released
};

// The run of this id, also an archived one; null = none.
const RunRow* find_row(const RunList& list, const std::string& id);

// State of a store's files.
struct StoreFiles {
  std::string path;
  bool there = false, young = false;  // young: written so recently that another change may not be visible
  std::array<std::filesystem::file_time_type, 2> written{};
  std::array<uintmax_t, 2> bytes{};
  bool operator==(const StoreFiles&) const = default;
};

// Answer to load() or load_more(); the receiver owns it.
struct LoadedRun {
  uint64_t request = 0;
  std::shared_ptr<RunView> view;  // null after load_more(), or if reading failed
  std::shared_ptr<Replay> replay;
  std::shared_ptr<RunRows> more;  // new rows; null after load(), or if reading failed
  std::string problem;
  bool damaged = false;  // the store is damaged
};

// A change or an export of stored runs.
struct RunChange {
  enum Kind {
    rename,
    add_tag,
    remove_tag,
    notes,
    archive,
    restore,
    purge,
    create,  // no runs: creates the store if it does not exist
    export_csv,
    export_jsonl,
    export_tfevents,
    export_trace,
    // Of the last checkpoint: with this program's tensor names, with those of the published PyTorch model, as a folder of the transformers
    // library, as an adapter folder of the PEFT library, as a GGUF file.
    export_model,
    export_official,
    export_huggingface,
    export_peft,
    export_gguf
  };
  Kind kind = rename;
  std::vector<std::string> runs = {};   // exact ids
  std::string text = {};                // name, tag, notes, or folder of an export
  std::vector<std::string> names = {};  // purge: name of each run, as typed or shown
};
struct RunChanged {
  RunChange change = {};
  std::string problem = {};  // why it failed, entirely or in part; "" = success
  std::string written = {};  // export: the file or the folder
  double difference = -1;    // export: the largest of a logit of the model that was read again; -1: none was compared
  int64_t bytes = 0;         // purge: size of the deleted checkpoints
  size_t done = 0;           // number of runs changed or exported
  bool given_up = false;     // ended before all was done
};

class StoreClient {
 public:
  // `wake` is called on the reading thread when an answer is ready.
  StoreClient(std::string store, std::function<void()> wake);
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;

  std::string path() const;
  // Switches the database; answers about the previous one are dropped.
  void open(const std::string& store);
  // Reads the list again unless it was read less than `age` seconds ago.
  void refresh(double age);
  // Reads a run, from another database if `store` is given. Cancels an earlier request. Returns the number of the request.
  uint64_t load(const std::string& run, const std::string& store = {});
  // The same for the rows after a place.
  uint64_t load_more(const std::string& run, const std::string& store, RunPlace after);
  double progress() const { return progress_; }  // of the run that is being read, 0 to 1
  std::shared_ptr<const RunList> runs() const;
  int list_reads() const { return list_reads_; }    // number of reads of the list, for tests
  std::shared_ptr<const LoadedRun> loaded() const;  // answer to the last request; null before the first
  // Reads these runs, and watches exactly these from now on. Replaces a call that has not begun.
  void watch(std::vector<WatchRequest> runs);
  std::vector<WatchedRun> watched();  // answers since the last call, in order
  // Changes stored runs in the order of the calls, then reads the list again. The destructor waits for all changes.
  void change(RunChange change);
  // Drops changes that have not begun. The current change ends after the current run; an export of tables ends at once, without its file.
  // changed() reports all of these.
  void give_up_changes();
  std::vector<RunChange> unfinished() const;  // changes that are not done, or whose results were not taken by changed()
  std::vector<RunChanged> changed();          // answers since the last call
  // From now on lists include these settings of every run. `paths`: dotted paths.
  void want_settings(const std::vector<std::string>& paths);

 private:
  void work(const std::stop_token& stop);
  bool change_next();  // false: no changes left
  std::shared_ptr<const RunList> read_list(const std::string& store, const std::vector<std::string>& settings);
  // `after`: read only the rows after this place.
  void read_run(const std::string& store, const std::string& run, const std::optional<RunPlace>& after, const std::stop_token& stop,
                LoadedRun& answer);

  const std::function<void()> wake_;
  // Members of the reading thread; the atomic ones may be read by any thread.
  std::atomic<int> list_reads_ = 0;
  StoreFiles listed_files_;  // when listed_ was read; it is not read again until they change
  std::vector<std::string> listed_settings_;
  std::shared_ptr<const RunList> listed_ = std::make_shared<const RunList>();
  std::atomic<double> progress_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable_any asked_;
  std::string path_;                       // guarded by mutex_
  bool list_wanted_ = true;                // guarded by mutex_
  double list_time_ = 0;                   // guarded by mutex_
  uint64_t request_ = 0;                   // guarded by mutex_
  std::string wanted_run_, wanted_store_;  // guarded by mutex_; "" = none, or path_
  std::optional<RunPlace> wanted_after_;   // guarded by mutex_
  bool watch_wanted_ = false;              // guarded by mutex_
  std::vector<WatchRequest> watch_;        // guarded by mutex_
  std::vector<WatchedRun> watched_;        // guarded by mutex_
  struct Change {
    std::string store;
    RunChange change;
  };
  std::deque<Change> changes_;               // guarded by mutex_
  std::optional<Change> changing_;           // guarded by mutex_: in progress
  std::atomic<bool> gives_up_ = false;       // give up the change in progress
  std::vector<RunChanged> changed_;          // guarded by mutex_
  std::vector<std::string> settings_;        // guarded by mutex_
  std::shared_ptr<const RunList> runs_;      // guarded by mutex_
  std::shared_ptr<const LoadedRun> loaded_;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace comera::studio
