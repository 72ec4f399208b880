#include "app/studio/shown_run/stored_view.h"

#include <cstdint>
#include <exception>
#include <utility>

namespace comera::studio {
namespace {

void share_values(RunView& view, const Replay& replay) {
  for (const auto& [name, column] : replay.metrics()) view.share(name, column.steps, column.values);
  view.share("wall", replay.times().steps, replay.times().values);
}

}  // namespace

std::shared_ptr<RunView> view_of(Replay& replay, const std::string& store) {
  auto view = std::make_shared<RunView>(replay.config());
  view->config_problem = replay.config_problem();
  view->store = store;
  view->take(replay.latest(), replay.drain_rest());  // before values are shared, so that a resume event in the past removes no values
  share_values(*view, replay);
  return view;
}

bool append(RunView& view, Replay& replay, RunRows rows) {
  if (!replay.continues(rows)) return false;
  const int64_t cursor = replay.step();
  view.let_go();
  try {
    replay.append(std::move(rows));
  } catch (const std::exception&) {  // invalid event: reading the whole run reports it
    share_values(view, replay);
    return false;
  }
  share_values(view, replay);
  replay.seek(INT64_MAX);
  view.take(replay.latest(), replay.drain_rest());
  replay.seek(cursor);
  return true;
}

}  // namespace comera::studio
