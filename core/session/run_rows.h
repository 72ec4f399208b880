// The rows of a stored run that came after those that are known, all of one state of the store: whoever follows a run that
// still trains reads what is new, not the whole run.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/rising.h"
#include "core/store/run_reader.h"

namespace comera {

struct MetricColumn {  // one metric, by step
  Rising<int64_t> steps;
  std::shared_ptr<std::vector<double>> values = std::make_shared<std::vector<double>>();  // never changed while it is shared
};

// How far a run was read; as it is made: nothing of it.
struct RunPlace {
  int64_t event = -1;                      // number of the last one
  int64_t time = -1;                       // the last step with a time
  int64_t rank = -1, memory = -1;          // the step of the last change
  std::map<std::string, int64_t> metrics;  // the last step of each
};

struct RunRows {
  RunRow row;
  int64_t last_step = -1;     // with a time, of all that are stored; -1 = none
  int64_t events_before = 0;  // how many are stored up to the place: some go, as edits that waited for their step
  std::map<std::string, MetricColumn> metrics;
  MetricColumn times;  // when each step was done
  // Those of the last step that was read come again, since the changes of a step may be stored in two parts.
  std::vector<RankRow> ranks;
  std::vector<MemoryRow> memory;
  std::vector<EventRow> events;
  std::vector<CheckpointRow> checkpoints;  // all of them: they are few, and some go
  int64_t read = 0;                        // rows that the store gave for this
};

// What is stored of a run after a place. `progress` is told now and then which share of the metrics is read, from 0 to 1;
// what it throws ends the reading. Throws as RunReader.
RunRows read_rows(const RunReader& reader, const std::string& run, const RunPlace& after = {},
                  const std::function<void(double share)>& progress = {});

}  // namespace comera
