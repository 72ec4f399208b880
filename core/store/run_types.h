// Plain data of stored runs, shared by writer, reader, export and import. Times are seconds since 1970 (UTC).
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace comera {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// What is known when a run begins. `config` is the resolved config as JSON text.
struct RunStart {
  std::string name;
  std::string config = "{}";
  int64_t seed = 0;
  std::string device;
  std::string data_fingerprint;
  std::string parent;     // id of the run it was forked from; "" = none
  int64_t fork_step = 0;  // the parent's step it continues from
  int64_t total_steps = 0;
  std::vector<std::string> tags;
};

// The columns of a fast list of runs: the latest values. NaN = not known (stored as NULL). A loss that became NaN is
// not told apart here; the status `diverged` and the metrics table say it.
struct RunSummary {
  int64_t step = 0, total_steps = 0;
  std::string stage;  // "early", "late"; "" when the method has no stages
  double train_loss = kUnknown, val_loss = kUnknown, val_accuracy = kUnknown;
  double entries = kUnknown;      // trained values that are alive
  double bytes = kUnknown;        // of those
  double dense_bytes = kUnknown;  // of the dense model they stand for
  double compression = kUnknown;
  double peak_bytes = kUnknown;  // memory of training
  double step_ms = kUnknown;     // median
};

// One row of the list of runs.
struct RunRow {
  std::string id;  // "r-xxxxxx"
  std::string name;
  double created = 0;
  // running | interrupted | finished | stopped | failed | diverged. Computed: a stored "running" without a living
  // writer (fresh heartbeat, process alive, same boot) is `interrupted`.
  std::string status;
  std::string message;   // why it failed; usually "". For want of memory: it begins with kOutOfMemory
  int64_t pid = 0;       // of the last writer
  double heartbeat = 0;  // last sign of life
  double active_s = 0;   // seconds a writer was attached, over all resumes
  int64_t seed = 0;
  std::string device, data_fingerprint;
  std::string parent;
  int64_t fork_step = 0;
  RunSummary summary;
  std::vector<std::string> tags;
  std::string notes;
  bool archived = false;
};

inline constexpr std::string_view kOutOfMemory = "out of memory";
inline bool failed_for_memory(const RunRow& run) { return run.status == "failed" && run.message.starts_with(kOutOfMemory); }

// A run that ended after a few steps is told by this word among its tags. It is computed, not stored: one that goes on loses
// it. What was imported was trained elsewhere.
inline constexpr const char* kShort = "short";
inline constexpr int64_t kShortSteps = 10;  // it has fewer
inline bool is_short(const RunRow& run) {
  const int64_t trained = run.summary.step - (run.parent.empty() ? 0 : run.fork_step);
  return trained < kShortSteps && run.status != "running" && run.device != "imported" &&
         std::find(run.tags.begin(), run.tags.end(), "imported") == run.tags.end();
}
// Those that are stored, and that word.
inline std::vector<std::string> all_tags(const RunRow& run) {
  std::vector<std::string> tags = run.tags;
  if (is_short(run) && std::find(tags.begin(), tags.end(), kShort) == tags.end()) tags.emplace_back(kShort);
  return tags;
}

using NamedValues = std::vector<std::pair<std::string, double>>;

struct Series {  // one metric of one run, by rising step
  std::vector<int64_t> steps;
  std::vector<double> values;
};

struct MetricPoint {
  int64_t step = 0;
  double wall_time = kUnknown;
  double value = 0;
};

// A bond has this rank from this step on. Bonds are counted as the writer counts them.
struct RankRow {
  int64_t step = 0;
  std::string layer;
  int64_t bond = 0, rank = 0;
};

struct MemoryRow {  // from this step on
  int64_t step = 0;
  std::string purpose;
  int64_t bytes = 0;
};

struct EventRow {
  int64_t seq = 0;  // order within the run, rising
  int64_t step = 0;
  std::string kind;  // start resume stop edit stage truncation regrowth checkpoint alert ...
  double time = 0;
  std::string body;  // JSON text
};

struct CheckpointRow {
  int64_t step = 0;
  std::string path;
  int64_t bytes = 0;
  std::string kind;
  double time = 0;
};

// The course that a run took past a step, when it goes on from there another way: from then on a run of its own, as a fork
// at that step would have become it.
struct ReplacedCourse {
  int64_t step = 0;
  RunStart start;            // as of that fork
  std::string event = "{}";  // body of its event `start`
  CheckpointRow checkpoint;  // of its first state; path "" = there is none, and it cannot go on
};
// The tag of such a run.
inline constexpr std::string_view kReplaced = "replaced";

}  // namespace comera
