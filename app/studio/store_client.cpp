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

RunList StoreClient::read_list(const std::string& store) {
  RunList list;
  list.loaded = true;
  std::error_code ignored;
  if (!std::filesystem::exists(store, ignored)) {
    list.missing = true;
    return list;
  }
  try {
    list.rows = RunReader(store).runs();
  } catch (const Error& error) {
    list.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    list.problem = error.what();
  }
  return list;
}

void StoreClient::read_run(const std::string& store, const std::string& run, LoadedRun& answer) {
  try {
    auto replay = std::make_shared<Replay>(store, run);
    auto view = std::make_shared<RunView>(replay->config());
    view->config_problem = replay->config_problem();
    view->take(replay->latest(), replay->drain());
    answer.view = std::move(view);
    answer.replay = std::move(replay);
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
      read_run(store, run, *answer);
      std::shared_ptr<const LoadedRun> before = std::move(answer);  // the older answer ends after the lock
      const std::lock_guard lock(mutex_);
      before.swap(loaded_);
    }
    if (list) {
      auto answer = std::make_shared<const RunList>(read_list(store));
      const std::lock_guard lock(mutex_);
      if (store != path_) continue;  // another one was opened meanwhile: read that
      if (same(*runs_, *answer))
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
