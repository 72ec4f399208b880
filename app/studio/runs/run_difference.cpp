#include "app/studio/runs/run_difference.h"

#include <cmath>
#include <map>
#include <string>

namespace comera::studio {
namespace {

// The quantity of the comparison for a field of the list; null = the field has none.
const Quantity* quantity_of_field(const std::string& id) {
  static const std::map<std::string, Quantity> kQuantities = [] {
    std::map<std::string, Quantity> known;
    for (Quantity& quantity : results())
      if (quantity.better != Better::none) known.emplace(quantity.id == "val_loss" ? "loss" : quantity.id, std::move(quantity));
    return known;
  }();
  const auto found = kQuantities.find(id);
  return found == kQuantities.end() ? nullptr : &found->second;
}

bool differ(const std::string& a, const std::string& b) { return !a.empty() && !b.empty() && a != b; }

}  // namespace

const RunField& judged_field(const RunTable& table, const RunRow& baseline) {
  const RunField* sorted = find_run_field(table.sort);
  if (sorted && sorted->number && quantity_of_field(sorted->id)) return *sorted;
  return *find_run_field(std::isfinite(baseline.summary.val_accuracy) || !std::isfinite(baseline.summary.val_loss) ? "accuracy" : "loss");
}

RunDifference difference_to(const RunField& field, const RunRow& row, const RunRow& baseline) {
  const std::string id = field.id;
  RunDifference difference{delta_of(*quantity_of_field(id), field.number(row), field.number(baseline))};
  const bool of_data = id == "accuracy" || id == "loss" || id == "train_loss", of_time = id == "step_ms" || id == "time";
  if (difference.delta.verdict == Delta::unknown) return difference;
  if (of_data && differ(row.data_fingerprint, baseline.data_fingerprint)) difference.incomparable = "different data";
  if (of_time && differ(row.device, baseline.device)) difference.incomparable = "different device";
  return difference;
}

std::string difference_text(const RunTable& table, const RunRow& row) {
  if (!table.baseline_row || row.id == table.baseline_row->id) return table.baseline_row ? "baseline" : "";
  const RunDifference difference = difference_to(judged_field(table, *table.baseline_row), row, *table.baseline_row);
  return difference.incomparable ? std::string(difference.incomparable) + ". " + kIncomparable : difference.delta.text;
}

}  // namespace comera::studio
