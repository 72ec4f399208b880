#include "core/store/import_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/store/process.h"

namespace comera {

RunImport::RunImport(Database& db, const std::string& name, const std::string& source) : db_(db), id_(unused_run_id(db)) {
  RunStart start;
  start.name = name;
  start.tags = {"imported"};
  run_ = insert_run(db, id_, start, now_s());
  Statement(db, "UPDATE runs SET status = 'finished', notes = ? WHERE run = ?")
      .bind("imported from " + std::filesystem::absolute(source).string(), run_)
      .run();
  tables_ = std::make_unique<RunTables>(db, run_);
}

void RunImport::add(int64_t step, double wall_time, const NamedValues& values) {
  MetricsOp op{step, wall_time, {}};
  for (const auto& [name, value] : values) op.values.emplace_back(names_.index(name), value);
  tables_->apply(op, names_);
  points_ += static_cast<int64_t>(values.size());
  last_step_ = std::max(last_step_, step);
  first_time_ = std::fmin(first_time_, wall_time);  // fmin and fmax leave NaN out
  last_time_ = std::fmax(last_time_, wall_time);
}

std::string RunImport::finish() {
  const double begin = std::isnan(first_time_) ? now_s() : first_time_, end = std::isnan(last_time_) ? begin : last_time_;
  Statement(db_, "UPDATE runs SET created = ?, heartbeat = ?, active_s = ?, step = ?, total_steps = ? WHERE run = ?")
      .bind(begin, end, end - begin, last_step_, last_step_, run_)
      .run();
  return id_;
}

}  // namespace comera
