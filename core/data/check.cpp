#include "core/data/check.h"

#include <algorithm>
#include <limits>

namespace comera {
namespace {

// The value at `share` (0..1) of the way through sorted values.
int64_t quantile(const std::vector<int64_t>& sorted, double share) {
  const auto rank = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1));
  return sorted[rank];
}

}  // namespace

DataReport check_dataset(const DataSpec& spec) {
  DataReport report;
  report.path = find_data_file(spec);
  const std::unique_ptr<Dataset> set = open_dataset(spec);
  const DatasetInfo& info = report.info = set->info();
  report.class_rows.assign(static_cast<size_t>(info.classes), 0);
  std::vector<int64_t> lengths;
  int64_t tokens = 0, unknowns = 0;
  Columns row;
  for (int64_t i = 0; i < info.rows; ++i) {
    set->read(i, std::numeric_limits<int32_t>::max(), row);
    for (const int32_t label : row.ints.at("labels"))
      if (label >= 0 && label < info.classes) ++report.class_rows[static_cast<size_t>(label)];
    if (!info.fields.has_tokens()) continue;
    const std::vector<int32_t>& ids = row.ints.at("ids");
    lengths.push_back(static_cast<int64_t>(ids.size()));
    tokens += lengths.back();
    unknowns += std::count(ids.begin(), ids.end(), info.unknown_token);
  }
  if (lengths.empty()) return report;
  std::sort(lengths.begin(), lengths.end());
  report.shortest = lengths.front();
  report.median = quantile(lengths, 0.5);
  report.percentile_90 = quantile(lengths, 0.9);
  report.percentile_99 = quantile(lengths, 0.99);
  report.longest = lengths.back();
  report.unknown_share = static_cast<double>(unknowns) / static_cast<double>(tokens);
  return report;
}

}  // namespace comera
