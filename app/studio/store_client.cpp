#include "app/studio/store_client.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/store/run_reader.h"

namespace comera::studio {
namespace {

// Whether two lists look the same, so that no frame is drawn for nothing.
bool same(const RunList& a, const RunList& b) {
  return a.loaded == b.loaded && a.missing == b.missing && a.problem == b.problem &&
         std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), [](const RunRow& x, const RunRow& y) {
           return x.id == y.id && x.name == y.name && x.status == y.status && x.summary.step == y.summary.step;
         });
}

// Of the database and of what was not written into it yet. Files that were written a moment ago may be written again
// without a sign of it.
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

struct GivenUp {};  // what was being read is not wanted any more

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

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
  ++request_;  // what is being read is not asked for any more
  wanted_run_.clear();
  watch_.clear();
  watched_.clear();
  watch_wanted_ = false;
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

uint64_t StoreClient::load(const std::string& run) {
  const std::lock_guard lock(mutex_);
  wanted_run_ = run;
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
  if (watch_wanted_)  // what the call before wanted is still to be done
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

std::shared_ptr<const RunList> StoreClient::read_list(const std::string& store) {
  const StoreFiles files = look_at(store);
  // Whether a run still trains is told by the clock too, not by the store alone.
  const bool trains = std::any_of(listed_->rows.begin(), listed_->rows.end(), [](const RunRow& row) { return row.status == "running"; });
  if (files == listed_files_ && !files.young && !trains) return listed_;
  ++list_reads_;
  auto list = std::make_shared<RunList>();
  list->loaded = true;
  list->missing = !files.there;
  try {
    if (files.there) list->rows = RunReader(store).runs();
  } catch (const Error& error) {
    list->problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    list->problem = error.what();
  }
  listed_files_ = list->problem.empty() ? files : StoreFiles();
  return listed_ = std::move(list);
}

void StoreClient::read_run(const std::string& store, const std::string& run, const std::stop_token& stop, LoadedRun& answer) {
  progress_ = 0;
  try {
    auto replay = std::make_shared<Replay>(store, run, [&](double share) {
      progress_ = share;
      const std::lock_guard lock(mutex_);
      if (stop.stop_requested() || request_ != answer.request) throw GivenUp();
    });
    const std::string& id = replay->row().id;
    auto view = std::make_shared<RunView>(config_from_json(parse_json(RunReader(store).config(id), "the stored config"), "run " + id));
    view->take(replay->latest(), replay->drain());
    answer.view = std::move(view);
    answer.replay = std::move(replay);
  } catch (const GivenUp&) {
    answer.problem = "another run was asked for";
  } catch (const Error& error) {
    answer.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    answer.problem = error.what();
  }
}

void StoreClient::work(const std::stop_token& stop) {
  RunWatch watch;
  for (;;) {
    bool list = false, watching = false;
    std::vector<WatchRequest> requests;
    std::string store, run;
    uint64_t request = 0;
    {
      std::unique_lock lock(mutex_);
      if (!asked_.wait(lock, stop, [&] { return list_wanted_ || watch_wanted_ || !wanted_run_.empty(); })) return;
      list = list_wanted_;
      watching = std::exchange(watch_wanted_, false);
      if (watching) requests = watch_;
      store = path_;
      run = std::exchange(wanted_run_, {});
      if (!run.empty()) request = request_;
    }
    if (!run.empty()) {
      auto answer = std::make_shared<LoadedRun>();
      answer->request = request;
      read_run(store, run, stop, *answer);
      std::shared_ptr<const LoadedRun> before = std::move(answer);  // the older answer ends after the lock
      const std::lock_guard lock(mutex_);
      before.swap(loaded_);
    }
    if (list) {
      std::shared_ptr<const RunList> answer = read_list(store);
      const std::lock_guard lock(mutex_);
      if (store != path_) continue;  // another one was opened meanwhile: read that
      if (runs_ == answer || same(*runs_, *answer))
        list = false;
      else
        runs_ = std::move(answer);
      list_wanted_ = false;
      list_time_ = now();
    }
    if (wake_ && (list || request != 0)) wake_();
    if (watching) {
      watch.open(store);
      watch.keep(requests);
    }
    for (const WatchRequest& of : requests) {
      if (stop.stop_requested()) return;
      WatchedRun answer = watch.read(of);
      {
        const std::lock_guard lock(mutex_);
        if (store != path_) break;  // of a store that is shown no more
        watched_.push_back(std::move(answer));
      }
      if (wake_) wake_();
    }
  }
}

}  // namespace comera::studio
