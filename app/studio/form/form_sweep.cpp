#include "app/studio/form/form_sweep.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/studio/sweeping.h"
#include "app/studio/ui_state.h"
#include "core/config/named_methods.h"

namespace comera::studio {
namespace {

PlannedPeaks plan_peaks(const PeakQuestion& question) {
  constexpr size_t kAtOnce = 8;  // so that the card shows some soon
  PlannedPeaks peaks;
  const std::vector<SweepPoint>& points = question.plan->points;
  for (size_t i = question.first; i < points.size() && peaks.bytes.size() < kAtOnce; ++i) {
    peaks.bytes.push_back(0);
    if (points[i].runs.empty()) continue;
    try {
      const Forecast forecast = make_forecast(points[i].runs.front());
      peaks.bytes.back() = forecast.memory.total();
      peaks.available = peaks.available == 0 ? forecast.available : std::min(peaks.available, forecast.available);
    } catch (const std::exception&) {  // its run will say why
    }
  }
  return peaks;
}

QueueState look_at_trained(const TrainedQuestion& question, const DataOf& data_of) {
  try {
    return look_at_sweep(question.store, *question.plan, data_of);
  } catch (const std::exception& error) {
    return {.runs = {}, .compare = {}, .problem = error.what()};
  }
}

std::string value_text(const NewRun& form, const std::string& path) {
  if (path == kMethodPath) return name_of_method(form.config.method);
  const FieldValue value = field_values(form.config).at(path);
  const auto* text = std::get_if<std::string>(&value);
  if (text && text->find(',') == std::string::npos && !text->empty()) return *text;
  return std::visit([](const auto& of) { return Json(of).dump(); }, value);
}

void read(VariedSetting& varied, const std::string& text) {
  varied.text = text;
  varied.list = read_values(varied.path, text);
}

void tick_plan(NewRun& form) {
  FormSweep& sweep = form.sweep;
  if (sweep.of_edits != sweep.edits || sweep.of_form != form.outlook_number) {
    sweep.of_edits = sweep.edits;
    sweep.of_form = form.outlook_number;
    sweep.plan_number = sweep.problem().empty() ? sweep.threads->planner.ask(sweep_file(form)) : 0;
    if (sweep.plan_number == 0) sweep.plan.reset();
  }
  if (sweep.plan_number == 0) return;
  const auto answer = sweep.threads->planner.latest();
  if (!answer || answer->number != sweep.plan_number) return;
  sweep.plan_number = sweep.peak_number = sweep.trained_number = 0;
  sweep.plan = answer->answer;
  sweep.peaks.clear();
  sweep.available = 0;
  sweep.trained = {};
  sweep.list.reset();
}

void tick_peaks(FormSweep& sweep) {
  if (sweep.peak_number > 0) {
    const auto answer = sweep.threads->meter.latest();
    if (!answer || answer->number != sweep.peak_number) return;
    const PlannedPeaks& more = answer->answer;
    sweep.peak_number = 0;
    sweep.peaks.insert(sweep.peaks.end(), more.bytes.begin(), more.bytes.end());
    if (more.available > 0) sweep.available = sweep.available == 0 ? more.available : std::min(sweep.available, more.available);
  }
  if (sweep.peaks.size() < sweep.plan->points.size()) sweep.peak_number = sweep.threads->meter.ask({sweep.plan, sweep.peaks.size()});
}

void tick_trained(UiState& ui) {
  FormSweep& sweep = ui.form.sweep;
  if (!ui.store || ui.store_path.empty()) return;
  if (sweep.trained_number > 0) {
    const auto answer = sweep.threads->looker.latest();
    if (!answer || answer->number != sweep.trained_number) return;
    sweep.trained = answer->answer;
    sweep.trained_number = 0;
  }
  if (sweep.list == ui.runs && sweep.store == ui.store_path) return;
  sweep.list = ui.runs;
  sweep.store = ui.store_path;
  sweep.trained_number = sweep.threads->looker.ask({sweep.store, sweep.plan});
}

}  // namespace

FormSweep::Threads::Threads(const std::function<void()>& wake)
    : planner([](const std::string& file) { return std::make_shared<const PlannedSweep>(plan_sweep_file(file)); }, wake),
      meter(plan_peaks, wake),
      looker([data_of = fingerprints()](const TrainedQuestion& question) { return look_at_trained(question, data_of); }, wake) {}

const VariedSetting* FormSweep::find(const std::string& path) const {
  const auto found = std::find_if(varied.begin(), varied.end(), [&](const VariedSetting& one) { return one.path == path; });
  return found == varied.end() ? nullptr : &*found;
}

size_t FormSweep::runs() const {
  size_t count = std::max<size_t>(1, seeds.list.values.size());
  for (const VariedSetting& one : varied) count = std::min(kMostSweepRuns + 1, count * one.list.values.size());  // no overflow
  return count;
}

std::string FormSweep::problem() const {
  for (const VariedSetting& one : varied)
    if (!one.list.problem.empty()) return one.path + ": " + one.list.problem;
  if (!seeds.list.problem.empty()) return "Seeds: " + seeds.list.problem;
  return runs() > kMostSweepRuns ? "These are more than " + std::to_string(kMostSweepRuns) + " runs" : "";
}

size_t FormSweep::largest() const { return static_cast<size_t>(std::max_element(peaks.begin(), peaks.end()) - peaks.begin()); }

int64_t FormSweep::runs_over() const {
  return std::count_if(trained.runs.begin(), trained.runs.end(), [](const QueuedRun& run) { return run.over; });
}

bool shows_sweep(const NewRun& form) { return form.sweep.shown && !form.fork && !folder_of(form); }

bool is_planned(const NewRun& form) {
  const FormSweep& sweep = form.sweep;
  return sweep.plan && sweep.plan_number == 0 && sweep.of_edits == sweep.edits && sweep.of_form == form.outlook_number;
}

bool is_known(const NewRun& form) {
  const FormSweep& sweep = form.sweep;
  if (!sweep.problem().empty()) return true;  // there is no plan
  if (!is_planned(form)) return false;
  return sweep.peaks.size() == sweep.plan->points.size() && sweep.trained_number == 0;
}

void set_varied(NewRun& form, const std::string& path, bool varies) {
  FormSweep& sweep = form.sweep;
  if (varies == (sweep.find(path) != nullptr) || !may_vary(path)) return;
  ++sweep.edits;
  if (!varies) {
    std::erase_if(sweep.varied, [&](const VariedSetting& one) { return one.path == path; });
    return;
  }
  const auto typed = sweep.texts.find(path);
  read(sweep.varied.emplace_back(VariedSetting{.path = path, .text = {}}),
       typed == sweep.texts.end() ? value_text(form, path) : typed->second);
}

void vary_changed(NewRun& form) {
  const bool usual_eps = form.config.method.adam.eps == form.config.method.chosen().eps;  // follows the optimizer
  for (const std::string& path : form.changed)
    if (path != "method.adam.eps" || !usual_eps) set_varied(form, path, true);
}

void set_values(FormSweep& sweep, VariedSetting& varied, const std::string& text) {
  const bool seeds = &varied == &sweep.seeds;
  read(varied, text);
  if (seeds && text.find_first_not_of(' ') == std::string::npos) varied = {.path = varied.path, .text = ""};
  if (!seeds) sweep.texts[varied.path] = text;
  ++sweep.edits;
}

void set_sweep_name(FormSweep& sweep, const std::string& name) {
  sweep.name = name;
  ++sweep.edits;
}

void tick_form_sweep(UiState& ui) {
  NewRun& form = ui.form;
  if (!shows_sweep(form) || !form.ready) return;
  if (!form.sweep.threads) form.sweep.threads = std::make_unique<FormSweep::Threads>(ui.wake);
  tick_plan(form);
  if (!is_planned(form) || !form.sweep.plan->problem.empty()) return;
  tick_peaks(form.sweep);
  tick_trained(ui);
}

}  // namespace comera::studio
