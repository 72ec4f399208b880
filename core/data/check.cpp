#include "core/data/check.h"

#include <algorithm>
#include <limits>

#include "core/data/glue.h"

namespace comera {
namespace {

// The value at `share` (0..1) of the way through sorted values.
int64_t quantile(const std::vector<int64_t>& sorted, double share) {
  const auto rank = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1));
  return sorted[rank];
}

void measure_texts(const GlueDataset& set, DataReport& report) {
  const int32_t unknown = set.tokenizer().unknown();
  std::vector<int64_t> lengths;
  int64_t tokens = 0, unknowns = 0;
  TextRow row;
  for (int64_t i = 0; i < report.info.rows; ++i) {
    set.text_row(i, std::numeric_limits<int32_t>::max(), row);
    lengths.push_back(static_cast<int64_t>(row.ids.size()));
    tokens += lengths.back();
    unknowns += std::count(row.ids.begin(), row.ids.end(), unknown);
    if (row.label >= 0) ++report.class_rows[static_cast<size_t>(row.label)];
  }
  std::sort(lengths.begin(), lengths.end());
  report.shortest = lengths.front();
  report.median = quantile(lengths, 0.5);
  report.percentile_90 = quantile(lengths, 0.9);
  report.percentile_99 = quantile(lengths, 0.99);
  report.longest = lengths.back();
  report.unknown_share = static_cast<double>(unknowns) / static_cast<double>(tokens);
  report.left_out = set.left_out();
}

}  // namespace

DataReport check_dataset(const DataSpec& spec) {
  DataReport report;
  report.path = find_data_file(spec);
  const std::unique_ptr<Dataset> set = open_dataset(spec);
  report.info = set->info();
  report.class_rows.assign(static_cast<size_t>(report.info.classes), 0);
  if (const auto* texts = dynamic_cast<const GlueDataset*>(set.get())) {
    measure_texts(*texts, report);
    return report;
  }
  ImageRow row;
  for (int64_t i = 0; i < report.info.rows; ++i) {
    set->image_row(i, row);
    if (row.label >= 0) ++report.class_rows[static_cast<size_t>(row.label)];
  }
  return report;
}

}  // namespace comera
