#include "app/studio/shown_run/following.h"

#include <algorithm>

#include "app/studio/actions.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

constexpr double kEvery = 2;  // seconds between two reads of the list, which are cheap while nothing is written
constexpr double kOfferSeconds = 10;

const RunRow* newest_of(const RunList& list) {
  const auto newest =
      std::max_element(list.rows.begin(), list.rows.end(), [](const RunRow& a, const RunRow& b) { return a.created < b.created; });
  return newest == list.rows.end() ? nullptr : &*newest;
}

// The run trains in this window, which shows it already.
bool is_own(const UiState& ui, const std::string& id) {
  const auto same = [&](const std::unique_ptr<LiveRun>& run) { return run && run->run() == id; };
  return same(ui.live) || std::any_of(ui.ending.begin(), ui.ending.end(), same);
}

void offer(UiState& ui, const RunRow& row) {
  Toast told{Level::info, (row.name.empty() ? row.id : row.name) + " has begun", ImGui::GetTime() + kOfferSeconds, "newest"};
  told.offers = {{"Show it", [id = row.id](UiState& state) { open_run(state, id); }}};
  add_toast(ui, std::move(told));
}

}  // namespace

void tick_following(UiState& ui) {
  Following& following = ui.following;
  const bool wanted = ui.settings.follow_newest;
  if (wanted && ui.store) ui.store->refresh(kEvery);
  if (!ui.runs->loaded || !ui.runs->problem.empty() || ui.runs == following.looked) return;
  const RunRow* row = newest_of(*ui.runs);
  const bool begun = following.looked && row && row->created > following.newest;
  // Until the session has reported its run id, the new run may be that of this window.
  const bool waits = ui.live && !ui.live->view().ended() && ui.live->run().empty() && !ui.live->view().store.empty();
  if (begun && wanted && (waits || ui.load_request != 0)) return;
  following.looked = ui.runs;
  if (row) following.newest = std::max(following.newest, row->created);
  if (!begun || !wanted || is_own(ui, row->id)) return;
  if (ui.replaying() || ui.timeline.wanted >= 0 || ui.layout == "new")
    offer(ui, *row);
  else
    show_newest(ui, row->id);
}

}  // namespace comera::studio
