// Memory by purpose: now, peak, planned; and the views of app/studio/memory.
#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/memory/by_layer.h"
#include "app/studio/memory/in_step.h"
#include "app/studio/memory/over_steps.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

void table(const UiState& ui) {
  const Snapshot& s = ui.snapshot();
  const float width = mebibytes_width();
  const bool planned = s.memory_planned.total() > 0 && ImGui::GetContentRegionAvail().x > 3 * (width + em(0.8f)) + em(8);
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(em(0.4f), em(0.05f)));
  const bool open = ImGui::BeginTable("purposes", planned ? 4 : 3, ImGuiTableFlags_SizingStretchProp);
  ImGui::PopStyleVar();
  if (!open) return;
  const float room = ImGui::GetContentRegionAvail().x, share = std::max(width, room / (planned ? 4.5f : 3.5f) - em(0.8f));
  ImGui::TableSetupColumn("Purpose", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn("Now", ImGuiTableColumnFlags_WidthFixed, share);
  ImGui::TableSetupColumn("Peak", ImGuiTableColumnFlags_WidthFixed, share);
  if (planned) ImGui::TableSetupColumn("Planned", ImGuiTableColumnFlags_WidthFixed, share);
  const auto number = [](double bytes, ImU32 color) {
    ImGui::PushID(ImGui::TableGetRowIndex() * 8 + ImGui::TableGetColumnIndex());
    ImGui::PushFont(fonts().numbers, 0);
    text_right(mebibytes(bytes), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, color);
    ImGui::PopFont();
    tooltip(exact_bytes(bytes).c_str());
    copy_menu({{"Copy value", mebibytes(bytes)}, {"Copy bytes", csv_number(bytes)}});
    ImGui::PopID();
  };
  ImGui::TableNextRow();
  for (int column = 0; column < ImGui::TableGetColumnCount(); ++column) {
    ImGui::TableSetColumnIndex(column);
    if (column == 0)
      text_dim(ImGui::TableGetColumnName(column));
    else
      text_right(ImGui::TableGetColumnName(column), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, theme().dim);
    if (column == 2) tooltip("Bytes of each purpose at the peak of the total. A single purpose may hold more at another time.");
    if (column == 3) tooltip("From the dry run before step 1, with the initial ranks.");
  }
  for (int i = 0; i < kPurposes; ++i) {
    const auto at = static_cast<size_t>(i);
    if (s.memory_now.bytes[at] == 0 && s.memory_peak.bytes[at] == 0 && s.memory_planned.bytes[at] == 0) continue;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const PurposeLook look = look_of(static_cast<Purpose>(i));
    color_mark(look.color);
    text_fit(look.title, ImGui::GetContentRegionAvail().x, theme().text);
    tooltip(look.help);
    ImGui::TableNextColumn();
    number(static_cast<double>(s.memory_now.bytes[at]), theme().text);
    ImGui::TableNextColumn();
    number(static_cast<double>(s.memory_peak.bytes[at]), theme().text);
    if (!planned) continue;
    ImGui::TableNextColumn();
    number(static_cast<double>(s.memory_planned.bytes[at]), theme().dim);
  }
  const MemoryAt at = memory_around(ui);
  const auto beside = [&](const std::string& title, const char* help, double bytes, ImU32 mark) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    color_mark(mark);
    text_fit(title, ImGui::GetContentRegionAvail().x, theme().dim);
    name_item("row:" + title);
    tooltip(help);
    ImGui::TableNextColumn();
    if (std::isfinite(bytes)) return number(bytes, theme().dim);
    text_fit("not recorded", ImGui::GetContentRegionAvail().x, theme().dim);
    tooltip("Not recorded for this run.");
  };
  if (!has_own_memory(s)) beside("Rest of the process", kRestHelp, at.rest, rest_of_process_color());
  beside(memory_level_title(s), "Measured about once a second: memory that all processes use on this device or machine.", at.used,
         theme().pressed);
  ImGui::EndTable();
}

// Selects the view, at the right end of the title; a combo box if there is little room.
void view_choice(UiState& ui) {
  static constexpr const char* kViews[] = {"By purpose", "By layer", "Over time", "In a step"};
  constexpr int kCount = static_cast<int>(std::size(kViews));
  push_small();
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.5f), em(0.12f)));
  float width = em(1.2f) * static_cast<float>(kCount);
  for (const char* view : kViews) width += ImGui::CalcTextSize(view).x;
  ImGui::SameLine();
  const float room = ImGui::GetContentRegionAvail().x, list = std::min(em(8), room);
  const bool fits = width <= room;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, room - (fits ? width : list)));
  if (fits) {
    segmented("memory-view", kViews, kCount, ui.memory_view);
  } else {
    ImGui::SetNextItemWidth(list);
    ImGui::Combo("##memory-view", &ui.memory_view, kViews, kCount);
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

void what_is_counted(UiState& ui) {
  static constexpr const char* kCounts[] = {"Parameters", "Training", "Whole step"};
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.4f), em(0.05f)));
  segmented("memory-counts", kCounts, 3, ui.memory_counts);
  ImGui::PopStyleVar();
  ImGui::SameLine(0, em(0.8f));
  static constexpr const char* kSaid[] = {"Cores and rank vectors: the saved model.", "Parameters, gradients and moments.",
                                          "With memory of a step that is not known by layer."};
  text_fit(kSaid[ui.memory_counts], std::max(1.0f, ImGui::GetContentRegionAvail().x - em(1.6f)), theme().dim);
  ImGui::SameLine(0, em(0.35f));
  help_marker(
      "Memory in use now. Gradients and moments are assigned to the layer of their parameters. If dense: the matrix that the tensor train "
      "stands for, with gradient and moments of the same optimizer.");
}

// Peak, current memory and dense equivalent, and the sources of these numbers.
void top_strip(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  const double now = static_cast<double>(s.memory_now.total()), peak = static_cast<double>(s.memory_peak.total());
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - export_button_width() - em(0.4f);
  const auto number = [&](const char* caption, const std::string& value, const std::string& behind) {
    push_numbers(1.1f);
    const float wide = ImGui::CalcTextSize(value.c_str()).x;
    ImGui::PopFont();
    push_small();
    const float width = wide + ImGui::CalcTextSize(caption).x + ImGui::CalcTextSize(behind.c_str()).x + em(2);
    ImGui::PopFont();
    if (ImGui::GetCursorPosX() + width > right) return;
    const float base = ImGui::GetCursorPosY();
    small_beside(caption, theme().dim);
    ImGui::SameLine(0, em(0.4f));
    ImGui::SetCursorPosY(base);
    push_numbers(1.1f);
    ImGui::TextUnformatted(value.c_str());
    ImGui::PopFont();
    if (!behind.empty()) {
      ImGui::SameLine(0, em(0.4f));
      small_beside(behind, theme().dim);
    }
    ImGui::SameLine(0, em(1.1f));
    ImGui::SetCursorPosY(base);
  };
  ImGui::BeginGroup();
  number("peak", mebibytes(peak), "");
  number("now", mebibytes(now), "");
  const ModelMemory memory = memory_by_layer(s);
  if (memory.known && now > 0) {
    char times[32];
    std::snprintf(times, sizeof times, "(%.1fx)", memory.dense / now);
    number("dense equivalent", mebibytes(memory.dense), times);
  }
  if (s.memory_planned.total() > 0) number("planned", mebibytes(static_cast<double>(s.memory_planned.total())), "");
  ImGui::NewLine();
  ImGui::EndGroup();
  name_item("memory-strip");
  tooltip(
      "Now and peak: every byte that the allocator of training counts. Dense equivalent: memory now, but with a dense matrix, its gradient "
      "and moments in place of each tensor train. In brackets: its ratio to memory now.");
  copy_menu({{"Copy values",
              "peak\t" + exact_bytes(peak) + "\nnow\t" + exact_bytes(now) +
                  (memory.known ? "\ndense equivalent\t" + exact_bytes(memory.dense) : "") +
                  (s.memory_planned.total() > 0 ? "\nplanned\t" + exact_bytes(static_cast<double>(s.memory_planned.total())) : "")}});
  ImGui::SameLine();
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right));
  export_button(ui, "memory");
}

constexpr const char* kMemoryNow = "Memory now";

// The bar and the table as a chart.
Chart purposes_chart(const UiState& ui, const std::string& note) {
  const Snapshot& s = ui.snapshot();
  constexpr float kBar = 14;
  const bool planned = s.memory_planned.total() > 0;
  std::vector<std::vector<std::string>> shown{{"purpose", "now", "peak"}}, rows{{"purpose", "now_bytes", "peak_bytes"}};
  TableLook look{.marks = {0}, .above = kBar + 10};
  if (planned) {
    shown[0].push_back("planned");
    rows[0].push_back("planned_bytes");
  }
  const auto add = [&](const std::string& title, Color mark, std::vector<double> bytes) {
    shown.push_back({title});
    rows.push_back({title});
    look.marks.push_back(mark);
    bytes.resize(planned ? 3 : 2, NAN);
    for (const double value : bytes) {
      shown.back().push_back(std::isfinite(value) ? mebibytes(value) : "");
      rows.back().push_back(std::isfinite(value) ? std::to_string(std::llround(value)) : "");
    }
  };
  for (size_t i = 0; i < static_cast<size_t>(kPurposes); ++i) {
    if (s.memory_now.bytes[i] == 0 && s.memory_peak.bytes[i] == 0 && s.memory_planned.bytes[i] == 0) continue;
    const PurposeLook of = look_of(static_cast<Purpose>(i));
    std::vector<double> bytes{static_cast<double>(s.memory_now.bytes[i]), static_cast<double>(s.memory_peak.bytes[i])};
    if (planned) bytes.push_back(static_cast<double>(s.memory_planned.bytes[i]));
    add(of.title, of.color, std::move(bytes));
  }
  const MemoryAt at = memory_around(ui);
  if (std::isfinite(at.rest)) add("Rest of the process", rest_of_process_color(), {at.rest});
  if (std::isfinite(at.used)) add(memory_level_title(s), theme().pressed, {at.used});
  Chart chart = table_chart("memory-now", kMemoryNow, note, std::move(shown), look);
  chart.csv = [rows = std::move(rows)] { return csv_text(rows); };
  const float full = chart.drawing.size.x - 40;
  const double most = static_cast<double>(std::max(s.memory_now.total(), s.memory_peak.total()));
  chart.drawing.rect({20, kBelowNote}, {20 + full, kBelowNote + kBar}, theme().raised, 3);
  float x = 20;
  for (size_t i = 0; i < static_cast<size_t>(kPurposes); ++i) {
    const float part = full * static_cast<float>(static_cast<double>(s.memory_now.bytes[i]) / most);
    if (part > 0) chart.drawing.rect({x, kBelowNote}, {x + part, kBelowNote + kBar}, look_of(static_cast<Purpose>(i)).color, 1);
    x += part;
  }
  return chart;
}

}  // namespace

void draw_memory(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& s = ui.snapshot();
  if (begin_card("memory-card")) {
    if (s.memory_now.total() == 0 && s.memory_peak.total() == 0) {
      empty_state(Icon::chart, "No memory yet",
                  ui.has_run() && !view.live ? "Memory was not recorded for this run." : "Every byte of training appears here by purpose.");
      end_card();
      return;
    }
    const double now = static_cast<double>(s.memory_now.total()), peak = static_cast<double>(s.memory_peak.total());
    card_title("Memory", "Every byte that training holds, counted by its allocator. Planned: from a dry run before step 1.");
    ImGui::SameLine(0, em(0.6f));
    push_small();
    const bool measured = now > 0;
    chip(measured ? "measured" : "computed", measured ? theme().good : theme().dim, measured ? Icon::check : Icon::dot);
    tooltip(measured ? "Counted during training; the dense equivalent is computed." : "From the plan: nothing was counted yet.");
    ImGui::PopFont();
    view_choice(ui);
    top_strip(ui);
    purpose_bar(s.memory_now, std::max(now, peak), em(0.8f));
    if (now > 0) name_item("chart:memory-now");
    push_small();
    if (ui.memory_view == 1) {
      what_is_counted(ui);
      draw_memory_by_layer(ui, memory_by_layer(s));
      ImGui::PopFont();
      end_card();
      return;
    }
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const bool beside = space.x > em(52), under = !beside && space.y > em(22);
    if (ui.memory_view == 3) {
      draw_memory_in_step(s, space);
    } else if (ui.memory_view == 2) {
      draw_memory_plot(ui);
    } else if (beside) {
      ImGui::BeginChild("numbers", {space.x * 0.52f, 0});
      table(ui);
      if (const float left = ImGui::GetContentRegionAvail().y; left > em(7))
        draw_memory_in_step(s, {ImGui::GetContentRegionAvail().x, std::min(left, em(12))});
      ImGui::EndChild();
      ImGui::SameLine();
      draw_memory_plot(ui);
    } else {
      table(ui);
      if (under) {
        if (space.y > em(30)) draw_memory_in_step(s, {space.x, em(8)});
        draw_memory_plot(ui);
      }
    }
    ImGui::PopFont();
  }
  end_card();
}

std::vector<ListedChart> memory_charts(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  const std::string note = s.name + ", step " + thousands(static_cast<double>(s.step));
  std::vector<ListedChart> out;
  if (!ui.shown().memory[0].empty())
    out.push_back({"memory", memory_figure_title(ui), [&ui, note] { return chart_of("memory", memory_figure(ui, note)); }});
  if (knows_step(s)) out.push_back({"memory-in-step", "Memory in one step", [&s, note] { return memory_in_step_chart(s, note); }});
  if (memory_by_layer(s).known)
    out.push_back({"memory-by-layer", "Memory by layer", [&ui, &s, note] { return memory_by_layer_chart(ui, memory_by_layer(s), note); }});
  if (s.memory_now.total() > 0) out.push_back({"memory-now", kMemoryNow, [&ui, note] { return purposes_chart(ui, note); }});
  return out;
}

}  // namespace comera::studio
