// The timeline below the panels: events by step, and the replay cursor.
#include "app/studio/shown_run/timeline.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "app/format.h"
#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "core/base/error.h"

namespace comera::studio {
namespace {

std::string steps(int64_t count) { return thousands(static_cast<double>(count)); }

std::string speed_text(double speed) {
  char text[16];
  std::snprintf(text, sizeof text, "%gx", speed);
  return text;
}

void to_next_button() { ImGui::SameLine(0, em(0.25f)); }

void move_buttons(UiState& ui) {
  Timeline& t = ui.timeline;
  const char* why = no_past(ui);
  const bool can = !why;
  const auto small = [&](const char* label, Icon icon, const char* tip, const char* action) {
    const bool hit = button(
        label, {.icon = icon, .enabled = can, .tooltip = tip, .keys = ui.settings.keys.of(action), .why_not = why, .size = {em(2.1f), 0}});
    to_next_button();
    return hit;
  };
  if (small("###mark-back", Icon::rewind, "Previous event", "timeline.event_back")) seek_mark(ui, -1);
  if (small("###back", Icon::step_back, "One step back", "timeline.back")) move_cursor(ui, -1);
  if (button("###play", {.icon = t.playing ? Icon::pause : Icon::play,
                         .primary = t.playing,
                         .enabled = can,
                         .tooltip = t.playing ? "Pause replay" : "Play replay, from here or from the start",
                         .keys = ui.settings.keys.of("timeline.play"),
                         .why_not = why,
                         .size = {em(2.6f), 0}}))
    toggle_play(ui);
  to_next_button();
  if (small("###on", Icon::step, "One step forward", "timeline.on")) move_cursor(ui, 1);
  if (small("###mark-on", Icon::forward, "Next event", "timeline.event_on")) seek_mark(ui, 1);
}

void play_buttons(UiState& ui) {
  Timeline& t = ui.timeline;
  const char* why = no_past(ui);
  const bool can = !why;
  std::string speeds = "Replay speed; 1x is the training speed";
  for (const auto& [action, does] : {std::pair("timeline.slower", "halves"), {"timeline.faster", "doubles"}, {"timeline.speed", "resets"}})
    if (const std::string keys = key_text(ui.settings.keys.of(action)); !keys.empty()) speeds += "\n[" + keys + "] " + does;
  if (button((speed_text(t.speed) + "###speed").c_str(), {.enabled = can, .tooltip = speeds.c_str(), .size = {em(3.4f), 0}}))
    ImGui::OpenPopup("speeds");
  if (ImGui::BeginPopup("speeds")) {
    for (const double speed : {0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0})
      if (ImGui::MenuItem(speed_text(speed).c_str(), nullptr, speed == t.speed)) t.speed = speed;
    ImGui::EndPopup();
  }
  to_next_button();
  static constexpr const char* kLoops[] = {"No loop. Click: loop", "Loops over the selection", "Loops over the whole run"};
  const bool around = t.loop == Loop::selection;
  if (button(around ? "sel.###loop" : "###loop", {.icon = Icon::loop,
                                                  .primary = t.loop != Loop::off,
                                                  .enabled = can,
                                                  .tooltip = kLoops[static_cast<int>(t.loop)],
                                                  .size = {around ? em(4) : em(2.1f), 0}}))
    next_loop(ui);
  to_next_button();
  if (button(t.by_time ? "Time###axis" : "Steps###axis",
             {.tooltip = t.by_time ? "Axis: recorded time. Click: steps" : "Axis: steps. Click: recorded time", .size = {em(3.8f), 0}}))
    t.by_time = !t.by_time;
}

// Menu of forks and reproduction; during a reproduction, its progress.
void more_ways(UiState& ui) {
  if (const Reproducing* again = ui.reproducing.get()) {
    const std::string label = (again->gives_up() ? std::string("Stopping") : "Reproducing " + steps(again->at())) + "###reproducing";
    const std::string tip = again->question().name + ": computing steps again and comparing them with the stored ones. Click: stop";
    if (button(label.c_str(),
               {.icon = Icon::cross, .enabled = !again->gives_up(), .tooltip = tip.c_str(), .why_not = "Stops after this step"}))
      ui.reproducing->give_up();
    return;
  }
  if (button("###ways", {.icon = Icon::more, .tooltip = "Fork or reproduce from here", .size = {em(2.4f), 0}})) ImGui::OpenPopup("ways");
  if (!ImGui::BeginPopup("ways")) return;
  for (const char* action :
       {"run.fork", "run.fork_checkpoint", "run.fork_with", "run.back", "run.compare-parent", "run.reproduce", "run.reproduce_all"})
    draw_action(ui, action);
  ImGui::EndPopup();
}

// Buttons that return to the live run, fork or resume.
void ways_on(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& newest = *view.snapshot;
  const int64_t step = cursor_step(ui);
  if (!ui.has_run() || newest.step == 0) return text_dim("No steps yet");
  const auto next = [] { ImGui::SameLine(0, em(0.35f)); };
  const bool trains = view.live && !view.ended();
  if (trains && !ui.replaying()) {
    text_dim("Following the run at step " + steps(step));
    next();
    return more_ways(ui);
  }
  if (ui.replaying()) {
    if (button(trains ? "Back to live###follow" : "###follow", {.icon = Icon::forward,
                                                                .primary = trains,
                                                                .tooltip = "Ends the replay: shows the newest step",
                                                                .keys = ui.settings.keys.of("timeline.live")}))
      follow_run(ui);
    next();
  }
  if (button(("Fork from step " + steps(step) + "###fork").c_str(), {.icon = Icon::fork,
                                                                     .enabled = !no_fork(ui, step),
                                                                     .tooltip = "Starts a new run from here with the settings of this step",
                                                                     .why_not = no_fork(ui, step)}))
    fork_shown(ui);
  next();
  if (trains) return more_ways(ui);
  const bool stored = ui.store && !newest.run.empty() && !view.store.empty();
  const bool resumable = newest.phase == Phase::stopped || newest.phase == Phase::interrupted;
  if (button("Resume###resume-here", {.icon = Icon::play,
                                      .enabled = stored && resumable,
                                      .tooltip = "Continues from the last checkpoint. The next button offers a rollback",
                                      .why_not = "Only stopped or interrupted runs can resume"}))
    resume_shown(ui);
  next();
  more_ways(ui);
}

// Places of steps: evenly spaced, or by recorded time.
struct Axis {
  float left, right;
  double first, last;  // steps
  const PlayClock* clock;
  double low = place(first), high = place(last);
  double place(double step) const { return clock ? clock->at(step) : step; }
  float at(double step) const {
    return left + (right - left) * static_cast<float>(high > low ? std::clamp((place(step) - low) / (high - low), 0.0, 1.0) : 1);
  }
  int64_t step(float x) const {
    const double there = low + (high - low) * static_cast<double>((x - left) / (right - left));
    return std::llround(clock ? clock->step(there) : there);
  }
};

// From top to bottom; lanes without events are not shown. With little room, the lane `events` has all marks without a lane of their own.
enum class Lane { loss, ranks, checkpoints, edits, alerts, segments, events };

const char* title_of(Lane lane) {
  constexpr const char* kTitles[] = {"Loss", "Ranks", "Checkpoints", "Edits", "Alerts", "Segments", "Events"};
  return kTitles[static_cast<size_t>(lane)];
}

bool roomy() { return ImGui::GetMainViewport()->Size.y >= em(50); }

Lane lane_of(Mark::Kind kind) {
  switch (kind) {
    case Mark::checkpoint:
      return Lane::checkpoints;
    case Mark::cut:
    case Mark::growth:
      return Lane::ranks;
    case Mark::edit:
      return roomy() ? Lane::edits : Lane::events;
    case Mark::alert:
      return roomy() ? Lane::alerts : Lane::events;
    case Mark::late_stage:
    case Mark::early_stage:
    case Mark::segment:
      break;
  }
  return roomy() ? Lane::segments : Lane::events;
}

std::vector<Lane> used_lanes(const RunView& view) {
  std::set<Lane> used = {Lane::loss};
  if (!view.rank_drops.empty()) used.insert(Lane::ranks);
  for (const Mark& mark : view.marks)
    if (mark.kind != Mark::segment || static_cast<double>(mark.step) > static_cast<double>(first_step(view)))
      used.insert(lane_of(mark.kind));
  return {used.begin(), used.end()};
}

struct Lanes {
  std::vector<Lane> lanes;
  std::vector<float> tops;  // upper edges, and the lower edge of the last lane
  size_t index(Lane lane) const { return static_cast<size_t>(std::find(lanes.begin(), lanes.end(), lane) - lanes.begin()); }
  bool has(Lane lane) const { return index(lane) < lanes.size(); }
  size_t at(Lane lane) const {
    CHECK(has(lane), "no lane " << title_of(lane));
    return index(lane);
  }
  float top(Lane lane) const { return tops[at(lane)]; }
  float bottom(Lane lane) const { return tops[at(lane) + 1]; }
  float middle(Lane lane) const { return (top(lane) + bottom(lane)) / 2; }
};

// The lane of the loss has twice the height of others.
Lanes lay_out_lanes(std::vector<Lane> lanes, float top, float height) {
  Lanes out{std::move(lanes), {top}};
  const float lane = height / static_cast<float>(out.lanes.size() + 1);
  for (size_t i = 0; i < out.lanes.size(); ++i) out.tops.push_back(std::round(top + static_cast<float>(i + 2) * lane));
  return out;
}

// The smoothed loss on a logarithmic scale, as an overview.
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
  const Rising<double>& x = view.rank_drops.x();
  const std::vector<double>& y = view.rank_drops.y();
  for (size_t i = 0; i < x.size();) {  // one bar per column of pixels, with the largest drop
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
  if (mark.kind == Mark::late_stage || mark.kind == Mark::early_stage || mark.kind == Mark::segment)
    list->AddLine({x, top}, {x, middle + 1.6f * r}, color_of(mark.kind), std::max(1.0f, em(mark.kind == Mark::segment ? 0.08f : 0.12f)));
  if (mark.kind != Mark::segment) draw_mark_sign(list, mark.kind, {x, middle}, r);
}

// Segments of uninterrupted training; a new one begins at each resume.
void draw_segments(const RunView& view, const Axis& axis, float middle) {
  std::vector<double> begins{axis.first};
  for (const Mark& mark : view.marks)
    if (mark.kind == Mark::segment && static_cast<double>(mark.step) > axis.first) begins.push_back(static_cast<double>(mark.step));
  begins.push_back(axis.last);
  const float gap = std::max(1.0f, em(0.08f)), half = em(0.2f);
  for (size_t i = 0; i + 1 < begins.size(); ++i)
    ImGui::GetWindowDrawList()->AddRectFilled({axis.at(begins[i]) + (i > 0 ? gap : 0), middle - half},
                                              {std::max(axis.at(begins[i]) + gap, axis.at(begins[i + 1]) - gap), middle + half},
                                              with_alpha(theme().dim, i % 2 ? 0.75f : 0.45f), em(0.12f));
}

// Marks long breaks, which the axis leaves out.
void draw_gaps(const PlayClock& clock, const Axis& axis, float top, float bottom) {
  const float wide = em(0.18f), high = em(0.35f);
  for (const PlayClock::Gap& gap : clock.gaps()) {
    const float x = axis.at(gap.step);
    std::vector<ImVec2> line;
    for (float y = top; y < bottom + high; y += high) line.push_back({line.size() % 2 ? x + wide : x - wide, std::min(y, bottom)});
    ImGui::GetWindowDrawList()->AddPolyline(line.data(), static_cast<int>(line.size()), theme().dim, std::max(1.0f, em(0.08f)));
  }
}

// A line of a tooltip, about a mark if it has one.
struct PlaceLine {
  const Mark* mark = nullptr;
  std::string text;
};

std::vector<PlaceLine> lines_at(const UiState& ui, const Axis& axis, float x) {
  const PlayClock& clock = ui.timeline.clock;
  const int64_t step = axis.step(std::clamp(x, axis.left, axis.right));
  std::vector<PlaceLine> lines;
  lines.push_back({nullptr, "step " + steps(step) + ", after " + duration(clock.at(static_cast<double>(step))) + " of training"});
  if (axis.clock)
    for (const PlayClock::Gap& gap : clock.gaps())
      if (std::abs(axis.at(gap.step) - x) < em(0.35f)) lines.push_back({nullptr, "no training here for " + duration(gap.seconds)});
  int shown = 0;
  for (const Mark& mark : ui.shown().marks)
    if (std::abs(axis.at(static_cast<double>(mark.step)) - x) < em(0.35f) && ++shown <= 8)
      lines.push_back({&mark, steps(mark.step) + "  " + mark.text});
  if (shown > 8) lines.push_back({nullptr, "and " + std::to_string(shown - 8) + " more"});
  return lines;
}

// Draws the tooltip and returns its text for copying.
std::string tell(const std::vector<PlaceLine>& lines) {
  std::string all;
  for (const PlaceLine& line : lines) all += (all.empty() ? "" : "\n") + line.text;
  if (!ImGui::BeginTooltip()) return all;
  for (const PlaceLine& line : lines) {
    if (!line.mark) {
      text_dim(line.text);
      continue;
    }
    ImGui::PushStyleColor(ImGuiCol_Text, color_of(line.mark->kind));
    ImGui::Bullet();
    ImGui::PopStyleColor();
    ImGui::SameLine();
    ImGui::TextUnformatted(line.text.c_str());
  }
  if (collects_items()) name_item("tip:" + all);
  ImGui::EndTooltip();
  return all;
}

// `line`: a single lane, with the signs over the loss and without names.
void lanes(UiState& ui, ImVec2 size, bool line = false) {
  const RunView& view = ui.shown();
  Timeline& timeline = ui.timeline;
  const Theme& t = theme();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  // In the font in which marks are drawn: which lanes there are depends on its size (roomy).
  const Lanes all = lay_out_lanes(line ? std::vector{Lane::loss} : used_lanes(view), at.y, size.y);
  push_small();
  const float names = line ? 0 : ImGui::CalcTextSize("Checkpoints").x + em(0.6f), pad = em(0.5f);
  const Axis axis{at.x + names + pad, at.x + size.x - pad, static_cast<double>(first_step(view)), static_cast<double>(view.snapshot->step),
                  timeline.by_time ? &timeline.clock : nullptr};
  list->AddRectFilled({at.x + names, at.y}, {at.x + size.x, at.y + size.y}, t.card, ImGui::GetStyle().FrameRounding);
  for (const Lane lane : all.lanes) {
    if (line) break;
    const char* title = title_of(lane);
    const float width = ImGui::CalcTextSize(title).x;
    list->AddText({at.x + names - em(0.4f) - width, std::round(all.middle(lane) - ImGui::GetFontSize() / 2)}, t.dim, title);
    if (lane != Lane::loss) list->AddLine({at.x + names, all.top(lane)}, {at.x + size.x, all.top(lane)}, t.grid);
  }
  ImGui::PopFont();
  ImGui::SetCursorScreenPos({at.x + names, at.y});
  focus_area("lanes", ImGui::GetCursorPos(), {size.x - names, size.y});
  name_item("lanes");
  if (collects_items())  // only for tests
    for (const Lane lane : all.lanes)
      name_area(std::string("lane:") + title_of(lane), {at.x, all.top(lane)}, {at.x + size.x, all.bottom(lane)});
  const bool hovered = ImGui::IsItemHovered(), can = !no_past(ui);
  const float mouse = ImGui::GetMousePos().x;
  const int64_t under = axis.step(std::clamp(mouse, axis.left, axis.right));
  const bool by_mouse = ImGui::IsMouseDown(0);  // an activation by key has no position
  if (ImGui::IsItemActivated()) timeline.anchor = by_mouse && can && ImGui::GetIO().KeyShift ? under : -1;
  if (ImGui::IsItemActive() && timeline.anchor >= 0) {
    if (mouse_dragged()) select_steps(ui, timeline.anchor, under);
  } else if (by_mouse && can && (ImGui::IsItemActivated() || (ImGui::IsItemActive() && ImGui::GetIO().MouseDelta.x != 0))) {
    // Only if the mouse moves: while a run trains, the axis moves under a mouse at rest.
    timeline.playing = false;
    seek(ui, under);
  }
  if (ImGui::IsItemDeactivated() && std::exchange(timeline.anchor, -1) >= 0 && !mouse_dragged()) drop_selection(ui);
  if (view.snapshot->step == 0) return;
  list->PushClipRect({at.x + names, at.y}, {at.x + size.x, at.y + size.y}, true);
  if (timeline.selection.any()) {
    const float from = axis.at(static_cast<double>(timeline.selection.first)), to = axis.at(static_cast<double>(timeline.selection.last));
    list->AddRectFilled({from, at.y}, {to, at.y + size.y}, t.accent_soft);
    for (const float edge : {from, to}) list->AddLine({edge, at.y}, {edge, at.y + size.y}, t.accent, std::max(1.0f, em(0.06f)));
  }
  draw_loss(ui, axis, all.top(Lane::loss) + em(0.2f), all.bottom(Lane::loss) - em(0.2f));
  if (all.has(Lane::segments)) draw_segments(view, axis, all.middle(Lane::segments));
  for (const bool cuts : {true, false}) {  // cuts are frequent, so they are drawn behind rank drops
    if (!cuts && all.has(Lane::ranks)) draw_drops(view, axis, all.top(Lane::ranks) + em(0.1f), all.bottom(Lane::ranks));
    for (const Mark& mark : view.marks) {
      if ((mark.kind == Mark::cut) != cuts || (line && cuts)) continue;
      if (mark.kind == Mark::segment && static_cast<double>(mark.step) <= axis.first) continue;  // the axis begins there
      draw_mark(mark, axis, at.y, all.middle(line ? Lane::loss : lane_of(mark.kind)));
    }
  }
  if (axis.clock) draw_gaps(timeline.clock, axis, at.y, at.y + size.y);
  const float x = std::round(axis.at(static_cast<double>(cursor_step(ui))));
  const ImU32 color = ui.replaying() ? t.warning : t.accent;
  list->AddLine({x, at.y}, {x, at.y + size.y}, color, std::max(1.0f, em(0.12f)));
  list->AddTriangleFilled({x - em(0.4f), at.y}, {x + em(0.4f), at.y}, {x, at.y + em(0.55f)}, color);
  list->PopClipRect();
  if (hovered && !can) ImGui::SetTooltip("%s", no_past(ui));
  std::vector<Copied> what;
  if (hovered && can && timeline.anchor < 0) what = {{"Copy tooltip", tell(lines_at(ui, axis, led_by_keyboard() ? x : mouse))}};
  ImGui::PushID("lanes");
  copy_menu(what, hovered);
  ImGui::PopID();
}

// Summary of the selection as one line of text.
std::string summary_text(const RangeSummary& s) {
  std::string out =
      "Steps " + steps(s.range.first) + " - " + steps(s.range.last) + ":  " + steps(s.steps) + " recorded in " + duration(s.seconds);
  if (std::isfinite(s.loss_mean))
    out += ";  loss " + significant(s.loss_first, 4) + " -> " + significant(s.loss_last, 4) + ", mean " + significant(s.loss_mean, 4) +
           " (" + significant(s.loss_low, 3) + " - " + significant(s.loss_high, 3) + ")";
  if (s.ranks_fell > 0) out += ";  ranks -" + thousands(s.ranks_fell);
  if (s.checkpoints > 0) out += ";  " + counted(s.checkpoints, "checkpoint");
  if (s.edits > 0) out += ";  " + counted(s.edits, "edit");
  if (s.alerts > 0) out += ";  " + counted(s.alerts, "alert");
  return out;
}

void selection_line(UiState& ui, float width) {
  push_small();
  const std::string text = summary_text(selection_summary(ui));
  const float close = em(1.5f);
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.3f), 0));
  const bool drop = button("###drop-selection",
                           {.icon = Icon::cross, .tooltip = "Clear the selection (Shift+click in the timeline)", .size = {close, 0}});
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  ImGui::SameLine(0, em(0.3f));
  text_fit(text, width - close - em(0.3f), theme().dim);
  copy_menu({{"Copy selection", text}});
  ImGui::PopFont();
  if (drop) drop_selection(ui);
}

}  // namespace

float timeline_height(const UiState& ui) {
  // Height of two rows of buttons, or of lanes with readable names.
  const float buttons = 2 * ImGui::GetFrameHeight() + em(1.7f),
              lanes = em(1.15f) * static_cast<float>(used_lanes(ui.shown()).size() + 1) + em(0.8f);
  return (roomy() ? std::max(buttons, lanes) : buttons) + (ui.timeline.selection.any() ? em(1.4f) : 0);
}

void draw_timeline(UiState& ui) {
  handle_keys(ui, KeyScope::timeline);
  const bool selected = ui.timeline.selection.any();
  const float top = em(0.4f), left = ImGui::GetCursorPosX(), inner = ImGui::GetWindowHeight() - 2 * top - (selected ? em(1.4f) : 0);
  const float between = em(0.5f), rows = 2 * ImGui::GetFrameHeight() + between, first = std::round(top + (inner - rows) / 2);
  ImGui::SetCursorPosY(first);
  ImGui::BeginGroup();
  move_buttons(ui);
  play_buttons(ui);
  ImGui::SetCursorPos({left, first + ImGui::GetFrameHeight() + between});
  ImGui::AlignTextToFramePadding();
  ways_on(ui);
  ImGui::EndGroup();
  // The width of the buttons is rounded up, so that the lanes do not move with every digit.
  const float from = left + std::max(em(20.5f), em(2) * std::ceil((ImGui::GetItemRectSize().x + em(0.8f)) / em(2)));
  const float width = ImGui::GetWindowWidth() - from - em(0.8f);
  ImGui::SetCursorPos({from, top});
  lanes(ui, {width, inner});
  if (!selected || !ui.timeline.selection.any()) return;
  ImGui::SetCursorPos({from, top + inner + em(0.2f)});
  selection_line(ui, width);
}

float timeline_line_height() { return ImGui::GetFrameHeight() + em(0.7f); }

void draw_timeline_line(UiState& ui) {
  handle_keys(ui, KeyScope::timeline);
  const float height = ImGui::GetFrameHeight(), top = std::round((ImGui::GetWindowHeight() - height) / 2);
  ImGui::SetCursorPosY(top);
  move_buttons(ui);
  if (button("###follow", {.icon = Icon::to_mark,
                           .enabled = ui.replaying(),
                           .tooltip = "Shows the newest step",
                           .keys = ui.settings.keys.of("timeline.live"),
                           .why_not = "Already at the newest step",
                           .size = {em(2.1f), 0}}))
    follow_run(ui);
  ImGui::SameLine(0, em(0.8f));
  const Snapshot& newest = *ui.shown().snapshot;
  const std::string text = newest.step > 0 ? "Step " + steps(cursor_step(ui)) : "No steps yet";
  const float from = ImGui::GetCursorPosX();
  ImGui::AlignTextToFramePadding();
  ImGui::PushStyleColor(ImGuiCol_Text, ui.replaying() ? theme().warning : theme().dim);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopStyleColor();
  name_item("says:" + text);
  // Reserves the width of the newest step, so that the lane does not move.
  const std::string widest = newest.step > 0 ? "Step " + steps(newest.step) : text;
  const float left = from + std::max(ImGui::CalcTextSize(widest.c_str()).x, ImGui::CalcTextSize(text.c_str()).x) + em(0.8f);
  ImGui::SetCursorPos({left, top});
  lanes(ui, {std::max(em(4), ImGui::GetWindowWidth() - left - em(0.8f)), height}, true);
}

}  // namespace comera::studio
