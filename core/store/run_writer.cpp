#include "core/store/run_writer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <variant>

#include "core/base/error.h"
#include "core/store/process.h"
#include "core/store/run_ops.h"
#include "core/store/schema.h"
#include "core/store/spill.h"
#include "core/store/writer_lock.h"

namespace comera {

// Metric values that were dropped, and the steps that they are of.
struct LostMetrics {
  int64_t values = 0, first = 0, last = 0;
  std::string text() const { return std::to_string(values) + " metric values were lost for want of memory"; }
};

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

std::string text_of(const Error& error) { return std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why()); }

// Metric values are what fills memory, and a curve with a gap is still a curve: they go first.
void drop_metrics(std::vector<RunOp>& ops, LostMetrics& lost) {
  std::erase_if(ops, [&](const RunOp& op) {
    const MetricsOp* metrics = std::get_if<MetricsOp>(&op);
    if (!metrics) return false;
    lost.first = lost.values == 0 ? metrics->step : std::min(lost.first, metrics->step);
    lost.last = lost.values == 0 ? metrics->step : std::max(lost.last, metrics->step);
    lost.values += static_cast<int64_t>(metrics->values.size());
    return true;
  });
}

constexpr const char* kNoMemory = "out of memory";  // short: assigning it takes none

int64_t bytes_of(const std::vector<RunOp>& ops) {
  int64_t sum = 0;
  for (const RunOp& op : ops) sum += comera::bytes_of(op);
  return sum;
}

}  // namespace

struct RunWriter::Impl {
  Impl(const std::string& store, RunWriterOptions options) : store(store), options(options) {}

  // -- constant after construction
  const std::string store;
  const RunWriterOptions options;
  const std::string owner = random_text(16);  // whoever resumes the run writes another one: then this writer stops
  std::string id;
  std::string spare_id, status_before, message_before;  // of a run that is continued
  double active_before = 0;                             // active_s of earlier writers
  Clock::time_point attached = Clock::now();

  // -- guarded by mutex
  mutable std::mutex mutex;
  std::condition_variable wake, flushed;
  MetricNames names;
  std::vector<RunOp> queue;
  std::optional<RunSummary> summary;
  int64_t next_seq = 0;
  bool finished = false, stop = false;
  uint64_t flush_wanted = 0, flush_done = 0;
  std::string problem;
  bool stored = true;  // all that was given up to flush_done
  double saved_at = 0;

  // -- the writer's thread only
  std::unique_ptr<Database> db;
  std::optional<RunTables> tables;
  std::optional<Spill> spill;
  std::unique_ptr<WriterLock> writer_lock;  // null: it could not be taken, and the process number counts
  RunStart start;
  double created = 0;
  int64_t key = 0;
  MetricNames my_names;
  std::vector<RunOp> pending;  // not stored yet, oldest first
  int64_t pending_bytes = 0;
  LostMetrics lost;
  std::string failure;    // of the last attempt
  bool lost_run = false;  // another program writes it now
  bool ended = false;     // a finish has been seen: no more heartbeats
  Clock::time_point ended_at{}, last_beat{}, failing_since{}, next_try{};

  std::thread thread;

  void push(RunOp op) {
    const std::lock_guard lock(mutex);
    queue.push_back(std::move(op));
  }
  void begin(const RunStart& given);
  void resume(const std::string& run_id);
  void take_ownership(const std::string& status_sql);
  void launch();
  void loop();
  void take_summary();
  void take();
  void attempt();
  void fails(const std::string& why);
  void connect();
  void store_pending();
  void keep_elsewhere(bool last);
  EventOp alert_of_loss();
  void discard();
  std::string problem_text() const;
};

// ---- beginning, on the caller's thread ---------------------------------------------------------------------------

void RunWriter::Impl::begin(const RunStart& given) {
  start = given;
  db = open_store(store, StoreAccess::create);
  merge_spills(*db);
  Transaction transaction(*db);
  id = unused_run_id(*db);
  created = now_s();
  key = insert_run(*db, id, start, created);
  take_ownership("");
  transaction.commit();
}

void RunWriter::Impl::resume(const std::string& run_id) {
  id = run_id;
  db = open_store(store, StoreAccess::write);
  merge_spills(*db);
  Transaction transaction(*db);
  Statement run(
      *db,
      "SELECT run, status, heartbeat, pid, boot_id, active_s, created, name, config, seed, device, data_fingerprint, parent, fork_step, "
      "total_steps, tags, message FROM runs WHERE id = ?");
  if (!run.bind(id).step())
    throw Error(ErrorCode::not_found, "there is no run " + id + " in " + store, "", "comera runs list shows the runs");
  if (run.text(1) == "running" && writer_alive(store, run.integer(0), run.real(2), run.integer(3), run.text(4)))
    throw Error(ErrorCode::storage, "run " + id + " is being written", "process " + std::to_string(run.integer(3)) + " trains it",
                "stop it first, or fork the run");
  key = run.integer(0);
  active_before = run.real(5);
  created = run.real(6);
  start = {run.text(7),  run.text(8),     run.integer(9),  run.text(10),         run.text(11),
           run.text(12), run.integer(13), run.integer(14), tags_of(run.text(15))};
  status_before = run.text(1) == "running" ? "interrupted" : run.text(1);
  message_before = run.text(16);
  run.reset();
  Statement last(*db, "SELECT coalesce(max(seq), -1) FROM events WHERE run = ?");
  last.bind(key).step();
  next_seq = last.integer(0) + 1;
  last.reset();
  spare_id = unused_run_id(*db);
  take_ownership(", status = 'running', message = ''");
  transaction.commit();
}

void RunWriter::Impl::take_ownership(const std::string& more) {
  if (auto taken = WriterLock::take(store, key)) writer_lock = std::move(taken);
  Statement(*db, "UPDATE runs SET owner = ?, pid = ?, boot_id = ?, heartbeat = ?" + more + " WHERE run = ?")
      .bind(owner, own_pid(), boot_id(), now_s(), key)
      .run();
}

void RunWriter::Impl::launch() {
  saved_at = now_s();
  last_beat = Clock::now();
  db.reset();  // the thread opens its own connection, which waits for locks a shorter time
  spill.emplace(store, id, start, created);
  thread = std::thread([this] { loop(); });
}

// ---- the writer's thread -----------------------------------------------------------------------------------------

void RunWriter::Impl::loop() {
  for (bool stopping = false; !stopping;) {
    uint64_t ticket = 0;
    {
      std::unique_lock lock(mutex);
      wake.wait_for(lock, Seconds(options.commit_s), [&] { return stop || flush_wanted > flush_done; });
      stopping = stop;
      ticket = flush_wanted;
    }
    const auto now = Clock::now();
    const bool urgent = stopping || ticket > flush_done;  // flush_done is written by this thread alone
    bool due = urgent;
    std::string text;
    try {
      {
        const std::lock_guard lock(mutex);
        take();
      }
      due = urgent || !pending.empty() || (!ended && now - last_beat >= Seconds(options.heartbeat_s));
      if (lost_run)
        discard();
      else if (due && (urgent || failure.empty() || now >= next_try))
        attempt();
      if (!failure.empty() && !lost_run) keep_elsewhere(stopping || ended);
      text = problem_text();
    } catch (const std::bad_alloc&) {
      drop_metrics(pending, lost);
      pending_bytes = bytes_of(pending);
      fails(kNoMemory);
      text = kNoMemory;
      const std::lock_guard lock(mutex);
      drop_metrics(queue, lost);
    }
    {
      const std::lock_guard lock(mutex);
      problem.swap(text);
      stored = failure.empty();
      if (stored && due) saved_at = now_s();
      flush_done = ticket;
    }
    flushed.notify_all();
  }
}

// The newest summary takes its place in the order. The caller holds the mutex.
void RunWriter::Impl::take_summary() {
  if (summary) queue.push_back(SummaryOp{*summary});
  summary.reset();
}

// Moves what was given into `pending`; where there is no memory for it, all stays where it is. The caller holds the mutex.
void RunWriter::Impl::take() {
  for (int64_t i = my_names.size(); i < names.size(); ++i) my_names.index(names.name(static_cast<int32_t>(i)));
  take_summary();
  const size_t before = pending.size();
  pending.insert(pending.end(), std::make_move_iterator(queue.begin()), std::make_move_iterator(queue.end()));
  queue.clear();
  for (size_t i = before; i < pending.size(); ++i) {
    pending_bytes += comera::bytes_of(pending[i]);
    if (!ended && std::holds_alternative<FinishOp>(pending[i])) {
      ended = true;
      ended_at = Clock::now();
    }
  }
}

void RunWriter::Impl::attempt() {
  try {
    connect();
    if (!writer_lock && !ended) writer_lock = WriterLock::take(store, key);  // an earlier writer may have held it a while
    store_pending();
    failure.clear();
  } catch (const Error& error) {
    fails(text_of(error));
  } catch (const std::bad_alloc&) {
    fails(kNoMemory);
  } catch (const std::exception& error) {
    fails(error.what());
  }
}

void RunWriter::Impl::fails(const std::string& why) {
  if (failure.empty()) failing_since = Clock::now();
  failure = why;
  // Ids of metrics seen in the transaction that failed are not valid any more, and a vanished file heals by opening it again.
  tables.reset();
  db.reset();
  next_try = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(options.retry_s));
}

void RunWriter::Impl::connect() {
  if (db && !db->file_is_there()) {  // SQLite would go on writing into the deleted file
    tables.reset();
    db.reset();
  }
  if (db) return;
  db = open_store(store, StoreAccess::write, options.busy_s);
  key = find_run(*db, id);
  if (key == 0) {  // another store lies there now: the run continues in it
    Transaction transaction(*db);
    key = insert_run(*db, id, start, created);
    take_ownership("");
    transaction.commit();
  }
  // The file of locks may have gone with the store. One that this writer holds already is not given to it twice.
  if (auto taken = WriterLock::take(store, key)) writer_lock = std::move(taken);
  tables.emplace(*db, key);
}

void RunWriter::Impl::store_pending() {
  Transaction transaction(*db);
  const double active = active_before + Seconds((ended ? ended_at : Clock::now()) - attached).count();
  Statement(*db, "UPDATE runs SET heartbeat = ?, active_s = ? WHERE run = ? AND owner = ?").bind(now_s(), active, key, owner).run();
  if (db->changed() == 0) {
    lost_run = true;
    throw Error(ErrorCode::storage, "run " + id + " was purged or is continued by another program",
                "this program records nothing more of it");
  }
  spill->merge_into(*db);  // older than what is pending
  for (const RunOp& op : pending) tables->apply(op, my_names);
  if (lost.values > 0) tables->apply(alert_of_loss(), my_names);
  transaction.commit();
  spill->remove();
  pending.clear();
  pending_bytes = 0;
  lost = {};
  if (ended) writer_lock.reset();
  last_beat = Clock::now();
}

// Of the values that were lost, so that the gap is explained when the banner is gone.
EventOp RunWriter::Impl::alert_of_loss() {
  const std::string text = lost.text() + ", steps " + std::to_string(lost.first) + " to " + std::to_string(lost.last);
  const std::lock_guard lock(mutex);
  return {{next_seq++, lost.last, "alert", now_s(), Json{{"kind", "store"}, {"text", text}}.dump()}};
}

// The store fails: rows go to the spill file when they have waited long enough, are too many, or it is the last chance.
void RunWriter::Impl::keep_elsewhere(bool last) {
  if (pending.empty()) return;
  const bool long_enough = Clock::now() - failing_since >= Seconds(options.spill_after_s);
  if (!last && !spill->exists() && !long_enough && pending_bytes <= options.ram_bytes) return;
  if (spill->append(pending, my_names)) {
    pending.clear();
  } else if (pending_bytes > options.hard_ram_bytes) {
    drop_metrics(pending, lost);
  }
  pending_bytes = bytes_of(pending);
}

void RunWriter::Impl::discard() {
  writer_lock.reset();
  pending.clear();
  pending_bytes = 0;
}

std::string RunWriter::Impl::problem_text() const {
  std::string text = failure;
  if (!failure.empty() && !lost_run) {
    text += ended ? "; " : "; training continues, ";
    text += spill->exists() ? "rows are kept in " + spill->paths() : "rows wait in memory";
    if (!spill->problem().empty()) text += " (" + spill->problem() + ")";
    if (lost.values > 0) text += "; " + lost.text();
  }
  return text;
}

// ---- RunWriter ---------------------------------------------------------------------------------------------------

RunWriter::RunWriter(const std::string& store, const RunStart& start, RunWriterOptions options)
    : impl_(std::make_unique<Impl>(store, options)) {
  impl_->begin(start);
  impl_->launch();
}

RunWriter::RunWriter(const std::string& store, const std::string& run_id, RunWriterOptions options)
    : impl_(std::make_unique<Impl>(store, options)) {
  impl_->resume(run_id);
  impl_->launch();
}

RunWriter::~RunWriter() {
  {
    const std::lock_guard lock(impl_->mutex);
    try {
      if (!impl_->finished) impl_->queue.push_back(FinishOp{"interrupted", ""});
    } catch (const std::exception&) {  // out of memory: the heartbeat that stops says the same
    }
    impl_->stop = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
}

const std::string& RunWriter::run_id() const { return impl_->id; }
const std::string& RunWriter::spare_id() const { return impl_->spare_id; }

void RunWriter::metrics(int64_t step, const NamedValues& values) {
  MetricsOp op{step, now_s(), {}};
  op.values.reserve(values.size());
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [name, value] : values) op.values.emplace_back(impl_->names.index(name), value);
  impl_->queue.push_back(std::move(op));
}

void RunWriter::rank(int64_t step, const std::string& layer, int64_t bond, int64_t rank) { impl_->push(RankOp{{step, layer, bond, rank}}); }
void RunWriter::memory(int64_t step, const std::string& purpose, int64_t bytes) { impl_->push(MemoryOp{{step, purpose, bytes}}); }

void RunWriter::event(int64_t step, const std::string& kind, const std::string& body) {
  const std::lock_guard lock(impl_->mutex);
  impl_->queue.push_back(EventOp{{impl_->next_seq++, step, kind, now_s(), body}});
}

void RunWriter::checkpoint(int64_t step, const std::string& path, int64_t bytes, const std::string& kind) {
  impl_->push(CheckpointOp{{step, path, bytes, kind, now_s()}});
}

void RunWriter::forget_checkpoint(int64_t step) { impl_->push(ForgetCheckpointOp{step}); }

void RunWriter::forget_edits(const std::string& path, int64_t after_step) { impl_->push(ForgetEditsOp{path, after_step}); }

void RunWriter::truncate_after(int64_t step) {
  const std::lock_guard lock(impl_->mutex);
  impl_->take_summary();  // one given before must not come after
  impl_->queue.push_back(TruncateOp{step});
}

void RunWriter::set_aside(ReplacedCourse course) {
  impl_->push(SetAsideOp{impl_->spare_id, impl_->status_before, impl_->message_before, std::move(course)});
}

void RunWriter::summary(const RunSummary& summary) {
  const std::lock_guard lock(impl_->mutex);
  impl_->summary = summary;
}

void RunWriter::finish(const std::string& status, const std::string& message) {
  const std::lock_guard lock(impl_->mutex);
  impl_->queue.push_back(FinishOp{status, message});
  impl_->finished = true;
}

bool RunWriter::flush() {
  std::unique_lock lock(impl_->mutex);
  const uint64_t ticket = ++impl_->flush_wanted;
  impl_->wake.notify_all();
  impl_->flushed.wait(lock, [&] { return impl_->flush_done >= ticket; });
  return impl_->stored;
}

std::string RunWriter::store_problem() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->problem;
}

double RunWriter::saved_at() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->saved_at;
}

}  // namespace comera
