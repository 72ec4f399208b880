// Parallel coordinates: one axis per differing setting and result. Dragging along an axis selects a range; other runs are
// faint in every tab.
#include <algorithm>
#include <cmath>

#include "app/studio/compare/parallel_axes.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_layers.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

struct Frame {
  float top = 0, bottom = 0, nowhere = 0;  // ends of the axes; place of runs without a value
  float spread = 0;                        // lines through the same value are spread by this to both sides
  float y(float place) const { return std::isfinite(place) ? bottom + (top - bottom) * place : nowhere; }
};

// The value as text, or the reason that there is none.
std::string text_of(const ParallelAxis& axis, size_t run) {
  return axis.unused[run] ? "not used" : axis.texts[run].empty() ? "none" : axis.texts[run];
}

// Label for runs without a value.
const char* nowhere_text(const std::vector<ParallelAxis>& axes) {
  bool unused = false, unknown = false;
  for (const ParallelAxis& axis : axes)
    for (size_t i = 0; i < axis.places.size(); ++i)
      if (!std::isfinite(axis.places[i])) (axis.unused[i] ? unused : unknown) = true;
  return unused && unknown ? "none, or not used" : unused ? "not used" : unknown ? "none" : nullptr;
}

void centred(ImDrawList* list, float x, float y, const std::string& text, ImU32 color, float width) {
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  const float left = x - std::min(size.x, width) / 2;
  list->PushClipRect({left, y - 1}, {left + width, y + size.y + 1}, true);
  list->AddText({std::round(left), std::round(y)}, color, text.c_str());
  list->PopClipRect();
}

// Dragging sets the selected range of an axis; a click removes it.
void brush(Compare& compare, const ParallelAxis& axis, const Frame& frame, float x, float width) {
  ImGui::SetCursorScreenPos({x - width / 2, frame.top - em(0.3f)});
  ImGui::InvisibleButton(axis.id.c_str(), {width, frame.bottom - frame.top + em(0.6f)});
  const auto place = [&](float y) { return std::clamp((frame.bottom - y) / (frame.bottom - frame.top), 0.0f, 1.0f); };
  if (ImGui::IsItemActive()) {
    const ImVec2 from = ImGui::GetIO().MouseClickedPos[0], to = ImGui::GetMousePos();
    if (std::abs(to.y - from.y) > em(0.3f))
      compare.brushes[axis.id] = {std::min(place(from.y), place(to.y)), std::max(place(from.y), place(to.y))};
    else
      compare.brushes.erase(axis.id);
  }
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNS);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddLine({x, frame.top}, {x, frame.bottom}, hovered ? theme().text : theme().pressed, std::max(1.0f, em(0.1f)));
  const auto found = compare.brushes.find(axis.id);
  if (found == compare.brushes.end()) return;
  const ImVec2 low(x - em(0.5f), frame.y(found->second.second)), high(x + em(0.5f), frame.y(found->second.first));
  list->AddRectFilled(low, high, theme().accent_soft, em(0.2f));
  list->AddRect(low, high, theme().accent, em(0.2f));
}

void draw_axis(Compare& compare, const ParallelAxis& axis, const Frame& frame, float x, float spacing, float title_y) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float line = ImGui::GetTextLineHeight();
  brush(compare, axis, frame, x, em(2.2f));
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s\nDrag to select a range; click to clear it.", axis.id.c_str());
  std::string values;
  for (size_t i = 0; i < axis.texts.size(); ++i) values += (i ? "\n" : "") + label_of(compare, *compare.runs[i]) + "\t" + text_of(axis, i);
  ImGui::PushID(axis.id.c_str());
  copy_menu({{"Copy name", axis.id}, {"Copy values", values}});
  ImGui::PopID();
  centred(list, x, title_y, axis.title, theme().text, spacing - em(0.4f));
  centred(list, x, title_y + line, axis.group, theme().dim, spacing - em(0.4f));
  if (!axis.high.empty()) centred(list, x, frame.top - frame.spread - line - em(0.35f), axis.high, theme().dim, spacing - em(0.4f));
  if (!axis.low.empty()) centred(list, x, frame.bottom + frame.spread + em(0.35f), axis.low, theme().dim, spacing - em(0.4f));
}

}  // namespace

void draw_parallel_tab(Compare& compare) {
  const std::vector<ParallelAxis> axes = parallel_axes(compare);
  push_small();
  ImGui::AlignTextToFramePadding();
  text_fit("Drag along an axis to select a range: other runs become faint in every tab.",
           ImGui::GetContentRegionAvail().x - em(compare.brushes.empty() ? 0 : 9), theme().dim);
  if (!compare.brushes.empty()) {
    ImGui::SameLine(0, em(1));
    if (button("Clear ranges", {.icon = Icon::cross, .tooltip = "Clears the ranges of all axes"})) compare.brushes.clear();
  }
  if (axes.size() < 2) {
    ImGui::PopFont();
    empty_state(Icon::chart, "No differences", "These runs have the same settings and results.");
    return;
  }
  // Axes keep a height at which labels do not overlap; in a low window the tab scrolls.
  ImGui::BeginChild("axes", {0, std::max(ImGui::GetContentRegionAvail().y, em(16))}, 0, ImGuiWindowFlags_HorizontalScrollbar);
  const ImVec2 at = ImGui::GetCursorScreenPos(), space = ImGui::GetContentRegionAvail();
  const float line = ImGui::GetTextLineHeight(), count = static_cast<float>(axes.size());
  // Axes that do not fit scroll; none is cut at the edge.
  const float fitting = std::max(1.0f, std::floor(space.x / em(7.5f)));
  const float spacing = std::floor(space.x / std::min(count, fitting));
  const char* nowhere = nowhere_text(axes);
  const float weight = std::max(1.5f, em(0.13f)), spread = weight * 0.6f * static_cast<float>(compare.runs.size() - 1);
  Frame frame;
  frame.spread = spread;
  frame.top = at.y + 3 * line + em(1) + spread;
  const float below = line + em(nowhere ? 2.8f : 1.2f) + spread;
  frame.bottom = std::max(frame.top + em(4), at.y + space.y - below);
  frame.nowhere = frame.bottom + below - em(0.5f) - spread;
  const auto x_of = [&](size_t i) { return at.x + spacing * (static_cast<float>(i) + 0.5f); };
  for (size_t i = 0; i < axes.size(); ++i) draw_axis(compare, axes[i], frame, x_of(i), spacing, at.y);
  fade_unbrushed(compare);
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (nowhere) list->AddText({at.x, frame.nowhere - line / 2}, theme().dim, nowhere);
  const ComparedRun* hovered = nullptr;
  std::string hovered_text;
  for (const bool faint : {true, false})  // faint runs first, so that they are drawn behind
    for (size_t r = 0; r < compare.runs.size(); ++r) {
      const ComparedRun& run = *compare.runs[r];
      if (run.faint() != faint) continue;
      // Runs with equal values are drawn side by side.
      const float aside = spread * (2 * static_cast<float>(r) / static_cast<float>(compare.runs.size() - 1) - 1);
      for (size_t i = 0; i < axes.size(); ++i) {
        const ImVec2 here(x_of(i), frame.y(axes[i].places[r]) + aside);
        if (i > 0) {
          const ImVec2 before(x_of(i - 1), frame.y(axes[i - 1].places[r]) + aside);
          if (dashed(run.slot))
            draw_dashed(list, {before, here}, color_of(run), weight * weight_of(compare, run));
          else
            list->AddLine(before, here, color_of(run), weight * weight_of(compare, run));
        }
        draw_marker(list, marker_of(run.slot), here, ImGui::GetFontSize() * 0.26f, color_of(run));
        const ImVec2 mouse = ImGui::GetMousePos();
        if (ImGui::IsWindowHovered() && std::hypot(mouse.x - here.x, mouse.y - here.y) < em(0.5f)) {
          hovered = &run;
          hovered_text = axes[i].title + "  " + text_of(axes[i], r);
        }
      }
    }
  // Words are drawn at their places, over the lines.
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i].low.empty()) continue;
    for (size_t r = 0; r < axes[i].texts.size(); ++r) {
      if (axes[i].texts[r].empty()) continue;
      const float width = std::min(ImGui::CalcTextSize(axes[i].texts[r].c_str()).x, spacing - em(1)), y = frame.y(axes[i].places[r]);
      list->AddRectFilled({x_of(i) - width / 2 - em(0.3f), y - line / 2}, {x_of(i) + width / 2 + em(0.3f), y + line / 2}, theme().card,
                          em(0.2f));
      centred(list, x_of(i), y - line / 2, axes[i].texts[r], theme().text, spacing - em(1));
    }
  }
  if (hovered) compare.hovered = hovered->wanted;
  if (hovered) ImGui::SetTooltip("%s\n%s", label_of(compare, *hovered).c_str(), hovered_text.c_str());
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({spacing * count, frame.nowhere - at.y});
  ImGui::EndChild();
  name_item("chart:parallel");
  ImGui::PopFont();
}

namespace {

constexpr const char* kParallelTitle = "Parallel coordinates";

Chart parallel_chart(const Compare& compare, const std::vector<ParallelAxis>& axes) {
  constexpr float kSpacing = 120, kTop = 130, kBottom = 400, kNowhere = 432;
  const ImVec2 size(std::max(480.0f, 40 + kSpacing * static_cast<float>(axes.size())), 460);
  Chart chart{"parallel", kParallelTitle, {}, begin_drawing(size, "Settings that differ, and results", note_of(compare))};
  Drawing& drawing = chart.drawing;
  draw_names(drawing, compare, 63);
  const auto x_of = [&](size_t i) { return 20 + kSpacing * (static_cast<float>(i) + 0.5f); };
  const auto y_of = [&](float place) { return std::isfinite(place) ? kBottom + (kTop - kBottom) * place : kNowhere; };
  std::vector<std::vector<std::string>> table = {{"run"}};
  if (const char* nowhere = nowhere_text(axes)) drawing.text({20, kNowhere + 16}, 11, theme().dim, nowhere);
  for (size_t i = 0; i < axes.size(); ++i) {
    table[0].push_back(axes[i].id);
    drawing.line({{x_of(i), kTop}, {x_of(i), kBottom}}, theme().pressed, 1);
    drawing.text({x_of(i), 86}, 12, theme().text, axes[i].title.substr(0, 18), Anchor::middle);
    drawing.text({x_of(i), 101}, 11, theme().dim, axes[i].group.substr(0, 20), Anchor::middle);
    drawing.text({x_of(i), kTop - 12}, 11, theme().dim, axes[i].high, Anchor::middle);
    drawing.text({x_of(i), kBottom + 12}, 11, theme().dim, axes[i].low, Anchor::middle);
  }
  for (size_t r = 0; r < compare.runs.size(); ++r) {
    const ComparedRun& run = *compare.runs[r];
    std::vector<Point> points;
    table.push_back({label_of(compare, run)});
    for (size_t i = 0; i < axes.size(); ++i) {
      const float aside = 1.5f * static_cast<float>(r);
      points.emplace_back(x_of(i), y_of(axes[i].places[r]) + aside);
      table.back().push_back(axes[i].unused[r] ? "not used" : axes[i].texts[r]);
      add_marker(drawing, marker_of(run.slot), points.back(), 3.6f, color_of(run));
    }
    drawing.line(points, color_of(run), 1.6f, -1, dashed(run.slot) ? 5.0f : 0.0f);
  }
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].low.empty())
      for (size_t r = 0; r < axes[i].texts.size(); ++r)
        if (!axes[i].texts[r].empty()) drawing.text({x_of(i) + 8, y_of(axes[i].places[r]) - 9}, 11, theme().text, axes[i].texts[r]);
  chart.csv = [table = std::move(table)] { return csv_text(table); };
  return chart;
}

}  // namespace

std::vector<ListedChart> parallel_charts(Compare& compare) {
  const auto axes = std::make_shared<const std::vector<ParallelAxis>>(parallel_axes(compare));
  if (axes->size() < 2) return {};
  return {{"parallel", kParallelTitle, [&compare, axes] { return parallel_chart(compare, *axes); }}};
}

}  // namespace comera::studio
