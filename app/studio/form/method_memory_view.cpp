#include "app/studio/form/method_memory_view.h"

#include <imgui_internal.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "app/format.h"
#include "app/studio/form/duel_view.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/stacked_bars.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

constexpr const char* kMethodsTitle = "Memory of all methods";
constexpr float kOld = 0.45f;  // opacity of a plan that is made again

std::string size_text(int64_t bytes) { return mebibytes(static_cast<double>(bytes)); }

// Common to all rows, in pixels from the left end of a row.
struct Look {
  float width = 0;             // of a row
  float sign = 0;              // of the sign of the form's method, before the title
  float left = 0, length = 0;  // begin of bars, and the length of the largest one
  bool two_lines = false;      // titles are above the bars
  double full = 0;             // bytes of the largest peak
  int64_t available = 0;       // free bytes
  bool fits(int64_t bytes) const { return bytes <= available; }
  float end_of(int64_t bytes) const { return left + static_cast<float>(static_cast<double>(bytes) / full) * length; }
};

// `before`: taken in front of each row.
Look look_at(const MethodMemory& methods, float before) {
  Look look{.width = ImGui::GetContentRegionAvail().x - before, .sign = ImGui::GetTextLineHeight() * 1.2f};
  float titles = 0, peaks = 0;
  for (const MethodMemory::Row& row : methods.rows) {
    ImGui::PushFont(fonts().bold, 0);
    titles = std::max(titles, ImGui::CalcTextSize(row.plan.title.c_str()).x);
    ImGui::PopFont();
    if (!row.known || !row.plan.forecast) continue;
    const int64_t peak = row.plan.forecast->memory.total();
    look.full = std::max(look.full, static_cast<double>(peak));
    if (look.available == 0 || row.plan.id == methods.own) look.available = row.plan.forecast->available;
    ImGui::PushFont(fonts().numbers, 0);
    peaks = std::max(peaks, ImGui::CalcTextSize(size_text(peak).c_str()).x);
    ImGui::PopFont();
  }
  const bool all_fit = look.full <= static_cast<double>(look.available);
  const float behind = peaks + em(0.8f) + (all_fit ? 0 : ImGui::GetTextLineHeight());
  look.two_lines = look.width - look.sign - titles - behind < em(9);
  look.left = look.sign + (look.two_lines ? 0 : titles + em(0.6f));
  look.length = std::max(em(1), look.width - look.left - behind);
  return look;
}

// Titles and colours of the purposes that occur.
std::vector<BarKind> kinds_of(const MethodMemory& methods) {
  std::vector<BarKind> kinds;
  for (int i = 0; i < kPurposes; ++i)
    if (std::any_of(methods.rows.begin(), methods.rows.end(), [&](const MethodMemory::Row& row) {
          return row.known && row.plan.forecast && row.plan.forecast->memory.bytes[static_cast<size_t>(i)] > 0;
        }))
      kinds.push_back({look_of(static_cast<Purpose>(i)).title, look_of(static_cast<Purpose>(i)).color});
  return kinds;
}

void legend(const MethodMemory& methods) {
  bool first = true;
  for (const BarKind& kind : kinds_of(methods)) {
    const float width = ImGui::CalcTextSize(kind.title.c_str()).x + ImGui::GetTextLineHeight();
    if (!std::exchange(first, false)) beside_or_below(width, em(0.9f));
    color_mark(kind.color);
    text_fit(kind.title, ImGui::GetContentRegionAvail().x, theme().dim);
  }
}

float line_width() { return std::max(1.0f, em(0.14f)); }

// One line, so that rows stay where they are while plans come: free memory, after the sign of its line where there is one, and how many
// plans are not made yet.
void status(const MethodMemory& methods, const Look& look) {
  const bool exceeded = look.full > static_cast<double>(look.available);
  const bool known = look.available < std::numeric_limits<int64_t>::max();  // else the system does not tell
  const auto left = std::count_if(methods.rows.begin(), methods.rows.end(), [](const MethodMemory::Row& row) { return !row.current; });
  std::string text;
  if (look.full > 0 && known) text = (exceeded ? "" : "All fit: ") + size_text(look.available) + " are free";
  if (left > 0) text += (text.empty() ? "Planning " : ", planning ") + std::to_string(left) + " more";
  if (exceeded) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float line = ImGui::GetTextLineHeight();
    ImGui::GetWindowDrawList()->AddLine({at.x + line * 0.3f, at.y}, {at.x + line * 0.3f, at.y + line}, theme().text, line_width());
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + line);
  }
  text_fit(text, ImGui::GetContentRegionAvail().x, theme().dim);
  name_item("says:" + text);
  if (!methods.rows.empty() && methods.own.empty())
    text_fit("The method of the form is not in this list", ImGui::GetContentRegionAvail().x, theme().dim);
}

std::string refusal(const MethodPlan& plan) { return plan.refused.empty() ? "" : "Refused: " + plan.refused; }

std::string told_of(const MethodPlan& plan, const Look& look) {
  std::string text = find_method(plan.id).summary;
  if (!plan.forecast) return plan.refused.empty() ? text : text + "\n" + refusal(plan);
  const MemoryByPurpose& memory = plan.forecast->memory;
  for (int i = 0; i < kPurposes; ++i)
    if (const int64_t bytes = memory.bytes[static_cast<size_t>(i)]; bytes > 0)
      text += std::string("\n") + look_of(static_cast<Purpose>(i)).title + "  " + size_text(bytes);
  text += "\nPeak  " + exact_bytes(static_cast<double>(memory.total()));
  text += "\n" + thousands(static_cast<double>(plan.forecast->parameters)) + " parameters, ";
  text += thousands(static_cast<double>(plan.forecast->trainable)) + " trained";
  if (!look.fits(memory.total())) text += "\nDoes not fit: " + size_text(look.available) + " are free";
  return text;
}

void draw_title(const MethodPlan& plan, const Look& look, ImVec2 at, bool own) {
  const float line = ImGui::GetTextLineHeight();
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (own) draw_icon(list, Icon::dot, {at.x + line * 0.5f, at.y + line * 0.5f}, line * 0.8f, theme().accent);
  ImGui::PushFont(own ? fonts().bold : fonts().text, 0);
  ImGui::PushStyleColor(ImGuiCol_Text, plan.forecast ? theme().text : theme().dim);
  const float right = look.two_lines || !plan.forecast ? at.x + look.width : at.x + look.left - em(0.3f);
  ImGui::RenderTextEllipsis(list, {at.x + look.sign, at.y}, {right, at.y + line}, right, plan.title.c_str(),
                            plan.title.c_str() + plan.title.size(), nullptr);
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

// The bar, its peak behind it, and a piece of the line at the end of free memory, from the top of the row to the next row.
void draw_bar(const MethodMemory::Row& row, const Look& look, ImVec2 at, float height, float row_height) {
  const MethodPlan& plan = row.plan;
  const int64_t peak = plan.forecast->memory.total();
  const float line = ImGui::GetTextLineHeight(), end = at.x + look.end_of(peak), free = at.x + look.end_of(look.available);
  const float alpha = row.current ? 1 : kOld;
  ImDrawList* list = ImGui::GetWindowDrawList();
  paint_parts(purpose_parts(plan.forecast->memory), look.full, {at.x + look.left, at.y}, {look.length, height}, alpha);
  name_area("bar:" + plan.id, {at.x + look.left, at.y}, {end, at.y + height});
  ImGui::PushFont(fonts().numbers, 0);
  const std::string text = size_text(peak);
  const ImVec2 size = ImGui::CalcTextSize(text.c_str()), place(end + em(0.4f), at.y + (height - line) / 2);
  list->AddText(place, with_alpha(look.fits(peak) ? theme().text : theme().bad, alpha), text.c_str());
  ImGui::PopFont();
  if (!look.fits(peak))
    draw_icon(list, Icon::warning, {place.x + size.x + line * 0.7f, at.y + height / 2}, line * 0.8f, with_alpha(theme().bad, alpha));
  const bool crosses = free > place.x - em(0.2f) && free < place.x + size.x + em(0.2f);
  if (look.full <= static_cast<double>(look.available) || crosses) return;
  list->AddLine({free, at.y - em(0.15f)}, {free, at.y - em(0.15f) + row_height}, theme().text, line_width());
  name_area("free-memory", {free - 1, at.y}, {free + 1, at.y + height});
}

// One method, with its plan in a duel below; true when it was clicked.
bool method_row(const MethodMemory::Row& row, const Look& look, bool own, const DuelNote& duel) {
  const MethodPlan& plan = row.plan;
  const bool planned = plan.forecast.has_value(), beside = planned && !look.two_lines;
  const float line = ImGui::GetTextLineHeight(), pad = em(0.15f), bar = line * 1.1f, wrap = look.width - look.sign;
  const float title = beside ? 0 : line + em(0.15f);  // above the bar or the reason
  const float below = planned ? bar : ImGui::CalcTextSize(refusal(plan).c_str(), nullptr, false, wrap).y;
  const float note = duel.text.empty() ? 0 : ImGui::CalcTextSize(duel.text.c_str(), nullptr, false, wrap).y + pad;
  const float plain = 2 * pad + title + (row.known ? below : 0), height = plain + note;
  const ImVec2 at = ImGui::GetCursorScreenPos(), inside(at.x, at.y + pad);
  ImGui::PushID(plan.id.c_str());
  const bool pressed = ImGui::Selectable("##method", own, 0, {look.width, height});
  ImGui::PopID();
  name_item("method:" + plan.id);
  told(plan.id.c_str(), told_of(plan, look), plan.title + (planned ? "\t" + size_text(plan.forecast->memory.total()) : ""));
  draw_title(plan, look, {inside.x, inside.y + (beside ? (bar - line) / 2 : 0)}, own);
  if (planned)
    draw_bar(row, look, {inside.x, inside.y + title}, bar, beside ? height + ImGui::GetStyle().ItemSpacing.y : height - title);
  else
    ImGui::GetWindowDrawList()->AddText(ImGui::GetFont(), ImGui::GetFontSize(), {inside.x + look.sign, inside.y + title}, theme().dim,
                                        refusal(plan).c_str(), nullptr, wrap);
  if (!duel.text.empty()) {
    const ImVec2 place(at.x + look.sign, at.y + plain);
    ImGui::GetWindowDrawList()->AddText(ImGui::GetFont(), ImGui::GetFontSize(), place, duel.color, duel.text.c_str(), nullptr, wrap);
    name_area("says:" + plan.id + ": " + duel.text, place, {place.x + wrap, at.y + height});
  }
  return pressed;
}

}  // namespace

void draw_method_memory(UiState& ui) {
  const MethodMemory& methods = ui.form.methods;
  DuelPlan& duel = ui.form.duel;
  const bool duels = !ui.form.fork;  // a fork continues one method
  const Look look = look_at(methods, duels ? duel_tick_width() : 0);
  legend(methods);
  status(methods, look);
  if (duels) draw_duel_controls(ui);
  std::string chosen;
  for (const MethodMemory::Row* row : methods.by_peak()) {
    const std::string& id = row->plan.id;
    if (duels) draw_duel_tick(duel, id);
    if (method_row(*row, look, id == methods.own, duels ? duel_note(duel, id) : DuelNote{})) chosen = id;
  }
  if (!chosen.empty()) choose_method(ui, chosen);
}

namespace {

Chart method_memory_chart(const MethodMemory& methods, const std::string& note) {
  std::vector<StackedBar> bars;
  std::vector<std::vector<std::string>> table{{"method"}};
  double full = 0;
  for (int i = 0; i < kPurposes; ++i) table[0].push_back(std::string(look_of(static_cast<Purpose>(i)).title) + " (bytes)");
  for (const char* title : {"all (bytes)", "parameters", "trained", "refused"}) table[0].emplace_back(title);
  for (const MethodPlan& plan : methods.known_plans()) {
    StackedBar& bar = bars.emplace_back(StackedBar{plan.title, {}, "refused", theme().dim});
    std::vector<std::string>& row = table.emplace_back(1, plan.id);
    if (!plan.forecast) {
      row.resize(table[0].size() - 1);
      row.push_back(plan.refused);
      continue;
    }
    const MemoryByPurpose& memory = plan.forecast->memory;
    bar.parts = purpose_parts(memory);
    bar.figure = size_text(memory.total());
    bar.figure_color = theme().text;
    full = std::max(full, static_cast<double>(memory.total()));
    for (const int64_t bytes : memory.bytes) row.push_back(std::to_string(bytes));
    for (const int64_t count : {memory.total(), plan.forecast->parameters, plan.forecast->trainable}) row.push_back(std::to_string(count));
    row.emplace_back();
  }
  Chart chart = stacked_bars_chart("forecast-methods", kMethodsTitle, note, kinds_of(methods), bars, full);
  chart.csv = [table = std::move(table)] { return csv_text(table); };
  return chart;
}

}  // namespace

std::vector<ListedChart> method_memory_charts(UiState& ui) {
  const MethodMemory& methods = ui.form.methods;
  if (!methods.shown || methods.known_plans().empty()) return {};
  const std::string note = ui.form.config.name + ", before step 1";
  return {{"forecast-methods", kMethodsTitle, [&methods, note] { return method_memory_chart(methods, note); }}};
}

}  // namespace comera::studio
