// One run being imported: gathers its rows inside the caller's transaction.
#pragma once
#include <memory>
#include <string>

#include "core/store/run_ops.h"

namespace comera {

class RunImport {
 public:
  // `source` is noted with the run.
  RunImport(Database& db, const std::string& name, const std::string& source);
  // `wall_time` may be NaN.
  void add(int64_t step, double wall_time, const NamedValues& values);
  int64_t points() const { return points_; }
  // Completes the row in `runs`; returns the id.
  std::string finish();

 private:
  Database& db_;
  std::string id_;
  int64_t run_ = 0, points_ = 0, last_step_ = 0;
  double first_time_ = kUnknown, last_time_ = kUnknown;
  MetricNames names_;
  std::unique_ptr<RunTables> tables_;
};

}  // namespace comera
