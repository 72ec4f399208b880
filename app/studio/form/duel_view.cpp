#include "app/studio/form/duel_view.h"

#include <algorithm>
#include <cstdio>

#include "app/format.h"
#include "app/studio/dueling.h"
#include "app/studio/form/queue_controls.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

void memory_field(DuelPlan& plan) {
  const float width = em(7);
  beside_or_below(width);
  char text[64];
  std::snprintf(text, sizeof text, "%s", plan.memory.c_str());
  ImGui::SetNextItemWidth(width);
  if (ImGui::InputTextWithHint("##duel-memory", "any memory, MiB", text, sizeof text)) plan.memory = text;
  name_item("duel-memory");
  if (ImGui::IsItemDeactivatedAfterEdit()) set_duel_memory(plan, plan.memory);
  tooltip(
      "Planned peak that no method may exceed, for example 64MiB or 2GiB; a bare number is of MiB. The batch stays: the fewest "
      "micro-batches that fit are used, then the "
      "largest rank that fits. Empty: the same settings for all methods");
}

void start_button(UiState& ui) {
  const std::string no = no_duel(ui);
  const ButtonLook look{.icon = Icon::play,
                        .primary = true,
                        .enabled = no.empty(),
                        .tooltip =
                            "Trains the ticked methods one after another and compares them. Runs that are there already are not "
                            "trained again. `comera duel` in a terminal does the same",
                        .keys = ui.settings.keys.of("duel.start"),
                        .why_not = no.c_str()};
  beside_or_below(button_width("Duel###duel-start", look));
  if (button("Duel###duel-start", look)) start_duel(ui);
}

void summary(const UiState& ui) {
  const DuelPlan& plan = ui.form.duel;
  if (plan.chosen.empty()) return text_wrapped("Tick methods to train the same network under each", theme().dim);
  if (!plan.problem.empty()) return text_wrapped(plan.problem, theme().bad);
  const auto planned = std::count_if(plan.chosen.begin(), plan.chosen.end(), [&](const std::string& id) { return plan.find(id); });
  const auto trained = static_cast<size_t>(std::count_if(plan.chosen.begin(), plan.chosen.end(), [&](const std::string& id) {
    const DuelMethod* method = plan.find(id);
    return method && method->trains();
  }));
  if (const size_t left = plan.chosen.size() - static_cast<size_t>(planned); left > 0)
    return text_wrapped("Planning " + counted(static_cast<int64_t>(left), "method") + " of the duel", theme().dim);
  const std::string memory = plan.bytes > 0 ? ", at most " + mebibytes(static_cast<double>(plan.bytes)) + " each" : "";
  const std::string left = trained < plan.chosen.size() ? ", " + std::to_string(plan.chosen.size() - trained) + " not trained" : "";
  text_wrapped(counted(static_cast<int64_t>(trained) * plan.seeds, "run") + " of " + counted(static_cast<int64_t>(trained), "method") +
                   memory + left,
               theme().dim);
}

}  // namespace

void draw_duel_controls(UiState& ui) {
  if (trains_queue(ui, kDuelNoun)) return draw_queue_progress(ui, "duel.stop");
  DuelPlan& plan = ui.form.duel;
  if (button("All###duel-all", {.tooltip = "All methods into the duel"})) choose_all_for_duel(plan, true);
  beside_or_below(button_width("None", {}));
  if (button("None###duel-none", {.enabled = !plan.chosen.empty(), .tooltip = "No method", .why_not = "No method is ticked"}))
    choose_all_for_duel(plan, false);
  memory_field(plan);
  const float width = em(6);
  beside_or_below(width);
  ImGui::SetNextItemWidth(width);
  ImGui::SliderInt("##duel-seeds", &plan.seeds, 1, kMostSeeds, plan.seeds == 1 ? "%d seed" : "%d seeds", ImGuiSliderFlags_AlwaysClamp);
  name_item("duel-seeds");
  tooltip("Runs of each method, with the seed of the form and those after it");
  start_button(ui);
  summary(ui);
}

float duel_tick_width() { return ImGui::GetTextLineHeight() + 2 * em(0.15f) + em(0.4f); }

void draw_duel_tick(DuelPlan& plan, const std::string& id) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  bool on = plan.chosen.contains(id);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.15f), em(0.15f)));
  ImGui::PushID(id.c_str());
  if (ImGui::Checkbox("##in-duel", &on)) {
    if (on)
      plan.chosen.insert(id);
    else
      plan.chosen.erase(id);
  }
  ImGui::PopID();
  ImGui::PopStyleVar();
  name_item("in-duel:" + id);
  tooltip("Trains this method in the duel");
  ImGui::SetCursorScreenPos({at.x + duel_tick_width(), at.y});
}

DuelNote duel_note(const DuelPlan& plan, const std::string& id) {
  if (!plan.chosen.contains(id) || !plan.problem.empty()) return {};
  const DuelMethod* method = plan.find(id);
  if (!method) return {"Duel: planning", theme().dim};
  if (!method->refusal.empty()) return {"Duel: refused: " + method->refusal, theme().bad};
  if (!method->fits) return {"Duel: does not fit, needs at least " + mebibytes(static_cast<double>(method->planned)), theme().bad};
  std::string text = "Duel: ";
  if (method->rank) text += "rank " + thousands(static_cast<double>(*method->rank)) + ", ";
  text += counted(method->config.train.micro_batches, "micro-batch");
  if (method->config.train.micro_batches != 1) text.insert(text.size() - 1, "e");
  return {text + ", peak " + mebibytes(static_cast<double>(method->planned)), theme().dim};
}

}  // namespace comera::studio
