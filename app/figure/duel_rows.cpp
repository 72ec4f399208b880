#include "app/figure/duel_rows.h"

#include <algorithm>
#include <filesystem>

#include "core/store/run_reader.h"

namespace comera {

std::vector<DuelRow> duel_rows(const std::string& store, const std::vector<DuelMethod>& methods, const std::string& data,
                               const std::string& imported) {
  std::vector<DuelRow> rows;
  if (!std::filesystem::exists(store)) {
    for (const DuelMethod& method : methods) rows.push_back({&method, {}});
    return rows;
  }
  const RunReader reader(store);
  const DuelRuns stored(reader, data, imported);
  std::vector<ParetoPoint> points;
  for (const DuelMethod& method : methods) {
    rows.push_back({&method, duel_result(reader, stored, method)});
    if (rows.back().placed()) points.push_back(rows.back().point());
  }
  const std::vector<ParetoPoint> front = pareto_front(points);
  for (DuelRow& row : rows)
    row.on_front = row.placed() && std::any_of(front.begin(), front.end(), [&, at = row.point()](const ParetoPoint& point) {
                     return point.cost == at.cost && point.score == at.score;
                   });
  return rows;
}

std::vector<std::string> runs_to_compare(const std::vector<DuelRow>& rows, size_t most) {
  std::vector<std::string> front, others;
  for (const DuelRow& row : rows)
    for (const RunRow& run : row.result.runs)
      if (run.summary.step > 0) {
        (row.on_front ? front : others).push_back(run.id);
        break;
      }
  front.insert(front.end(), others.begin(), others.end());
  if (front.size() > most) front.resize(most);
  return front;
}

}  // namespace comera
