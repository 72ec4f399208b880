// Reads stored runs through a connection of its own, while others write. Opening migrates a store of an older version
// (after a backup copy) and merges spill files, if the file may be written; a newer version is read as it is, and refused
// with a text where something that is read is not there.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/store/config_diff.h"
#include "core/store/query.h"
#include "core/store/run_types.h"

namespace comera {

class Database;

struct LayerRank {  // rank of one bond at a moment
  std::string layer;
  int64_t bond = 0, rank = 0, since_step = 0;
};

// Thread: one at a time. Runs are named by their exact id, except in find(); an unknown id throws Error(not_found).
// Every other failure is Error(storage). Each call sees one consistent state of the store; calls within in_one_state() see
// the same one.
class RunReader {
 public:
  // Throws Error(not_found) when there is no file, Error(storage) when it is no sound store. `busy_s`: how long it waits
  // for a program that lets nobody read.
  explicit RunReader(const std::string& store, double busy_s = 5);
  ~RunReader();
  RunReader(RunReader&&) noexcept;

  const std::string& store() const { return path_; }
  // Why nothing is written into it: a newer version wrote it, or the rights of its file and folder; "" = it can be written,
  // as far as these tell.
  std::string read_only() const;
  // What `read` asks for is of one state of the store, whatever is written meanwhile. Not within itself.
  void in_one_state(const std::function<void()>& read) const;
  int64_t rows_given() const;  // that the store has given so far, to tell how much a reading takes

  // Newest first; one table only, so that thousands of runs list at once. Archived runs on demand.
  std::vector<RunRow> runs(bool with_archived = false) const;
  RunRow run(const std::string& id) const;
  // By id, exact name, or the beginning of one of them. Throws Error(not_found) when none or several fit; the text
  // names the nearest or the fitting runs.
  RunRow find(const std::string& text) const;
  std::string config(const std::string& id) const;  // JSON text

  std::vector<std::string> metric_names(const std::string& id) const;
  // Points with a step > after_step: a follower asks only for what is new.
  Series metric(const std::string& id, const std::string& name, int64_t after_step = -1) const;
  // Appends the points with after_step < step <= last_step. `seen` is told the step it came to after every some ten
  // thousand points; what it throws ends the reading.
  void metric(const std::string& id, const std::string& name, int64_t after_step, int64_t last_step, Series& series,
              const std::function<void(int64_t step)>& seen = {}) const;
  // Points with |their step - step| <= window.
  std::vector<MetricPoint> metric_around(const std::string& id, const std::string& name, int64_t step, int64_t window) const;
  NamedValues metrics_at(const std::string& id, int64_t step) const;
  Series wall_times(const std::string& id, int64_t after_step = -1) const;  // value: seconds since 1970
  int64_t last_step(const std::string& id) const;                           // of wall_times(); -1 = none
  // Every point of every metric, ordered by step, then by name. For exports.
  void each_metric(const std::string& id,
                   const std::function<void(int64_t step, double wall_time, const std::string& name, double value)>& visit) const;

  std::vector<LayerRank> ranks_at(const std::string& id, int64_t step) const;               // latest change at or before
  std::vector<RankRow> rank_history(const std::string& id, int64_t after_step = -1) const;  // by step, layer, bond
  std::vector<MemoryRow> memory(const std::string& id, int64_t after_step = -1) const;      // by step, purpose
  std::vector<EventRow> events(const std::string& id, int64_t after_seq = -1) const;        // by seq
  int64_t events_until(const std::string& id, int64_t seq) const;                           // how many, that one included
  std::vector<CheckpointRow> checkpoints(const std::string& id) const;                      // by step

  // A free query (query.h) on this store.
  QueryTable query(const std::string& sql, int64_t max_rows = 100'000) const { return query_store(path_, sql, max_rows); }

 private:
  int64_t key_of(const std::string& id) const;
  std::string path_;
  std::unique_ptr<Database> db_;
};

}  // namespace comera
