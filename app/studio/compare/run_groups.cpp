#include "app/studio/compare/run_groups.h"

#include <algorithm>
#include <cmath>

#include "app/studio/compare/compare.h"

namespace comera::studio {
namespace {

// Everything that decides what a run computes, but for its seed.
std::string settings_text(const ComparedRun& run) {
  std::string text;
  for (const auto& [path, value] : run.config)
    if (path != "train.seed" && path != "name") text += path + "=" + value + "\n";
  for (const Edit& edit : run.view->edits) text += std::to_string(edit.step) + " " + edit.path + "=" + edit.value + "\n";
  return text;
}

struct Member {
  const Curve* curve;
  StepAxis axis;
};

void compute(const std::vector<Member>& members, SeedBand band, GroupCurve& group) {
  double from = -INFINITY, to = INFINITY;
  for (const Member& member : members) {
    if (member.curve->empty()) return;
    from = std::max(from, member.axis.at(member.curve->x().front()));
    to = std::min(to, member.axis.at(member.curve->x().back()));
  }
  for (const double step : members[0].curve->x()) {
    const double x = members[0].axis.at(step);
    if (!(x >= from && x <= to) || (!group.mean.empty() && x <= group.mean.x().back())) continue;
    double sum = 0, squares = 0, low = INFINITY, high = -INFINITY;
    const auto count = static_cast<double>(members.size());
    std::vector<double> values;
    for (const Member& member : members) {
      // A hair on: a place that was a step must be that step again.
      const double value = member.curve->at(member.axis.step(x) + 1e-6);
      sum += value;
      values.push_back(value);
      low = std::min(low, value);
      high = std::max(high, value);
    }
    if (!std::isfinite(sum)) continue;
    const double mean = sum / count;
    for (const double value : values) squares += (value - mean) * (value - mean);
    if (band == SeedBand::deviation) {
      const double deviation = members.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
      low = mean - deviation;
      high = mean + deviation;
    }
    group.mean.append(x, mean);
    group.low.append(x, low);
    group.high.append(x, high);
  }
}

}  // namespace

const char* name_of(SeedBand band) { return band == SeedBand::extremes ? "lowest to highest" : "standard deviation"; }

std::vector<SeedGroup> seed_groups(const Compare& compare) {
  std::vector<SeedGroup> groups;
  std::vector<std::string> texts;  // of each group; "" = takes no other run
  for (size_t i = 0; i < compare.runs.size(); ++i) {
    const ComparedRun& run = *compare.runs[i];
    const std::string text = run.read() && !run.config.empty() ? settings_text(run) : "";
    const auto known = text.empty() ? texts.end() : std::find(texts.begin(), texts.end(), text);
    if (known != texts.end()) {
      groups[static_cast<size_t>(known - texts.begin())].runs.push_back(i);
      continue;
    }
    groups.push_back({{i}});
    texts.push_back(text);
  }
  return groups;
}

const GroupCurve& group_curve(Compare& compare, const SeedGroup& group, const std::string& metric, bool smooth) {
  std::string key = metric, made_of = std::string(name_of(compare.axis)) + (smooth ? std::to_string(compare.plots.smoothing) : "") +
                                      std::to_string(static_cast<int>(compare.plots.smoothing_kind)) + "/" +
                                      std::to_string(static_cast<int>(compare.seed_band));
  for (const size_t i : group.runs) {
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
  for (const size_t i : group.runs) {
    const ComparedRun& run = *compare.runs[i];
    const Curve& curve = run.view->metric(metric);
    members.push_back({smooth && compare.plots.smoothing > 0 ? &smoothed_of(compare.plots, curve) : &curve, axis_of(run, compare.axis)});
  }
  compute(members, compare.seed_band, found);
  return found;
}

}  // namespace comera::studio
