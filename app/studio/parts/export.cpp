#include "app/studio/parts/export.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "app/figure/raster.h"
#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/texts.h"
#include "core/base/paths.h"

namespace comera::studio {
namespace fs = std::filesystem;
namespace {

// Keeps letters, digits and dashes only.
std::string file_name(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

const Panel* panel_of(const std::string& id) {
  for (const std::span<const Panel> all : {panels(), pages()})
    for (const Panel& panel : all)
      if (id == panel.id) return &panel;
  return nullptr;
}

std::vector<ListedChart> charts_of(UiState& ui, const std::string& id) {
  const Panel* panel = panel_of(id);
  return panel && panel->charts && (ui.has_run() || !panel->of_a_run) ? panel->charts(ui) : std::vector<ListedChart>{};
}

// The focused panel, else the first visible panel with charts.
std::string panel_in_front(const UiState& ui) {
  if (ui.layout == "compare") return "compare";
  if (ui.layout == "new") return "form";
  if (ui.layout == "start") return "runs";
  const ImGuiWindow* focused = ImGui::GetCurrentContext()->NavWindow;
  std::string first;
  for (const Panel& panel : panels()) {
    const ImGuiWindow* window = ImGui::FindWindowByName((std::string(panel.title) + "###" + panel.id).c_str());
    if (!panel.charts || !window || !window->WasActive || window->Hidden) continue;
    if (focused && focused->RootWindow == window) return panel.id;
    if (first.empty()) first = panel.id;
  }
  return ui.layout == "train" ? first : "";
}

void draw_dialog(UiState& ui) {
  Exports& e = ui.exports;
  constexpr const char* kTitle = "Export###export";
  if (!e.open) return;
  if (!ImGui::IsPopupOpen(kTitle)) ImGui::OpenPopup(kTitle);
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Always, {0.5f, 0.5f});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(1.2f), em(1)));
  if (ImGui::BeginPopupModal(kTitle, nullptr, ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoSavedSettings)) {
    const Panel* panel = panel_of(e.panel);
    const auto count = static_cast<int>(e.titles.size());
    const float width = std::min(em(26), ImGui::GetMainViewport()->WorkSize.x - em(4)), label = em(5);
    const auto row = [&](const char* name) {
      ImGui::AlignTextToFramePadding();
      text_dim(name);
      ImGui::SameLine(label);
      ImGui::SetNextItemWidth(width - label);
    };
    const auto name_of_choice = [&](int i) {
      return i == count ? "All " + std::to_string(count) + " charts of " + panel->title : e.titles[static_cast<size_t>(i)];
    };
    row("Chart");
    if (ImGui::BeginCombo("##chart", whole_label(name_of_choice(e.chart)).c_str())) {
      for (int i = 0; i < (count > 1 ? count + 1 : 1); ++i)
        if (ImGui::Selectable((whole_label(name_of_choice(i)) + "##" + std::to_string(i)).c_str(), i == e.chart)) e.chart = i;
      ImGui::EndCombo();
    }
    row("As");
    ImGui::Checkbox("CSV", &e.csv);
    tooltip("The data of the chart.");
    ImGui::SameLine(0, em(1));
    ImGui::Checkbox("SVG", &e.svg);
    tooltip("Vector graphics, sharp at every size.");
    ImGui::SameLine(0, em(1));
    ImGui::Checkbox("PNG", &e.png);
    tooltip("Pixels, as `comera export --to png` writes them.");
    if (e.png) {
      ImGui::SameLine(0, em(0.6f));
      ImGui::SetNextItemWidth(em(4.5f));
      ImGui::SliderInt("##png-scale", &e.png_scale, 1, 4, "%dx");
    }
    row("Folder");
    char folder[1024];
    std::snprintf(folder, sizeof folder, "%s", e.folder.c_str());
    if (ImGui::InputText("##folder", folder, sizeof folder)) e.folder = folder;
    ImGui::Dummy({width, em(0.4f)});
    const bool some = e.csv || e.svg || e.png;
    const bool exports = button("Export", {.icon = Icon::save,
                                           .primary = true,
                                           .enabled = some && !e.folder.empty(),
                                           .why_not = !some ? "Select a format" : "Enter a folder"});
    ImGui::SetItemDefaultFocus();  // Enter exports
    if (ImGui::IsWindowAppearing()) ImGui::SetNavCursorVisible(true);
    if (exports) {
      export_charts(ui);
      e.open = false;
    }
    ImGui::SameLine();
    if (button("Cancel") || ImGui::IsKeyPressed(ImGuiKey_Escape)) e.open = false;
    if (!e.open) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace

std::vector<Chart> drawn(const std::vector<ListedChart>& charts) {
  std::vector<Chart> out;
  for (const ListedChart& chart : charts) out.push_back(chart.draw());
  return out;
}

Chart chart_of(std::string name, Figure figure) {
  Chart chart{std::move(name), figure.title, {}, draw_figure(figure)};
  chart.csv = [figure = std::move(figure)] { return figure_csv(figure); };
  return chart;
}

std::string cut_words(const std::string& text, float room) {
  const auto most = static_cast<size_t>(std::max(1.0f, room / kCharWidth));
  return text.size() <= most ? text : text.substr(0, most > 3 ? most - 3 : 1) + "...";
}

Drawing begin_drawing(Point size, const std::string& title, const std::string& note) {
  Drawing out;
  out.size = size;
  out.background = theme().card;
  out.title = title + (note.empty() ? "" : ", " + note);
  out.text({20, 22}, 16, theme().text, title, Anchor::left, true);
  out.text({20, 42}, kChartText, theme().dim, cut_words(note, size.x - 40));
  return out;
}

Chart table_chart(std::string name, const std::string& title, const std::string& note, std::vector<std::vector<std::string>> rows,
                  const TableLook& look) {
  constexpr float kRow = 20, kPad = 16, kMost = 260;
  const float indent = look.marks.empty() ? 0 : 16;
  std::vector<float> widths;
  for (const std::vector<std::string>& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(60);
      widths[i] = std::min(kMost, std::max(widths[i], static_cast<float>(row[i].size()) * kCharWidth + kPad));
    }
  float width = 40 + indent;
  for (const float one : widths) width += one;
  const float top = 70 + look.above;
  Chart chart{
      std::move(name), title, {}, begin_drawing({std::max(width, 420.0f), top + 6 + kRow * static_cast<float>(rows.size())}, title, note)};
  Drawing& out = chart.drawing;
  for (size_t r = 0; r < rows.size(); ++r) {
    const float y = top + kRow * static_cast<float>(r);
    const Color color = r == 0 ? theme().dim : theme().text;
    float x = 20 + indent;
    if (r < look.marks.size() && look.marks[r] != 0) out.rect({20, y - 5}, {30, y + 5}, look.marks[r], 2);
    for (size_t i = 0; i < rows[r].size(); ++i) {
      const std::string text = cut_words(rows[r][i], widths[i] - kPad / 2);
      if (i == 0)
        out.text({x, y}, kChartText, color, text);
      else
        out.text({x + widths[i] - 4, y}, kChartText, color, text, Anchor::right);
      x += widths[i];
    }
    out.line({{20, y + kRow / 2}, {out.size.x - 20, y + kRow / 2}}, theme().grid, 1);
  }
  chart.csv = [rows = std::move(rows)] { return csv_text(rows); };
  return chart;
}

Drawing on_page(Drawing drawing, const std::string& title, const std::string& note) {
  constexpr float kSide = 20, kTop = kBelowNote + 8;
  Drawing page = begin_drawing({drawing.size.x + 2 * kSide, drawing.size.y + kTop + kSide}, title, note);
  drawing.move({kSide, kTop});
  page.clips = std::move(drawing.clips);
  page.shapes.insert(page.shapes.end(), drawing.shapes.begin(), drawing.shapes.end());
  return page;
}

std::string exports_folder(const Exports& e) { return e.folder.empty() ? paths::data_folder() + "/exports" : e.folder; }

// Taken two frames later, when the menu or palette with the action has closed.
void take_screenshot(UiState& ui) {
  Exports& e = ui.exports;
  if (!e.can_read_pixels) return toast(ui, Level::warning, "There is no window for a screenshot");
  if (!e.writer) e.writer = std::make_shared<FileWriter>();
  e.screenshot_in = 3;
}

void open_export(UiState& ui, const std::string& panel, const std::string& chart) {
  Exports& e = ui.exports;
  e.titles.clear();
  for (const ListedChart& chart : charts_of(ui, panel)) e.titles.push_back(chart.title);
  if (e.titles.empty()) {
    toast(ui, Level::info,
          panel == "form"                       ? "There is no forecast to export while a setting is invalid or being checked"
          : panel == "runs"                     ? "The list has no runs"
          : !ui.has_run() && panel != "compare" ? "There is no run to export yet"
                                                : "Nothing to export: open a panel with a chart first");
    return;
  }
  e.folder = exports_folder(e);
  if (e.panel != panel) e.chart = 0;
  e.panel = panel;
  if (const auto wanted = std::find(e.titles.begin(), e.titles.end(), chart); wanted != e.titles.end())
    e.chart = static_cast<int>(wanted - e.titles.begin());
  e.chart = std::clamp(e.chart, 0, static_cast<int>(e.titles.size()) - (e.titles.size() > 1 ? 0 : 1));
  e.open = true;
}

void export_front(UiState& ui) { open_export(ui, panel_in_front(ui)); }

void export_charts(UiState& ui) {
  Exports& e = ui.exports;
  std::vector<ListedChart> charts = charts_of(ui, e.panel);
  if (e.chart >= 0 && e.chart < static_cast<int>(e.titles.size()))
    std::erase_if(charts, [&](const ListedChart& chart) { return chart.title != e.titles[static_cast<size_t>(e.chart)]; });
  FileWriter::Batch batch{e.folder, {}};
  const Snapshot& s = ui.snapshot();
  const Panel* panel = panel_of(e.panel);
  const std::string prefix = (panel && panel->of_a_run ? file_name(s.run.empty() ? s.name : s.run) : "") + "-";
  for (const Chart& chart : drawn(charts)) {
    const std::string name = (prefix == "-" ? "" : prefix) + chart.name;
    if (e.csv) batch.files.push_back({name, "csv", chart.csv});
    if (e.svg) batch.files.push_back({name, "svg", [drawing = chart.drawing] { return to_svg(drawing); }});
    if (e.png)
      batch.files.push_back({name, "png", [drawing = chart.drawing, scale = static_cast<float>(e.png_scale) * chart.drawing.unit] {
                               return png_file(raster(drawing, scale));
                             }});
  }
  if (!e.writer) e.writer = std::make_shared<FileWriter>();
  if (!batch.files.empty()) e.writer->write(std::move(batch));
}

float export_button_width() { return em(1.9f); }

void export_button(UiState& ui, const char* panel) {
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right - export_button_width()));
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.3f), 0));
  ImGui::PushID(panel);
  if (button("###export", {.icon = Icon::more,
                           .tooltip = "Export as CSV, SVG or PNG",
                           .keys = ui.settings.keys.of("file.export"),
                           .size = {export_button_width(), 0}}))
    open_export(ui, panel);
  ImGui::PopID();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

void draw_export(UiState& ui) { draw_dialog(ui); }

void tick_exports(UiState& ui) {
  if (!ui.exports.writer) return;
  for (const FileWriter::Result& result : ui.exports.writer->take_results()) {
    if (result.written.size() == 1)
      toast(ui, Level::good, "Written: " + result.written[0]);
    else if (!result.written.empty())
      toast(ui, Level::good, std::to_string(result.written.size()) + " files written, the first: " + result.written[0]);
    if (result.given_up) toast(ui, Level::info, "The export was given up");
    if (!result.problem.empty()) toast(ui, Level::error, result.problem);
  }
}

}  // namespace comera::studio
