#include "app/studio/form/live_controls.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

constexpr double kPostEvery = 0.15;  // seconds between edits while a slider moves: the store keeps every edit

std::string as_text(double value, bool whole) {
  char text[32];
  std::snprintf(text, sizeof text, whole ? "%.0f" : "%.6g", value);
  return text;
}

// The requested edit that is not in effect yet; null = none.
const EditState* pending(const LiveRun* run, const std::string& path) {
  if (!run) return nullptr;
  const auto edit = run->edits().find(path);
  return edit != run->edits().end() && edit->second.stage == EditState::pending ? &edit->second : nullptr;
}

void why_not(const LiveRun* run) {
  if (!run && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled | ImGuiHoveredFlags_DelayNormal))
    ImGui::SetTooltip("Only while this window trains the run");
}

// As sentences.
std::string help_of(const FieldInfo& info) {
  std::string text = info.help;
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + "." + (*info.more ? " " : "") + info.more;
}

}  // namespace

void edit_sign(const UiState& ui, const std::string& path, float right) {
  const LiveRun* run = ui.editable();
  if (!run) return;
  const auto found = run->edits().find(path);
  if (found == run->edits().end()) return;
  const EditState& edit = found->second;
  const Theme& t = theme();
  const std::string text = edit.stage == EditState::pending   ? "pending"
                           : edit.stage == EditState::refused ? "refused"
                                                              : "step " + thousands(static_cast<double>(edit.step));
  const Icon icon = edit.stage == EditState::pending ? Icon::clock : edit.stage == EditState::refused ? Icon::cross : Icon::check;
  const ImU32 color = edit.stage == EditState::pending ? t.warning : edit.stage == EditState::refused ? t.bad : t.good;
  ImGui::SameLine();
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right - chip_width(text.c_str(), icon)));
  const ImVec2 at = ImGui::GetCursorPos();
  chip(text.c_str(), color, icon);
  const bool of_late_stage = !ui.snapshot().late && path.starts_with("method.comera.target");
  focus_area(("##sign-" + path).c_str(), at, {chip_width(text.c_str(), icon), ImGui::GetTextLineHeight()});
  name_item("sign:" + path);
  told(("sign-" + path).c_str(),
       edit.stage == EditState::refused   ? edit.reason
       : edit.stage == EditState::pending ? "Takes effect at the next step"
       : of_late_stage                    ? "Stored at this step. The ranks follow when the late stage begins"
                                          : "In effect since this step",
       text);
}

void live_setting(UiState& ui, const FieldValues& values, const std::string& path) {
  const FieldEntry* setting = find_setting(path);
  const auto found = values.find(path);
  if (!setting || found == values.end()) return;
  const FieldInfo& info = setting->info;
  if (const bool* on = std::get_if<bool>(&found->second)) return live_switch(ui, info.title, help_of(info), *on, path);
  const int64_t* whole = std::get_if<int64_t>(&found->second);
  const double* real = std::get_if<double>(&found->second);
  if (!whole && !real) return;
  live_slider(ui,
              {.title = info.title,
               .help = help_of(info),
               .low = info.usual.low,
               .high = info.slides() ? info.usual.high : info.usual.low + 1,
               .logarithmic = info.scale != Scale::linear,
               .format = (whole ? "%.0f" : "%.3g") + (*info.unit ? " " + std::string(info.unit) : std::string()),
               .whole = whole != nullptr,
               .replans = info.live == Live::replans},
              whole ? static_cast<double>(*whole) : *real, path);
}

namespace {

// Once for each value, and not before the last answer is there.
void ask_memory(const UiState& ui, LiveRun& run, const std::string& path, const std::string& value, const LiveSlider& look) {
  const Foreseen& seen = ui.snapshot().foreseen;
  if (run.waits<ForeseeCommand>() || (seen.path == path && seen.value == value)) return;
  run.foresee(path, value, look.whole ? static_cast<int64_t>(look.high) : 0);
}

// While the value moves or waits: "Memory 312.4 MiB, now 290.1 MiB".
void memory_line(const UiState& ui, const LiveRun* run, const std::string& path) {
  const Foreseen& seen = ui.snapshot().foreseen;
  if (!run || seen.path != path || (!ui.drags.contains(path) && !pending(run, path))) return;
  const bool fits = seen.planned.total() <= seen.room;
  const std::string text = "Memory " + mebibytes(static_cast<double>(seen.planned.total())) + " with " + seen.value + ", now " +
                           mebibytes(static_cast<double>(ui.snapshot().memory_now.total())) + (fits ? "" : ": more than there is");
  push_small();
  ImGui::PushTextWrapPos(0);
  ImGui::PushStyleColor(ImGuiCol_Text, fits ? theme().dim : theme().bad);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopStyleColor();
  ImGui::PopTextWrapPos();
  name_item("memory:" + path);
  ImGui::PopFont();
}

}  // namespace

void live_slider(UiState& ui, const LiveSlider& look, double value, const std::string& path) {
  LiveRun* run = ui.editable();
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  ImGui::TextUnformatted(look.title.c_str());
  ImGui::SameLine(0, em(0.35f));
  help_marker(look.help.c_str());
  edit_sign(ui, path, right);
  const auto rounded = [&](double v) { return look.whole ? std::round(v) : v; };
  const std::string in_effect = as_text(rounded(value), look.whole);
  const Foreseen& seen = ui.snapshot().foreseen;
  const double high = look.replans && seen.path == path && seen.largest > 0 ? std::min(look.high, double(seen.largest)) : look.high;
  const auto drag = ui.drags.find(path);
  if (drag != ui.drags.end())
    value = drag->second.value;
  else if (const EditState* edit = pending(run, path))
    value = edit->value == "null" ? look.high : std::atof(edit->value.c_str());
  ImGui::PushID(path.c_str());
  ImGui::BeginDisabled(!run);
  const float box = em(5.4f);
  const double end = std::max(high, rounded(std::atof(in_effect.c_str())));
  const auto move = [&] {
    Drag& moved = ui.drags[path];
    moved.value = look.whole || value <= look.low || value >= end ? rounded(value) : std::clamp(slider_value(value), look.low, end);
    if (look.replans || !run || ImGui::GetTime() < moved.next_post || (!moved.posted && as_text(moved.value, look.whole) == in_effect))
      return;
    run->edit(path, as_text(moved.value, look.whole), std::exchange(moved.posted, true));
    moved.next_post = ImGui::GetTime() + kPostEvery;
  };
  if (slim_slider("##slider", value, look.low, end, look.logarithmic, ImGui::GetContentRegionAvail().x - box - em(0.5f))) move();
  const bool slid = ImGui::IsItemDeactivated();
  if (look.replans && run && (ImGui::IsItemActive() || ui.drags.contains(path)))
    ask_memory(ui, *run, path, as_text(rounded(value), look.whole), look);
  name_item(path);
  ImGui::SameLine(0, em(0.5f));
  // An input field for exact values.
  ImGui::SetNextItemWidth(box);
  ImGui::PushFont(fonts().numbers, ImGui::GetStyle().FontSizeBase * 0.87f);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.3f), em(0.12f)));
  if (ImGui::InputScalar("##value", ImGuiDataType_Double, &value, nullptr, nullptr, look.format.c_str(),
                         ImGuiInputTextFlags_AutoSelectAll)) {
    if (std::isfinite(value)) {
      ui.drags[path].value = rounded(value);
    } else {  // typed: "nan", "inf"
      ui.drags.erase(path);
      toast(ui, Level::warning, look.title + " takes a number. It stays as it is");
    }
  }
  name_item(path + ":value");
  ImGui::PopStyleVar();
  ImGui::PopFont();
  const bool let_go = slid || ImGui::IsItemDeactivated();
  if (let_go) {
    if (const auto moved = ui.drags.find(path); moved != ui.drags.end()) {
      const std::string last = as_text(std::max(0.0, moved->second.value), look.whole);
      if (run && (moved->second.posted || last != in_effect)) run->edit(path, last, moved->second.posted);
      ui.drags.erase(moved);
    }
  }
  ImGui::EndDisabled();
  why_not(run);
  if (look.replans) memory_line(ui, run, path);
  ImGui::PopID();
  ImGui::Dummy({0, em(0.1f)});
}

void live_switch(UiState& ui, const std::string& title, const std::string& help, bool on, const std::string& path, const char* text_on,
                 const char* text_off) {
  LiveRun* run = ui.editable();
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  if (const EditState* edit = pending(run, path)) on = edit->value == text_on;
  ImGui::PushID(path.c_str());
  ImGui::BeginDisabled(!run);
  if (ImGui::Checkbox(title.c_str(), &on) && run) run->edit(path, on ? text_on : text_off);
  name_item(path);
  ImGui::EndDisabled();
  why_not(run);
  ImGui::PopID();
  ImGui::SameLine(0, em(0.35f));
  help_marker(help.c_str());
  edit_sign(ui, path, right);
}

}  // namespace comera::studio
