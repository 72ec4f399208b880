#include "app/studio/compare/run_groups.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "app/studio/compare/compare.h"

namespace comera::studio {
namespace {

// All settings and edits that determine the results, except the seed.
std::string all_but_seed(const ComparedRun& run) {
  std::string text;
  for (const auto& [path, value] : run.config)
    if (path != "train.seed" && path != "name") text += path + "=" + value + "\n";
  for (const Edit& edit : run.view->edits) text += std::to_string(edit.step) + " " + edit.path + "=" + edit.value + "\n";
  return text;
}

std::string setting_text(const ComparedRun& run, const std::string& path) {
  if (has_no_use_of(run, path)) return path + " not used";  // the default of an unused setting does not count as a value
  const std::string value = setting_of(run, path);
  if (value.empty()) return path + " not set";
  return path + (value.starts_with("->") ? " " : " = ") + unquoted(value);
}

// Value of a run for a grouping; equal values form a group. nullopt: not known.
std::optional<std::string> value_of(const ComparedRun& run, const std::string& by) {
  if (by.starts_with(kByTag)) {
    if (!run.tags) return std::nullopt;
    return std::find(run.tags->begin(), run.tags->end(), by.substr(std::strlen(kByTag))) != run.tags->end() ? by : "not " + by;
  }
  if (by.empty() || !run.read() || run.config.empty()) return std::nullopt;
  return by == kBySeed ? all_but_seed(run) : setting_text(run, by);
}

std::vector<RunGroup> alone(const Compare& compare) {
  std::vector<RunGroup> groups;
  for (size_t i = 0; i < compare.runs.size(); ++i) groups.push_back({{i}, label_of(compare, *compare.runs[i])});
  return groups;
}

std::vector<RunGroup> groups_by(const Compare& compare, const std::string& by) {
  std::vector<RunGroup> groups;
  std::vector<std::optional<std::string>> values;  // one per group
  for (size_t i = 0; i < compare.runs.size(); ++i) {
    const std::optional<std::string> value = value_of(*compare.runs[i], by);
    const auto known = value ? std::find(values.begin(), values.end(), value) : values.end();
    if (known != values.end()) {
      groups[static_cast<size_t>(known - values.begin())].runs.push_back(i);
      continue;
    }
    const bool named = value && by != kBySeed;
    groups.push_back({{i}, named ? *value : label_of(compare, *compare.runs[i]), named ? "run" : ""});
    values.push_back(value);
  }
  if (by == kBySeed)
    for (RunGroup& group : groups)
      if (group.runs.size() > 1) group.each = "seed";
  return groups;
}

// Whether the grouping separates the runs; by seed: whether any runs differ only in the seed.
bool parts(const std::vector<RunGroup>& groups, const std::string& by) {
  const auto together = std::count_if(groups.begin(), groups.end(), [](const RunGroup& group) { return group.together(); });
  return together >= (by == kBySeed ? 1 : 2);
}

struct Member {
  const Curve* curve;
  StepAxis axis;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values, double mean) {
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.size() > 1 ? std::sqrt(squares / static_cast<double>(values.size() - 1)) : 0;
}

void compute(const std::vector<Member>& members, GroupMiddle middle, GroupBand band, GroupCurve& group) {
  double from = -INFINITY, to = INFINITY;
  for (const Member& member : members) {
    if (member.curve->empty()) return;
    from = std::max(from, member.axis.at(member.curve->x().front()));
    to = std::min(to, member.axis.at(member.curve->x().back()));
  }
  std::vector<double> values;
  for (const double step : members[0].curve->x()) {
    const double x = members[0].axis.at(step);
    if (!(x >= from && x <= to) || (!group.middle.empty() && x <= group.middle.x().back())) continue;
    values.clear();
    // The offset compensates for rounding when a step is converted to the axis and back.
    for (const Member& member : members) values.push_back(member.curve->at(member.axis.step(x) + 1e-6));
    if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); })) continue;
    double low = *std::min_element(values.begin(), values.end()), high = *std::max_element(values.begin(), values.end());
    if (band == GroupBand::deviation) {
      const double mean = mean_of(values), deviation = deviation_of(values, mean);
      low = mean - deviation;
      high = mean + deviation;
    }
    group.middle.append(x, middle_of(values, middle));
    group.low.append(x, low);
    group.high.append(x, high);
  }
}

}  // namespace

const char* name_of(GroupMiddle middle) { return middle == GroupMiddle::mean ? "mean" : "median"; }
const char* name_of(GroupBand band) { return band == GroupBand::extremes ? "lowest to highest" : "standard deviation"; }

double middle_of(std::vector<double> values, GroupMiddle middle) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (middle == GroupMiddle::mean) return mean_of(values);
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<RunGroup> run_groups(const Compare& compare) {
  if (compare.group_by.empty() || !compare.over.empty()) return alone(compare);
  std::vector<RunGroup> groups = groups_by(compare, compare.group_by);
  return parts(groups, compare.group_by) ? groups : alone(compare);
}

std::string legend_of(const RunGroup& group, size_t runs) {
  if (!group.together()) return group.title;
  return group.title + " (" + std::to_string(runs) + " " + group.each + (runs == 1 ? ")" : "s)");
}

std::vector<std::string> group_choices(const Compare& compare) {
  std::vector<std::string> all = {kBySeed};
  for (const SettingRow& row : settings_of(compare.runs))
    if (!row.same && row.path != "name") all.push_back(row.path);
  std::set<std::string> tags;
  for (const auto& run : compare.runs)
    if (run->tags) tags.insert(run->tags->begin(), run->tags->end());
  for (const std::string& tag : tags)
    if (slot_of_tags({tag}) < 0) all.push_back(kByTag + tag);  // colour tags have no meaning
  std::erase_if(all, [&](const std::string& by) { return !parts(groups_by(compare, by), by); });
  return all;
}

void choose_next_group(Compare& compare) {
  const std::vector<std::string> all = group_choices(compare);
  const auto now = std::find(all.begin(), all.end(), compare.group_by);
  if (now == all.end())
    compare.group_by = compare.group_by.empty() && !all.empty() ? all.front() : "";
  else
    compare.group_by = now + 1 == all.end() ? "" : *(now + 1);
}

const GroupCurve& group_curve(Compare& compare, const std::vector<size_t>& runs, const std::string& metric, bool smooth) {
  std::string key = metric;
  std::string made_of = std::string(name_of(compare.axis)) + (smooth ? std::to_string(compare.plots.smoothing) : "") +
                        std::to_string(static_cast<int>(compare.plots.smoothing_kind)) + "/" + name_of(compare.group_middle) + "/" +
                        name_of(compare.group_band);
  for (const size_t i : runs) {
    const ComparedRun& run = *compare.runs[i];
    const Curve& curve = run.view->metric(metric);
    key += " " + run.wanted;
    made_of += " " + std::to_string(curve.size()) + "/" + std::to_string(curve.rewrites());
  }
  GroupCurve& found = compare.group_curves[key];
  if (found.made_of == made_of) return found;
  found = {};
  found.made_of = made_of;
  std::vector<Member> members;
  for (const size_t i : runs) {
    const ComparedRun& run = *compare.runs[i];
    const Curve& curve = run.view->metric(metric);
    members.push_back({smooth && compare.plots.smoothing > 0 ? &smoothed_of(compare.plots, curve) : &curve, axis_of(run, compare.axis)});
  }
  compute(members, compare.group_middle, compare.group_band, found);
  return found;
}

}  // namespace comera::studio
