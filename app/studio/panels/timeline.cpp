// The bar under the panels: what happened when, and a cursor over it that can be moved and played.
#include "app/studio/timeline.h"

#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/widgets.h"

namespace comera::studio {
namespace {

std::string steps(int64_t count) { return thousands(static_cast<double>(count)); }

std::string speed_text(double speed) {
  char text[16];
  std::snprintf(text, sizeof text, "%gx", speed);
  return text;
}

void transport_buttons(UiState& ui) {
  Timeline& t = ui.timeline;
  const char* why = no_past(ui);
  const bool can = !why;
  const auto next = [] { ImGui::SameLine(0, em(0.25f)); };
  const auto small = [&](const char* label, Icon icon, const char* tip) {
    const bool hit = button(label, {.icon = icon, .enabled = can, .tooltip = tip, .why_not = why, .size = {em(2.1f), 0}});
    next();
    return hit;
  };
  if (small("###mark-back", Icon::rewind, "To the event before (Ctrl+Left)")) seek_mark(ui, -1);
  if (small("###back", Icon::step_back, "One step back (Left)")) move_cursor(ui, -1);
  if (button("###play", {.icon = t.playing ? Icon::pause : Icon::play,
                         .primary = t.playing,
                         .enabled = can,
                         .tooltip = t.playing ? "Hold (Space)" : "Play the past, from here or from the start (Space)",
                         .why_not = why,
                         .size = {em(2.6f), 0}}))
    toggle_play(ui);
  next();
  if (small("###on", Icon::step, "One step on (Right)")) move_cursor(ui, 1);
  if (small("###mark-on", Icon::forward, "To the next event (Ctrl+Right)")) seek_mark(ui, 1);
  if (button((speed_text(t.speed) + "###speed").c_str(),
             {.enabled = can, .tooltip = "Speed; 1x is that of the training (, and . halve and double, 1 resets)", .size = {em(3.4f), 0}}))
    ImGui::OpenPopup("speeds");
  if (ImGui::BeginPopup("speeds")) {
    for (const double speed : {0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0})
      if (ImGui::MenuItem(speed_text(speed).c_str(), nullptr, speed == t.speed)) t.speed = speed;
    ImGui::EndPopup();
  }
  next();
  if (button("###loop", {.icon = Icon::loop,
                         .primary = t.loop,
                         .enabled = can,
                         .tooltip = t.loop ? "Begins again at the end" : "Play again and again",
                         .size = {em(2.1f), 0}}))
    t.loop = !t.loop;
}

// What can be done from here: back to the run, or on from it.
void ways_on(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& newest = *view.snapshot;
  const int64_t step = cursor_step(ui);
  if (!ui.has_run() || newest.step == 0) return text_dim("No steps yet");
  if (view.live && !view.ended()) {
    if (!ui.replaying()) return text_dim("Following the run at step " + steps(step));
    if (button("Back to live###follow", {.icon = Icon::forward, .primary = true, .tooltip = "Show the newest step again (L)"}))
      follow_run(ui);
    return;
  }
  const bool stored = ui.store && !newest.run.empty() && !ui.store_path.empty();
  if (button(("Fork from step " + steps(step) + "###fork").c_str(),
             {.icon = Icon::fork,
              .enabled = stored,
              .tooltip = "Start a new run that goes on from here, with the settings of this step",
              .why_not = "This run is not stored"}))
    fork_shown(ui);
  ImGui::SameLine(0, em(0.35f));
  const bool resumable = newest.phase == Phase::stopped || newest.phase == Phase::interrupted;
  if (button("Resume###resume-here", {.icon = Icon::play,
                                      .enabled = stored && resumable,
                                      .tooltip = "Go on from its last checkpoint; to go on from the cursor, fork it",
                                      .why_not = "Only a run that was stopped or interrupted"}))
    resume_run(ui, newest.run);
}

struct Axis {
  float left, right;
  double first, last;
  float at(double step) const {
    return left + (right - left) * static_cast<float>(last > first ? std::clamp((step - first) / (last - first), 0.0, 1.0) : 1);
  }
  int64_t step(float x) const { return std::llround(first + (last - first) * static_cast<double>((x - left) / (right - left))); }
};

// The trend of the loss, on a logarithmic scale: it is an overview, not a measurement.
void draw_loss(UiState& ui, const Axis& axis, float top, float bottom) {
  const Curve& loss = ui.shown().metric("train_loss");
  const Curve& trend = ui.plots.smooth(loss);
  std::vector<double> x, y;
  double low = 0, high = 1;
  if (!trend.extremes(axis.first, axis.last, low, high)) return;
  trend.envelope(axis.first, axis.last, static_cast<int>(axis.right - axis.left), x, y);
  const auto height = [&, logarithmic = low > 0](double value) {
    if (high <= low) return 0.5;
    return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  };
  std::vector<ImVec2> line;
  for (size_t i = 0; i < x.size(); ++i)
    if (std::isfinite(y[i])) line.push_back({axis.at(x[i]), bottom - (bottom - top) * static_cast<float>(height(y[i]))});
  ImGui::GetWindowDrawList()->AddPolyline(line.data(), static_cast<int>(line.size()), theme().series[0], std::max(1.0f, em(0.09f)));
}

void draw_drops(const RunView& view, const Axis& axis, float top, float bottom) {
  double low = 0, high = 0;
  if (!view.rank_drops.extremes(axis.first, axis.last, low, high) || high <= 0) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float wide = std::max(1.0f, em(0.1f));
  const std::vector<double>&x = view.rank_drops.x(), &y = view.rank_drops.y();
  for (size_t i = 0; i < x.size();) {  // one bar for each column of pixels: the largest fall
    const float column = std::round(axis.at(x[i]) / wide) * wide;
    double most = 0;
    for (; i < x.size() && axis.at(x[i]) < column + wide / 2; ++i) most = std::max(most, y[i]);
    if (most == 0) most = y[i++];
    list->AddRectFilled({column, bottom - (bottom - top) * static_cast<float>(std::sqrt(most / high))}, {column + wide, bottom},
                        theme().series[1]);
  }
}

void draw_mark(const Mark& mark, const Axis& axis, float top, float middle) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = axis.at(static_cast<double>(mark.step)), r = em(0.26f);
  const ImU32 color = color_of(mark.kind);
  switch (mark.kind) {
    case Mark::late_stage:
      list->AddLine({x, top}, {x, middle + 1.6f * r}, color, std::max(1.0f, em(0.12f)));
      list->AddCircleFilled({x, middle}, r, color);
      break;
    case Mark::edit:
      list->AddTriangleFilled({x - r, middle + r}, {x + r, middle + r}, {x, middle - r}, color);
      break;
    case Mark::checkpoint:
      list->AddRectFilled({x - r * 0.8f, middle - r * 0.8f}, {x + r * 0.8f, middle + r * 0.8f}, color, em(0.08f));
      break;
    case Mark::cut:
      list->AddQuadFilled({x - r, middle}, {x, middle - r}, {x + r, middle}, {x, middle + r}, color);
      break;
    case Mark::growth:  // as tall as its lane: it stands among the falls
      list->AddTriangleFilled({x - r, middle + 1.6f * r}, {x + r, middle + 1.6f * r}, {x, middle - 1.6f * r}, color);
      break;
    case Mark::alert:
      draw_icon(list, Icon::warning, {x, middle}, em(0.75f), color);
      break;
    case Mark::segment:
      list->AddLine({x, top}, {x, middle + 1.6f * r}, color, std::max(1.0f, em(0.08f)));
      break;
  }
}

void hover(const RunView& view, const Axis& axis, float x) {
  if (!ImGui::BeginTooltip()) return;
  text_dim("step " + steps(axis.step(std::clamp(x, axis.left, axis.right))));
  int shown = 0;
  for (const Mark& mark : view.marks)
    if (std::abs(axis.at(static_cast<double>(mark.step)) - x) < em(0.35f) && ++shown <= 8) {
      ImGui::PushStyleColor(ImGuiCol_Text, color_of(mark.kind));
      ImGui::Bullet();
      ImGui::PopStyleColor();
      ImGui::SameLine();
      ImGui::Text("%s  %s", steps(mark.step).c_str(), mark.text.c_str());
    }
  if (shown > 8) text_dim("and " + std::to_string(shown - 8) + " more");
  ImGui::EndTooltip();
}

void lanes(UiState& ui, ImVec2 size) {
  const RunView& view = ui.shown();
  const Theme& t = theme();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  push_small();
  const float names = ImGui::CalcTextSize("Checkpoints").x + em(0.6f), pad = em(0.5f);
  const Axis axis{at.x + names + pad, at.x + size.x - pad, static_cast<double>(first_step(view)), static_cast<double>(view.snapshot->step)};
  const float loss = size.y * 0.34f, lane = (size.y - loss) / 3;
  const float tops[] = {at.y, at.y + loss, at.y + loss + lane, at.y + loss + 2 * lane, at.y + size.y};
  static constexpr const char* kNames[] = {"Loss", "Ranks", "Checkpoints", "Events"};
  list->AddRectFilled({at.x + names, at.y}, {at.x + size.x, at.y + size.y}, t.card, ImGui::GetStyle().FrameRounding);
  for (int i = 0; i < 4; ++i) {
    const float middle = (tops[i] + tops[i + 1]) / 2;
    const float width = ImGui::CalcTextSize(kNames[i]).x;
    list->AddText({at.x + names - em(0.4f) - width, std::round(middle - ImGui::GetFontSize() / 2)}, t.dim, kNames[i]);
    if (i > 0) list->AddLine({at.x + names, tops[i]}, {at.x + size.x, tops[i]}, t.grid);
  }
  ImGui::PopFont();
  ImGui::SetCursorScreenPos({at.x + names, at.y});
  ImGui::InvisibleButton("lanes", {size.x - names, size.y});
  const bool hovered = ImGui::IsItemHovered(), can = !no_past(ui);
  const float mouse = ImGui::GetMousePos().x;
  // Only when the mouse moves: the axis of a run that trains moves under a mouse that is held still.
  if (can && (ImGui::IsItemActivated() || (ImGui::IsItemActive() && ImGui::GetIO().MouseDelta.x != 0))) {
    ui.timeline.playing = false;
    seek(ui, axis.step(std::clamp(mouse, axis.left, axis.right)));
  }
  if (view.snapshot->step == 0) return;
  list->PushClipRect({at.x + names, at.y}, {at.x + size.x, at.y + size.y}, true);
  draw_loss(ui, axis, tops[0] + em(0.2f), tops[1] - em(0.2f));
  for (const bool cuts : {true, false}) {  // cuts are many and lie behind the falls that led to them
    if (!cuts) draw_drops(view, axis, tops[1] + em(0.1f), tops[2]);
    for (const Mark& mark : view.marks) {
      if ((mark.kind == Mark::cut) != cuts) continue;
      if (mark.kind == Mark::segment && static_cast<double>(mark.step) <= axis.first) continue;  // it begins there anyway
      const int of = mark.kind == Mark::checkpoint ? 2 : cuts || mark.kind == Mark::growth ? 1 : 3;
      draw_mark(mark, axis, at.y, (tops[of] + tops[of + 1]) / 2);
    }
  }
  const float x = std::round(axis.at(static_cast<double>(cursor_step(ui))));
  const ImU32 color = ui.replaying() ? t.warning : t.accent;
  list->AddLine({x, at.y}, {x, at.y + size.y}, color, std::max(1.0f, em(0.12f)));
  list->AddTriangleFilled({x - em(0.4f), at.y}, {x + em(0.4f), at.y}, {x, at.y + em(0.55f)}, color);
  list->PopClipRect();
  if (hovered && can) hover(view, axis, mouse);
  if (hovered && !can) ImGui::SetTooltip("%s", no_past(ui));
}

}  // namespace

float timeline_height() { return 2 * ImGui::GetFrameHeight() + em(1.7f); }

void draw_timeline(UiState& ui) {
  handle_keys(ui, KeyScope::timeline);
  const float top = em(0.4f), inner = ImGui::GetWindowHeight() - 2 * top, left = ImGui::GetCursorPosX();
  ImGui::SetCursorPosY(top);
  ImGui::BeginGroup();
  transport_buttons(ui);
  ImGui::SetCursorPos({left, top + inner - ImGui::GetFrameHeight()});
  ImGui::AlignTextToFramePadding();
  ways_on(ui);
  ImGui::EndGroup();
  // Wide buttons push the lanes aside, by so much that they do not tremble with every digit.
  const float from = left + std::max(em(20.5f), em(2) * std::ceil((ImGui::GetItemRectSize().x + em(0.8f)) / em(2)));
  ImGui::SetCursorPos({from, top});
  lanes(ui, {ImGui::GetWindowWidth() - from - em(0.8f), inner});
}

}  // namespace comera::studio
