#include "app/studio/shown_run/replaced_courses.h"

#include <algorithm>

#include "app/studio/theme.h"
#include "app/studio/ui_state.h"
#include "core/store/run_reader.h"

namespace comera::studio {

std::vector<Course> read_courses(const CourseQuestion& question) {
  std::vector<Course> out;
  for (const std::string& run : question.runs) try {
      const RunReader reader(question.store);
      Course course{run, {}};
      for (const std::string& name : reader.metric_names(run)) {
        const Series series = reader.metric(run, name);
        Curve& curve = course.metrics[name];
        curve.reserve(series.steps.size());
        for (size_t i = 0; i < series.steps.size(); ++i) curve.append(static_cast<double>(series.steps[i]), series.values[i]);
      }
      out.push_back(std::move(course));
    } catch (const std::exception&) {  // purged, or the store cannot be read, which is reported elsewhere
    }
  return out;
}

const std::vector<Course>& ReplacedCourses::of_shown() const {
  static const std::vector<Course> kNone;
  return shown && read && read->number == number ? read->answer : kNone;
}

void tick_replaced(UiState& ui) {
  ReplacedCourses& replaced = ui.replaced;
  const RunView& view = ui.shown();
  CourseQuestion question{view.store, {}};
  const size_t skipped = view.replaced.size() - std::min(view.replaced.size(), kMostCourses);
  for (size_t i = skipped; i < view.replaced.size(); ++i) question.runs.push_back(view.replaced[i].run);
  if (question.runs.empty()) question = {};
  if (question != replaced.asked) {
    replaced.asked = question;
    if (!replaced.reader) replaced.reader = std::make_unique<ReplacedCourses::Reader>(read_courses, ui.wake);
    replaced.number = replaced.reader->ask(std::move(question));
  }
  if (!replaced.reader) return;
  if (auto latest = replaced.reader->latest(); latest != replaced.read) {
    replaced.read = std::move(latest);
    ui.plots.forget_curves();
  }
  double furthest = 0;
  for (const Course& course : replaced.of_shown())
    for (const auto& [name, curve] : course.metrics)
      if (!curve.empty()) furthest = std::max(furthest, curve.x().back());
  ui.plots.furthest = furthest;
}

void add_replaced(const UiState& ui, std::vector<PlotTile>& tiles) {
  const std::vector<Course>& courses = ui.replaced.of_shown();
  if (courses.empty() || ui.plots.axis.curve || !ui.plots.over_title.empty()) return;  // drawn over steps only
  const RunView& view = ui.shown();
  for (PlotTile& tile : tiles) {
    std::vector<PlotLine> behind;
    for (const PlotLine& line : tile.lines) {
      const auto of =
          std::find_if(view.metrics.begin(), view.metrics.end(), [&](const auto& metric) { return &metric.second == line.curve; });
      if (of == view.metrics.end()) continue;
      for (const Course& course : courses) {
        const auto found = course.metrics.find(of->first);
        if (found == course.metrics.end() || found->second.empty()) continue;
        PlotLine grey = line;
        grey.curve = &found->second;
        grey.label = "replaced";
        grey.color = with_alpha(theme().dim, 0.5f);
        grey.raw_alpha = 0.12f;
        grey.hold = false;
        grey.fits = false;
        grey.named = behind.empty();
        behind.push_back(grey);
      }
    }
    tile.lines.insert(tile.lines.begin(), behind.begin(), behind.end());
  }
}

}  // namespace comera::studio
