// Results of the runs side by side, with differences to the baseline.
#include <algorithm>
#include <cmath>
#include <utility>

#include "app/studio/compare/tabs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {

void draw_delta(const Delta& delta) {
  if (delta.verdict == Delta::unknown) return;
  const Theme& t = theme();
  const ImU32 color = delta.verdict == Delta::better ? t.good : delta.verdict == Delta::worse ? t.bad : t.dim;
  std::string text = delta.text;
  if (*name_of(delta.verdict)) text += (text.empty() ? "" : " ") + std::string(name_of(delta.verdict));
  push_small();
  const float width = ImGui::CalcTextSize(text.c_str()).x, arrow = delta.difference != 0 ? em(0.9f) : 0;
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right - width - arrow));
  if (arrow > 0) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float r = em(0.28f), up = delta.difference > 0 ? -r : r, y = at.y + ImGui::GetTextLineHeight() * 0.52f;
    ImGui::GetWindowDrawList()->AddTriangleFilled({at.x, y - up * 0.8f}, {at.x + 2 * r, y - up * 0.8f}, {at.x + r, y + up * 0.8f}, color);
    ImGui::Dummy({arrow, 0});
    ImGui::SameLine(0, 0);
  }
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

void draw_quantity(const Compare& compare, const Quantity& quantity) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  push_small();
  const float how = quantity.how.empty() ? 0 : ImGui::CalcTextSize(quantity.how.c_str()).x + em(0.4f);
  ImGui::PopFont();
  text_fit(quantity.title, ImGui::GetContentRegionAvail().x - how, theme().text);
  if (!quantity.help.empty()) tooltip(quantity.help.c_str());
  if (!quantity.how.empty()) {
    ImGui::SameLine(0, em(0.4f));
    small_beside(quantity.how, theme().dim);
  }
  if (quantity.better != Better::none) {
    push_small();
    text_dim(quantity.better == Better::higher ? "higher is better" : "lower is better");
    ImGui::PopFont();
  }
  const ComparedRun* baseline = compare.baseline_run();
  const double base = baseline && baseline->read() ? quantity.value(*baseline) : NAN;
  for (const auto& run : compare.runs) {
    ImGui::TableNextColumn();
    const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
    const double value = run->read() ? quantity.value(*run) : NAN;
    if (!std::isfinite(value)) {
      push_small();
      text_right(run->read() ? "not recorded" : run->problem.empty() ? "reading" : "not read", right, theme().dim);
      ImGui::PopFont();
      continue;
    }
    push_numbers(0.95f);
    text_right(quantity.text(value), right, run->faint() ? theme().dim : theme().text);
    name_item("value:" + quantity.id + ":" + run->wanted + ":" + quantity.text(value));
    ImGui::PopFont();
    const std::string name = quantity.title + (quantity.how.empty() ? "" : ", " + quantity.how);
    ImGui::PushID((quantity.id + run->wanted).c_str());
    copy_menu({{"Copy value", quantity.text(value)},
               {"Copy number", csv_number(value)},
               {"Copy line", label_of(compare, *run) + "\t" + name + "\t" + quantity.text(value)}});
    ImGui::PopID();
    if (run.get() == baseline) continue;
    if (const char* why = baseline ? incomparable(*run, *baseline, quantity.id) : nullptr) {
      push_small();
      text_right(why, right, theme().warning);
      ImGui::PopFont();
      tooltip("This value is not comparable with the baseline.");
    } else {
      draw_delta(delta_of(quantity, value, base));
    }
  }
}

namespace {

// Results and metrics whose name fits the filter.
std::vector<Quantity> shown_quantities(const Compare& compare) {
  std::vector<Quantity> out = results();
  for (Quantity& quantity : other_metrics(compare.runs)) out.push_back(std::move(quantity));
  std::erase_if(out, [&](const Quantity& quantity) {
    return !compare.result_filter.fits(quantity.title + " " + quantity.how) && !compare.result_filter.fits(quantity.id);
  });
  return out;
}

}  // namespace

void draw_table_tab(Compare& compare) {
  const std::vector<Quantity> quantities = shown_quantities(compare);
  push_small();
  filter_box(compare.result_filter, "Result, metric or /regex/",
             "Rows with these words in their name; a regular expression between slashes: /loss|memory/",
             std::min(em(18), ImGui::GetContentRegionAvail().x), std::exchange(compare.wants_filter, false));
  ImGui::PopFont();
  if (quantities.empty()) {
    empty_state(Icon::none, "No match", "No row matches the filter.");
    return;
  }
  if (!begin_run_table("results", compare, compare.cursor < 0 ? "At the end of each run" : "At the cursor", em(12), em(9))) return;
  for (const Quantity& quantity : quantities) draw_quantity(compare, quantity);
  ImGui::EndTable();
  name_item("chart:results");
}

namespace {

std::vector<std::vector<std::string>> quantity_rows(const Compare& compare, const std::vector<Quantity>& quantities) {
  std::vector<std::vector<std::string>> rows = {{"quantity"}};
  for (const auto& run : compare.runs) rows[0].push_back(label_of(compare, *run));
  for (const Quantity& quantity : quantities) {
    rows.push_back({quantity.title + (quantity.how.empty() ? "" : ", " + quantity.how)});
    for (const auto& run : compare.runs) {
      const double value = run->read() ? quantity.value(*run) : NAN;
      rows.back().push_back(std::isfinite(value) ? quantity.text(value) : "");
    }
  }
  return rows;
}

}  // namespace

std::vector<ListedChart> table_charts(Compare& compare) {
  constexpr const char* kTitle = "Results";
  return {{"results", kTitle,
           [&compare] { return table_chart("results", kTitle, note_of(compare), quantity_rows(compare, shown_quantities(compare))); }}};
}

}  // namespace comera::studio
