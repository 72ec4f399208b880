#include "app/studio/compare/compared_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "app/format.h"

namespace comera::studio {
namespace {

constexpr double kNotRecorded = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kLastSteps = 100;

double at_cursor(const ComparedRun& run, const char* metric) { return run.view->metric(metric).at(run.step()); }

// Best value up to the cursor.
double best(const ComparedRun& run, const char* metric, bool highest) {
  const Curve& curve = run.view->metric(metric);
  double low = 0, high = 0;
  if (!curve.extremes(-1, run.step(), low, high)) return kNotRecorded;
  return highest ? high : low;
}

double mean_of_last(const ComparedRun& run, const char* metric) {
  const Curve& curve = run.view->metric(metric);
  const auto end = static_cast<size_t>(std::upper_bound(curve.x().begin(), curve.x().end(), run.step()) - curve.x().begin());
  const size_t count = std::min(end, kLastSteps);
  if (count == 0) return kNotRecorded;
  double sum = 0;
  for (size_t i = end - count; i < end; ++i) sum += curve.y()[i];
  return sum / static_cast<double>(count);
}

double positive(double value) { return value > 0 ? value : kNotRecorded; }

std::string percent(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", value * 100);
  return text;
}
std::string points(double value) { return significant(value * 100, 3) + " points"; }
std::string plain(double value) { return value == std::round(value) && std::abs(value) >= 1e4 ? thousands(value) : significant(value, 4); }
std::string times(double value) { return significant(value, 4) + " x"; }
std::string milliseconds(double value) { return significant(value, 4) + " ms"; }

}  // namespace

const Snapshot& ComparedRun::snapshot() const {
  static const Snapshot kNothing;
  return past ? *past : view ? *view->snapshot : kNothing;
}

int slot_of(const std::string& id) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return static_cast<int>((hash ^ (hash >> 16)) % kMostCompared);
}

std::string color_tag(int slot) { return "color:" + std::to_string(slot + 1); }

int slot_of_tags(const std::vector<std::string>& tags) {
  for (int slot = 0; slot < static_cast<int>(kMostCompared); ++slot)
    if (std::find(tags.begin(), tags.end(), color_tag(slot)) != tags.end()) return slot;
  return -1;
}

StepAxis axis_of(const ComparedRun& run, XAxis axis) { return axis_of(*run.view, axis); }

const char* no_axis(const ComparedRun& run, XAxis axis) {
  if (axis == XAxis::samples && (run.config.empty() || !run.view->config_problem.empty()))
    return "has no config: its samples are not known";
  return no_axis(*run.view, axis);
}

double whole_mebibytes(const ComparedRun& run, double entries) {
  const ModelSize& size = run.view->snapshot->size;  // only the size of the tensor trains changes
  if (!(size.entries > 0) || !(size.model_entries > 0)) return kNotRecorded;
  if (run.view->snapshot->ranks.empty()) entries = size.entries;  // dense: constant size, and no metric `entries`
  return (size.model_entries - size.entries + entries) * size.bytes / size.entries / (1 << 20);
}

std::vector<Quantity> results() {
  using Run = const ComparedRun&;
  const auto metric = [](const char* name) { return [name](Run run) { return at_cursor(run, name); }; };
  const MetricInfo accuracy = *find_metric("val_accuracy"), val_loss = *find_metric("val_loss"), train_loss = *find_metric("train_loss"),
                   size = *find_metric("entries"), step_ms = *find_metric("step_ms");
  const auto at_evaluation = [](const MetricInfo& info) {
    const std::string help = info.help;
    return help.substr(0, help.rfind('.')) + ", at the last evaluation.";
  };
  return {
      {"accuracy", accuracy.title, "", at_evaluation(accuracy), accuracy.better, false, metric("val_accuracy"), percent, points},
      {"best_accuracy", "Best val accuracy", "", "Highest validation accuracy of all evaluations.", accuracy.better, false,
       [](Run run) { return best(run, "val_accuracy", true); }, percent, points},
      {"val_loss", val_loss.title, "", at_evaluation(val_loss), val_loss.better, false, metric("val_loss"), plain},
      {"best_val_loss", "Best val loss", "", "Lowest validation loss of all evaluations.", val_loss.better, false,
       [](Run run) { return best(run, "val_loss", false); }, plain},
      {"train_loss", train_loss.title, "mean of 100", "Mean over the last 100 steps: the loss of one batch is noisy.", train_loss.better,
       false, [](Run run) { return mean_of_last(run, "train_loss"); }, plain},
      {"size", size.title, "", std::string(size.help) + " As in the list of runs.", size.better, true,
       [](Run run) { return positive(run.snapshot().size.bytes); }, mebibytes},
      {"compression", "Compression", "", "Size of the dense matrices / size of their tensor trains.", Better::higher, true,
       [](Run run) { return run.snapshot().size.entries > 0 ? run.snapshot().size.compression : kNotRecorded; }, times},
      {"whole", "Whole model", "", "All parameters, without dead ranks.", Better::lower, true,
       [](Run run) {
         const ModelSize& s = run.snapshot().size;
         return s.entries > 0 ? positive(s.model_entries * s.bytes / s.entries) : kNotRecorded;
       },
       mebibytes},
      {"peak", "Peak memory", "", "Most bytes that training held at one time.", Better::lower, true,
       [](Run run) { return positive(static_cast<double>(run.snapshot().memory_peak.total())); }, mebibytes},
      {"memory", "Memory", "", "Bytes that training holds at this step, without pruned entries.", Better::lower, true,
       [](Run run) { return positive(static_cast<double>(run.snapshot().memory_now.total())); }, mebibytes},
      {"step_ms", step_ms.title, "median of 1,000", "Median of the last 1,000 steps.", step_ms.better, true,
       [](Run run) { return positive(run.snapshot().step_ms_median); }, milliseconds},
      {"time", "Training time", "", "Sum of the step times, without evaluation, checkpoints and pauses.", Better::lower, true,
       [](Run run) { return positive(run.snapshot().elapsed_s); }, duration},
      {"steps", "Steps", "", "", Better::none, true, [](Run run) { return run.step(); }, thousands},
  };
}

Quantity quantity_of(const std::string& metric) {
  const std::string id = metric == "val_accuracy" ? "accuracy" : metric == "entries" ? "size" : metric;
  for (Quantity& quantity : results())
    if (quantity.id == id) return quantity;
  const MetricInfo info = describe_metric(metric);
  const std::string unit = info.unit;
  const bool bytes = metric.ends_with("_bytes");
  return {metric,
          info.title,
          "",
          std::string(info.help) + (bytes ? " Last measured value." : " At its last step."),
          info.better,
          bytes,
          [metric](const ComparedRun& run) { return at_cursor(run, metric.c_str()); },
          bytes          ? mebibytes
          : unit == "%"  ? percent
          : unit == "ms" ? milliseconds
                         : plain};
}

std::vector<Quantity> other_metrics(const std::vector<std::shared_ptr<ComparedRun>>& runs) {
  static const std::set<std::string> kShown = {"val_accuracy", "val_loss", "train_loss", "step_ms"};
  std::set<std::string> names;
  for (const auto& run : runs)
    if (run->read())
      for (const auto& [name, curve] : run->view->metrics)
        if (!kShown.contains(name)) names.insert(name);
  std::vector<Quantity> found;
  for (const std::string& name : names) found.push_back(quantity_of(name));
  return found;
}

namespace {

bool differs(const ComparedRun& a, const ComparedRun& b, const std::string& path) {
  const auto value = [&](const ComparedRun& run) -> const std::string* {
    for (const auto& [name, text] : run.config)
      if (name == path) return &text;
    return nullptr;
  };
  const std::string *in_a = value(a), *in_b = value(b);
  return in_a && in_b && *in_a != *in_b;
}

}  // namespace

const char* incomparable(const ComparedRun& run, const ComparedRun& with, const std::string& id) {
  static const std::set<std::string> kOfData = {"accuracy",   "best_accuracy",  "best_val_loss",
                                                "train_loss", "train_accuracy", "train_objective"};
  static const std::set<std::string> kOfTime = {"step_ms", "time"};
  if (!run.read() || !with.read()) return nullptr;
  const MetricInfo* metric = find_metric(id);
  if (kOfData.contains(id) || (metric && metric->recorded == Recorded::evaluation && !metric->measured)) {
    if (differs(run, with, "data.set")) return "different data";
    if (differs(run, with, "model.task")) return "different task";
    if (differs(run, with, "model.classes")) return "different classes";
    if (id != "train_loss" && id != "train_accuracy" && id != "train_objective" && differs(run, with, "data.validation_rows"))
      return "different validation rows";
    if (id == "train_objective" && differs(run, with, "method.weights")) return "different objective";
  }
  if (kOfTime.contains(id) || id.starts_with("phase:")) {
    if (run.view->snapshot->device != with.view->snapshot->device) return "different device";
    if (id != "time" && id != "phase:evaluation" && differs(run, with, "train.batch")) return "different batch size";
  }
  return nullptr;
}

Delta delta_of(const Quantity& quantity, double value, double baseline) {
  Delta delta;
  if (!std::isfinite(value) || !std::isfinite(baseline)) return delta;
  delta.difference = value - baseline;
  if (delta.difference == 0) {
    delta.verdict = Delta::same;
    return delta;
  }
  const std::string plain = (delta.difference > 0 ? "+" : "-") + quantity.difference(std::abs(delta.difference));
  if (quantity.relative && baseline != 0) {
    char text[32];
    std::snprintf(text, sizeof text, "%+.1f %%", 100 * delta.difference / std::abs(baseline));
    delta.text = (quantity.both ? plain + ", " : "") + text;
  } else {
    delta.text = plain;
  }
  delta.verdict = quantity.better == Better::none                                 ? Delta::different
                  : (quantity.better == Better::higher) == (delta.difference > 0) ? Delta::better
                                                                                  : Delta::worse;
  return delta;
}

const char* name_of(Delta::Verdict verdict) {
  switch (verdict) {
    case Delta::same:
      return "the same";
    case Delta::better:
      return "better";
    case Delta::worse:
      return "worse";
    default:
      return "";
  }
}

namespace {

void add_edit(std::string& value, const Edit& edit) {
  value += (value.empty() ? "" : " ") + std::string("-> ") + edit.value + " at " + thousands(static_cast<double>(edit.step));
}

}  // namespace

std::string setting_of(const ComparedRun& run, const std::string& path) {
  std::string value;
  for (const auto& [name, text] : run.config)
    if (name == path) value = text;
  if (run.read())
    for (const Edit& edit : run.view->edits)
      if (edit.path == path) add_edit(value, edit);
  return value;
}

bool has_no_use_of(const ComparedRun& run, const std::string& path) {
  return run.read() && run.view->config_problem.empty() && !run.view->uses(path);
}

std::string unquoted(const std::string& text) {
  return text.size() >= 2 && text.front() == '"' && text.back() == '"' ? text.substr(1, text.size() - 2) : text;
}

std::vector<SettingRow> settings_of(const std::vector<std::shared_ptr<ComparedRun>>& runs) {
  std::vector<SettingRow> rows;
  std::map<std::string, size_t> known;
  const auto row_of = [&](const std::string& path) -> SettingRow& {
    const auto [at, fresh] = known.try_emplace(path, rows.size());
    if (fresh) rows.push_back({path, std::vector<std::string>(runs.size()), true});
    return rows[at->second];
  };
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [path, value] : runs[i]->config) row_of(path).values[i] = value;
    if (!runs[i]->read()) continue;
    for (const Edit& edit : runs[i]->view->edits) add_edit(row_of(edit.path).values[i], edit);
  }
  for (SettingRow& row : rows) {
    const std::string* first = nullptr;
    for (size_t i = 0; i < runs.size(); ++i) {
      if (!runs[i]->read()) continue;
      if (first && *first != row.values[i]) row.same = false;
      if (!first) first = &row.values[i];
    }
  }
  return rows;
}

}  // namespace comera::studio
