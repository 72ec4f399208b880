// What a writer wants done, as plain values: kept in memory, written to the store, or to a spill file and back.
// Doing a list of ops twice in its order gives the same as doing it once.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/base/json.h"
#include "core/store/run_types.h"
#include "core/store/sqlite.h"

namespace comera {

struct MetricsOp {
  int64_t step = 0;
  double wall_time = 0;
  std::vector<std::pair<int32_t, double>> values;  // index into a MetricNames
};
struct RankOp {
  RankRow row;
};
struct MemoryOp {
  MemoryRow row;
};
struct EventOp {
  EventRow row;
};
struct CheckpointOp {
  CheckpointRow row;
};
struct ForgetCheckpointOp {
  int64_t step = 0;
};
struct ForgetEditsOp {  // of one setting, past a step: they were overruled
  std::string path;
  int64_t step = 0;
};
struct TruncateOp {
  int64_t step = 0;
};
struct SetAsideOp {
  std::string id;               // of the run that it becomes
  std::string status, message;  // as that of this run was
  ReplacedCourse course;
};
struct SummaryOp {
  RunSummary summary;
};
struct FinishOp {
  std::string status, message;
};
using RunOp = std::variant<MetricsOp, RankOp, MemoryOp, EventOp, CheckpointOp, ForgetCheckpointOp, ForgetEditsOp, TruncateOp, SetAsideOp,
                           SummaryOp, FinishOp>;

// Names of metrics, numbered as they come: a buffered value costs 16 bytes, not a text.
class MetricNames {
 public:
  int32_t index(const std::string& name);
  const std::string& name(int32_t index) const { return names_[static_cast<size_t>(index)]; }
  int64_t size() const { return static_cast<int64_t>(names_.size()); }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> index_;
};

int64_t bytes_of(const RunOp& op);  // about what it takes in memory
Json op_to_json(const RunOp& op, const MetricNames& names);
RunOp op_from_json(const Json& json, MetricNames& names);  // throws nlohmann::json::exception when it is none

// A double that survives JSON: NaN and infinities are the texts "nan", "inf", "-inf".
Json json_of(double value);
double double_of(const Json& json);

Json start_to_json(const RunStart& start);
RunStart start_from_json(const Json& json);

// Adds the row of a run with status `running`. The caller holds a transaction. Returns its key.
int64_t insert_run(Database& db, const std::string& id, const RunStart& start, double created);
int64_t find_run(Database& db, const std::string& id);  // its key, or 0
std::string unused_run_id(Database& db);
std::string tags_text(const std::vector<std::string>& tags);  // as stored
std::vector<std::string> tags_of(const std::string& text);

// Prepared statements that do ops for one run. Each call must stand in a transaction.
class RunTables {
 public:
  RunTables(Database& db, int64_t run);
  void apply(const RunOp& op, const MetricNames& names);

 private:
  void apply_one(const MetricsOp& op, const MetricNames& names);
  void set_aside(const SetAsideOp& op);
  std::vector<int64_t> all_metrics();
  int64_t metric_key(const std::string& name);

  Database& db_;
  int64_t run_;
  std::unordered_map<std::string, int64_t> metric_keys_;
  Statement metric_, step_, rank_, memory_, event_, checkpoint_, forget_, forget_edits_, summary_, finish_;
};

}  // namespace comera
