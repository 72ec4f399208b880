#include "app/studio/newcomer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/shown_run/timeline.h"

namespace comera::studio {
namespace fs = std::filesystem;

const std::string& recorded_store() {
  static const std::string kPath = [] {
    const std::string path = assets_folder() + "/recorded/runs.db";
    std::error_code ignored;
    return fs::exists(path, ignored) ? path : "";
  }();
  return kPath;
}

bool is_recorded(const std::string& store) {
  std::error_code ignored;
  return !store.empty() && !recorded_store().empty() && fs::equivalent(store, recorded_store(), ignored);
}

void replay_recorded(UiState& ui) {
  if (!ui.store || recorded_store().empty()) return;
  ui.load_request = ui.store->load(kRecordedRun, recorded_store());
  ui.load_for = LoadFor::play;
  ui.arrangement = "replay";
}

const char* no_dense_twin(const UiState& ui) {
  const RunView& view = ui.shown();
  if (!ui.has_run()) return "No run yet";
  if (is_recorded(view.store)) return kWhyRecorded;
  if (!view.config_problem.empty()) return "The settings of this run cannot be read";
  if (!view.uses("model.tt")) return "This run has dense matrices itself";
  if (ui.training()) return "A run trains: wait until it has finished";
  if (view.snapshot->phase != Phase::finished) return "This run has not finished its steps";
  if (view.snapshot->run.empty() || !ui.store || ui.store->path() != view.store) return "This run is not in the database that is open";
  return nullptr;
}

void train_dense_twin(UiState& ui) {
  if (no_dense_twin(ui)) return;
  const RunView& view = ui.shown();
  const std::string run = view.snapshot->run;
  RunConfig config = view.config_at(0);
  config.method.name = "AdamW";
  config.method.weights = "dense";
  config.method.stash = "exact";
  config.method.optimizer = "adamw";
  config.train.steps = view.snapshot->total_steps;
  config.train.max_steps_per_s = 0;
  config.name += "-dense";
  if (start_config(ui, config)) ui.dense_twin_of = run;
}

void tick_dense_twin(UiState& ui) {
  if (ui.dense_twin_of.empty() || !ui.live || !ui.live->view().ended()) return;
  const std::string run = std::exchange(ui.dense_twin_of, ""), twin = ui.live->run();
  if (ui.live->view().snapshot->phase != Phase::finished || twin.empty()) return;
  if (ui.layout == "train" && !ui.show_stored) return compare_runs(ui, {twin, run});
  Toast done{Level::good, "The dense twin has finished", kUntilDismissed, "dense-twin"};
  done.offers = {{"Compare", [run, twin](UiState& state) { compare_runs(state, {twin, run}); }}, {"Dismiss", {}}};
  add_toast(ui, std::move(done));
}

void offer_dense_twin(UiState& ui) {
  const Snapshot& s = *ui.shown().snapshot;
  if (s.name != "demo" || no_dense_twin(ui)) return;
  std::string text = "The demo has finished";
  if (s.eval.examples > 0) text += ": validation accuracy " + significant(100 * s.eval.accuracy, 3) + " %";
  if (s.size.compression > 1) text += ", " + smaller_than_dense(s.size);
  Toast done{Level::good, text + ". Its dense twin has the same network and data without tensor trains", kUntilDismissed, kDemoFinished};
  done.offers = {{"Train the dense twin and compare", train_dense_twin}, {"Dismiss", {}}};
  add_toast(ui, std::move(done));
}

bool hints_at_size_target(const UiState& ui) { return ui.settings.size_target_hint && ui.editable() && ui.snapshot().late; }

void draw_size_target_hint(UiState& ui) {
  if (!hints_at_size_target(ui)) return;
  if (std::any_of(ui.drags.begin(), ui.drags.end(), [](const auto& drag) { return drag.first.starts_with("method.comera.target"); })) {
    ui.settings.size_target_hint = false;
    return;
  }
  const char* text = "Try it: drag Size target up or down. The ranks follow within seconds.";
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, pad = em(0.5f), point = em(0.55f), cross = ImGui::GetFrameHeight();
  const float room = width - 2 * pad - cross;
  const ImVec2 size = ImGui::CalcTextSize(text, nullptr, false, room);
  const float height = std::max(size.y + 2 * pad, cross);
  const float tip = at.x + std::min(em(2.5f), width / 4), top = at.y + point;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 fill = with_alpha(theme().accent, 0.22f);
  list->AddTriangleFilled({tip, at.y}, {tip + point, top}, {tip - point, top}, theme().accent);  // tip that points at the slider
  list->AddRectFilled({at.x, top}, {at.x + width, top + height}, fill, ImGui::GetStyle().FrameRounding);
  list->AddRect({at.x, top}, {at.x + width, top + height}, theme().accent, ImGui::GetStyle().FrameRounding);
  list->AddText(nullptr, 0, {at.x + pad, top + (height - size.y) / 2}, theme().text, text, nullptr, room);
  name_area("size-target-hint", {at.x, top}, {at.x + width - cross, top + height});
  const ImVec2 local = ImGui::GetCursorPos();
  ImGui::SetCursorPos({local.x + width - cross, local.y + point + (height - cross) / 2});
  if (button("###dismiss-size-target-hint", {.icon = Icon::cross, .tooltip = "Do not show this again", .size = {cross, cross}}))
    ui.settings.size_target_hint = false;
  ImGui::SetCursorPos(local);
  ImGui::Dummy({width, point + height + em(0.3f)});
}

}  // namespace comera::studio
