#include "app/figure/run_picture.h"

#include "app/figure/figure.h"
#include "app/figure/rank_map.h"
#include "app/figure/tt_drawing.h"
#include "app/format.h"
#include "core/base/error.h"
#include "core/base/json.h"

namespace comera {
namespace {

Drawing draw_curves(const Snapshot& run, const Records& records, std::vector<std::string> names, const std::string& note) {
  if (names.empty()) {
    names = {"train_loss"};
    if (records.metrics.contains("val_loss")) names.push_back("val_loss");
  }
  Figure figure{.note = note};
  for (const std::string& name : names) {
    const auto found = records.metrics.find(name);
    if (found == records.metrics.end()) {
      std::vector<std::string> known;
      for (const auto& [metric, series] : records.metrics) known.push_back(metric);
      const std::string near = nearest_name(name, known);
      throw Error(ErrorCode::not_found, "run " + run.run + " has no metric '" + name + "'", "",
                  near.empty() ? "comera get " + run.run + " lists them" : "did you mean '" + near + "'?");
    }
    const Series& series = found->second;
    FigureLine line{.label = name, .color = theme().series[figure.lines.size() % theme().series.size()], .y = series.values};
    line.x.assign(series.steps.begin(), series.steps.end());
    figure.lines.push_back(std::move(line));
    figure.title += (figure.title.empty() ? "" : ", ") + name;
  }
  return draw_figure(figure);
}

}  // namespace

Drawing draw_run(Replay& replay, RunPicture picture, const std::vector<std::string>& metrics) {
  const Snapshot run = *replay.latest();
  const std::string note = run.name + ", step " + thousands(static_cast<double>(run.step));
  if (picture == RunPicture::curves) return draw_curves(run, replay.drain(), metrics, note);
  if (run.ranks.empty())
    throw Error(ErrorCode::not_found, "run " + run.run + " has no ranks to draw",
                replay.config_problem().empty() ? "it has no tensor trains" : replay.config_problem(), "draw its curves: --draw curves");
  if (picture == RunPicture::ranks) return rank_map(run.ranks, note);
  return tt_picture(run, lay_out(run.ranks, {}));
}

}  // namespace comera
