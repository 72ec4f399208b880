#include "core/session/run_rows.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace comera {
namespace {

MetricColumn column_of(Series series) {
  MetricColumn column;
  for (const int64_t step : series.steps) column.steps.push_back(step);
  *column.values = std::move(series.values);
  return column;
}

}  // namespace

RunRows read_rows(const RunReader& reader, const std::string& run, const RunPlace& after,
                  const std::function<void(double share)>& progress) {
  RunRows rows;
  const int64_t before = reader.rows_given();
  reader.in_one_state([&] {
    rows.row = reader.run(run);
    const std::string& id = rows.row.id;
    rows.last_step = reader.last_step(id);
    rows.events_before = reader.events_until(id, after.event);
    rows.events = reader.events(id, after.event);
    rows.times = column_of(reader.wall_times(id, after.time));
    const std::vector<std::string> names = reader.metric_names(id);
    for (size_t i = 0; i < names.size(); ++i) {
      const auto known = after.metrics.find(names[i]);
      const int64_t from = known == after.metrics.end() ? -1 : known->second;
      Series more;
      reader.metric(id, names[i], from, std::numeric_limits<int64_t>::max(), more, [&](int64_t step) {
        const double share = static_cast<double>(step - from) / static_cast<double>(std::max<int64_t>(1, rows.last_step - from));
        if (progress) progress((static_cast<double>(i) + std::min(1.0, share)) / static_cast<double>(names.size()));
      });
      if (!more.steps.empty()) rows.metrics[names[i]] = column_of(std::move(more));
    }
    rows.ranks = reader.rank_history(id, after.rank - 1);
    rows.memory = reader.memory(id, after.memory - 1);
    rows.checkpoints = reader.checkpoints(id);
  });
  rows.read = reader.rows_given() - before;
  return rows;
}

}  // namespace comera
