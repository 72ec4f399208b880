#include "app/studio/shown_run/store_client.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/format.h"
#include "app/studio/free_path.h"
#include "app/studio/whole_file.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/paths.h"
#include "core/session/stored_run.h"
#include "core/store/export.h"
#include "core/store/run_admin.h"
#include "core/store/run_reader.h"
#include "core/store/schema.h"
#include "core/store/sqlite.h"
#include "core/store/trace.h"
#include "core/train/model_export.h"

namespace comera::studio {
namespace {

// Whether both lists look equal, so that no frame is drawn in vain.
bool same(const RunList& a, const RunList& b) {
  const auto same_row = [](const RunRow& x, const RunRow& y) {
    return x.id == y.id && x.name == y.name && x.status == y.status && x.summary.step == y.summary.step && x.tags == y.tags &&
           x.notes == y.notes;
  };
  const auto same_rows = [&](const std::vector<RunRow>& x, const std::vector<RunRow>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_row);
  };
  return a.loaded == b.loaded && a.missing == b.missing && a.problem == b.problem && a.read_only == b.read_only &&
         same_rows(a.rows, b.rows) && same_rows(a.archived, b.archived) && a.settings == b.settings;
}

bool is_damage(const Error& error) {
  const auto* of_database = dynamic_cast<const DatabaseError*>(&error);
  return of_database && of_database->damaged();
}

bool is_locked(const Error& error) {
  const auto* of_database = dynamic_cast<const DatabaseError*>(&error);
  return of_database && of_database->locked();
}

// Seconds to wait for a program that holds the store: longer than any commit of this program.
constexpr double kPatience = 0.5;

std::string export_models(const std::string& store, RunChanged& answer, const std::string& folder, const std::atomic<bool>& stop) {
  const RunChange& change = answer.change;
  std::string path;
  for (const std::string& id : change.runs) {
    if (stop) throw GivenUp();
    const StoredRun run = load_stored_run(store, id);
    if (run.checkpoints.empty())
      throw Error(ErrorCode::not_found, "run " + id + " has no checkpoint", "a model is written from its last one",
                  "resume it and stop it again");
    const std::string& checkpoint = run.checkpoints.rbegin()->second;
    if (change.kind == RunChange::export_huggingface) {
      path = free_path(folder, id + "-huggingface", "");
      answer.difference = std::max(answer.difference, export_folder(checkpoint, path, "float32").logit);
    } else if (change.kind == RunChange::export_peft) {
      const std::string base = base_folder(store, run);
      if (base.empty())
        throw Error(ErrorCode::config, "the base model of run " + id + " is not known",
                    "the run did not begin with a model folder that is there",
                    "comera export " + id + " --to peft --base FOLDER names one");
      path = free_path(folder, id + "-peft", "");
      answer.difference = std::max(answer.difference, export_adapter(checkpoint, base, path).logit);
    } else if (change.kind == RunChange::export_gguf) {
      path = free_path(folder, id, "gguf");
      answer.difference = std::max(answer.difference, export_gguf(checkpoint, path, "float32").logit);
    } else {
      path = free_path(folder, id, "safetensors");
      export_model(checkpoint, path, change.kind == RunChange::export_official ? ExportNames::official : ExportNames::own, false, false);
    }
    ++answer.done;
  }
  return change.runs.size() == 1 ? path : folder;
}

std::string export_runs(const std::string& store, RunChanged& answer, const std::atomic<bool>& stop) {
  const RunChange& change = answer.change;
  const RunReader reader(store);
  const std::string folder = paths::ensure_folder(change.text);
  if (change.kind >= RunChange::export_model) return export_models(store, answer, folder, stop);
  if (change.kind == RunChange::export_tfevents) {
    std::string path;
    for (const std::string& id : change.runs) {
      if (stop) throw GivenUp();
      path = export_tfevents(reader, id, folder);
      ++answer.done;
    }
    return change.runs.size() == 1 ? path : folder;
  }
  const bool csv = change.kind == RunChange::export_csv, trace = change.kind == RunChange::export_trace;
  const std::string path = free_path(folder, change.runs.size() == 1 ? change.runs[0] : "runs",
                                     csv     ? "csv"
                                     : trace ? "trace.json"
                                             : "jsonl");
  write_whole(path, stop, [&](std::ostream& out) {
    if (csv)
      export_csv(reader, change.runs, out);
    else if (trace)
      export_trace(reader, change.runs.at(0), out);
    else
      export_jsonl(reader, change.runs, out);
  });
  answer.done = change.runs.size();
  return path;
}

void change_run(RunAdmin& admin, const RunChange& change, size_t i, RunChanged& answer) {
  const std::string& id = change.runs[i];
  switch (change.kind) {
    case RunChange::rename:
      return admin.rename(id, change.text);
    case RunChange::add_tag:
      return admin.add_tag(id, change.text);
    case RunChange::remove_tag:
      return admin.remove_tag(id, change.text);
    case RunChange::notes:
      return admin.set_notes(id, change.text);
    case RunChange::archive:
      return admin.archive(id);
    case RunChange::restore:
      return admin.restore(id);
    case RunChange::purge: {
      const RunAdmin::Purged purged = admin.purge(id, i < change.names.size() ? change.names[i] : "");
      answer.bytes += purged.bytes;
      if (!purged.left.empty()) answer.problem = "the run is deleted, but one of its files is not: " + purged.left.front();
      return;
    }
    case RunChange::create:
    case RunChange::export_csv:
    case RunChange::export_jsonl:
    case RunChange::export_tfevents:
    case RunChange::export_trace:
    case RunChange::export_model:
    case RunChange::export_official:
    case RunChange::export_huggingface:
    case RunChange::export_peft:
    case RunChange::export_gguf:
      break;
  }
}

RunChanged do_change(const std::string& store, RunChange change, const std::atomic<bool>& stop) {
  RunChanged answer{.change = std::move(change)};
  try {
    const RunChange& wanted = answer.change;
    if (wanted.kind >= RunChange::export_csv) {
      answer.written = export_runs(store, answer, stop);
      return answer;
    }
    if (wanted.kind == RunChange::create) {
      open_store(store, StoreAccess::create);
      return answer;
    }
    RunAdmin admin(store);
    for (size_t i = 0; i < wanted.runs.size(); ++i) {
      if (stop) throw GivenUp();
      change_run(admin, wanted, i, answer);
      ++answer.done;
    }
  } catch (const GivenUp&) {
    answer.given_up = true;
  } catch (const Error& error) {
    answer.problem = full_text(error);
  } catch (const std::exception& error) {
    answer.problem = error.what();
  }
  return answer;
}

// Values of some settings for all runs. The paths are those of known settings, so they are safe in SQL.
void read_settings(const RunReader& reader, const std::vector<std::string>& paths, RunList& list) {
  if (paths.empty()) return;
  std::string columns;
  for (const std::string& path : paths) columns += ", json_extract(config, '$." + path + "')";
  const QueryTable table = reader.query("SELECT id" + columns + " FROM runs", 1'000'000);
  for (size_t i = 0; i < paths.size(); ++i) {
    auto& values = list.settings[paths[i]];
    for (const auto& row : table.rows)
      if (row[i + 1].type != QueryTable::Cell::null) values[row[0].text] = row[i + 1].text;
  }
}

// State of the database file and its write-ahead log. A file that was written a moment ago may be written again without a visible change of
// its time.
StoreFiles look_at(const std::string& store) {
  StoreFiles files{.path = store};
  for (size_t i = 0; i < files.written.size(); ++i) {
    std::error_code missing;
    const std::string path = store + (i == 0 ? "" : "-wal");
    const auto time = std::filesystem::last_write_time(path, missing);
    if (missing) continue;
    if (i == 0) files.there = true;
    files.written[i] = time;
    files.bytes[i] = std::filesystem::file_size(path, missing);
    files.young = files.young || std::filesystem::file_time_type::clock::now() - time < std::chrono::seconds(2);
  }
  return files;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

const RunRow* find_row(const RunList& list, const std::string& id) {
  for (const auto* rows : {&list.rows, &list.archived})
    for (const RunRow& row : *rows)
      if (row.id == id) return &row;
  return nullptr;
}

StoreClient::StoreClient(std::string store, std::function<void()> wake)
    : wake_(std::move(wake)), path_(std::move(store)), runs_(std::make_shared<const RunList>()) {
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

StoreClient::~StoreClient() {
  thread_.request_stop();
  asked_.notify_all();
}

std::string StoreClient::path() const {
  const std::lock_guard lock(mutex_);
  return path_;
}

void StoreClient::open(const std::string& store) {
  const std::lock_guard lock(mutex_);
  path_ = store;
  ++request_;  // cancels the current request
  wanted_run_.clear();
  watch_.clear();
  watched_.clear();
  watch_wanted_ = false;
  changed_.clear();
  runs_ = std::make_shared<const RunList>();
  list_wanted_ = true;
  asked_.notify_all();
}

void StoreClient::refresh(double age) {
  const std::lock_guard lock(mutex_);
  if (list_wanted_ || now() - list_time_ < age) return;
  list_wanted_ = true;
  asked_.notify_all();
}

uint64_t StoreClient::load(const std::string& run, const std::string& store) {
  const std::lock_guard lock(mutex_);
  wanted_run_ = run;
  wanted_store_ = store;
  wanted_after_.reset();
  asked_.notify_all();
  return ++request_;
}

uint64_t StoreClient::load_more(const std::string& run, const std::string& store, RunPlace after) {
  const std::lock_guard lock(mutex_);
  wanted_run_ = run;
  wanted_store_ = store;
  wanted_after_ = std::move(after);
  asked_.notify_all();
  return ++request_;
}

std::shared_ptr<const RunList> StoreClient::runs() const {
  const std::lock_guard lock(mutex_);
  return runs_;
}

std::shared_ptr<const LoadedRun> StoreClient::loaded() const {
  const std::lock_guard lock(mutex_);
  return loaded_;
}

void StoreClient::watch(std::vector<WatchRequest> runs) {
  const std::lock_guard lock(mutex_);
  if (watch_wanted_)  // keep what the previous, not yet processed call requested
    for (WatchRequest& request : runs)
      for (const WatchRequest& before : watch_)
        if (before.run == request.run) {
          request.whole |= before.whole;
          request.refresh |= before.refresh;
        }
  watch_ = std::move(runs);
  watch_wanted_ = true;
  asked_.notify_all();
}

std::vector<WatchedRun> StoreClient::watched() {
  const std::lock_guard lock(mutex_);
  return std::exchange(watched_, {});
}

void StoreClient::change(RunChange change) {
  const std::lock_guard lock(mutex_);
  changes_.push_back({path_, std::move(change)});
  asked_.notify_all();
}

void StoreClient::give_up_changes() {
  const std::lock_guard lock(mutex_);
  for (Change& one : std::exchange(changes_, {})) changed_.push_back({.change = std::move(one.change), .given_up = true});
  if (changing_) gives_up_ = true;
}

std::vector<RunChange> StoreClient::unfinished() const {
  const std::lock_guard lock(mutex_);
  std::vector<RunChange> all;
  if (changing_) all.push_back(changing_->change);
  for (const Change& one : changes_) all.push_back(one.change);
  for (const RunChanged& one : changed_) all.push_back(one.change);
  return all;
}

bool StoreClient::change_next() {
  Change next;
  {
    const std::lock_guard lock(mutex_);
    if (changes_.empty()) return false;
    next = std::move(changes_.front());
    changes_.pop_front();
    changing_ = next;
    gives_up_ = false;
  }
  RunChanged answer = do_change(next.store, std::move(next.change), gives_up_);
  const std::lock_guard lock(mutex_);
  changing_.reset();
  if (next.store == path_) changed_.push_back(std::move(answer));
  return true;
}

std::vector<RunChanged> StoreClient::changed() {
  const std::lock_guard lock(mutex_);
  return std::exchange(changed_, {});
}

void StoreClient::want_settings(const std::vector<std::string>& paths) {
  const std::lock_guard lock(mutex_);
  if (settings_ == paths) return;
  settings_ = paths;
  if (paths.empty()) return;
  list_wanted_ = true;
  asked_.notify_all();
}

std::shared_ptr<const RunList> StoreClient::read_list(const std::string& store, const std::vector<std::string>& settings) {
  const StoreFiles files = look_at(store);
  // The status of a run also depends on the clock (heartbeat), not on the database alone.
  const auto trains = [](const std::vector<RunRow>& rows) {
    return std::any_of(rows.begin(), rows.end(), [](const RunRow& row) { return row.status == "running"; });
  };
  if (files == listed_files_ && settings == listed_settings_ && !files.young && !trains(listed_->rows) && !trains(listed_->archived) &&
      !listed_->held)
    return listed_;
  ++list_reads_;
  auto list = std::make_shared<RunList>();
  list->loaded = true;
  list->missing = !files.there;
  try {
    if (files.there) {
      const RunReader reader(store, kPatience);
      for (RunRow& row : reader.runs(true)) (row.archived ? list->archived : list->rows).push_back(std::move(row));
      read_settings(reader, settings, *list);
      list->read_only = reader.read_only();
      list->held = list->read_only.empty() && is_being_written(store, listed_->held ? 0 : kPatience);
    }
  } catch (const Error& error) {
    list->problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
    list->hint = error.hint();
    list->fault = fault_of(store);
    if (list->fault == StoreFault::none && is_damage(error)) list->fault = StoreFault::damaged;
    if (is_locked(error)) list->fault = StoreFault::locked;  // also if the lock was released meanwhile
  } catch (const std::exception& error) {
    list->problem = error.what();
  }
  if (list->held || list->fault == StoreFault::locked) list->read_only = "another program is writing it";
  listed_files_ = list->problem.empty() ? files : StoreFiles();
  listed_settings_ = settings;
  return listed_ = std::move(list);
}

void StoreClient::read_run(const std::string& store, const std::string& run, const std::optional<RunPlace>& after,
                           const std::stop_token& stop, LoadedRun& answer) {
  progress_ = 0;
  const auto progress = [&](double share) {
    progress_ = share;
    const std::lock_guard lock(mutex_);
    if (stop.stop_requested() || request_ != answer.request) throw GivenUp();
  };
  try {
    if (after) {
      answer.more = std::make_shared<RunRows>(read_rows(RunReader(store), run, *after, progress));
      return;
    }
    auto replay = std::make_shared<Replay>(store, run, progress);
    answer.view = view_of(*replay, store);
    answer.replay = std::move(replay);
  } catch (const GivenUp&) {
    answer.problem = "another run was requested";
  } catch (const Error& error) {
    answer.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
    answer.damaged = is_damage(error);
  } catch (const std::exception& error) {
    answer.problem = error.what();
  }
}

void StoreClient::work(const std::stop_token& stop) {
  RunWatch watch;
  for (;;) {
    bool list = false, watching = false;
    std::vector<WatchRequest> requests;
    std::vector<std::string> settings;
    bool changes = false;
    std::string store, run, run_store;
    std::optional<RunPlace> after;
    uint64_t request = 0;
    {
      std::unique_lock lock(mutex_);
      if (!asked_.wait(lock, stop, [&] { return list_wanted_ || watch_wanted_ || !wanted_run_.empty() || !changes_.empty(); })) return;
      changes = !changes_.empty();
      list_wanted_ = list_wanted_ || changes;
      list = list_wanted_;
      settings = settings_;
      watching = std::exchange(watch_wanted_, false);
      if (watching) requests = watch_;
      store = path_;
      run = std::exchange(wanted_run_, {});
      run_store = wanted_store_.empty() ? path_ : wanted_store_;
      after = std::move(wanted_after_);
      wanted_after_.reset();
      if (!run.empty()) request = request_;
    }
    while (change_next()) {
    }
    if (!run.empty()) {
      auto answer = std::make_shared<LoadedRun>();
      answer->request = request;
      read_run(run_store, run, after, stop, *answer);
      std::shared_ptr<const LoadedRun> before = std::move(answer);  // the previous answer is freed after the lock is released
      const std::lock_guard lock(mutex_);
      before.swap(loaded_);
    }
    if (list) {
      std::shared_ptr<const RunList> answer = read_list(store, settings);
      const std::lock_guard lock(mutex_);
      if (store != path_) continue;  // another database was opened meanwhile
      if (settings == settings_) {   // otherwise other settings were requested: read again
        if (runs_ == answer || same(*runs_, *answer))
          list = false;
        else
          runs_ = std::move(answer);
        list_wanted_ = false;
        list_time_ = now();
      }
    }
    if (wake_ && (list || request != 0 || changes)) wake_();
    if (watching) {
      watch.open(store);
      watch.keep(requests);
    }
    for (const WatchRequest& of : requests) {
      if (stop.stop_requested()) return;
      WatchedRun answer = watch.read(of);
      {
        const std::lock_guard lock(mutex_);
        if (store != path_) break;  // the store is no longer open
        watched_.push_back(std::move(answer));
      }
      if (wake_) wake_();
    }
  }
}

}  // namespace comera::studio
