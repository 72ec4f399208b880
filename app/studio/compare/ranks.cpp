// Ranks of run A minus ranks of run B: layers by bonds, blue where A has fewer.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "app/format.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

struct Row {
  std::string layer;
  const LayerRanks* a = nullptr;  // null: the run has no such layer
  const LayerRanks* b = nullptr;
  size_t bonds() const { return std::max(a ? a->live.size() : 0, b ? b->live.size() : 0); }
};

std::vector<Row> rows_of(const Snapshot& a, const Snapshot& b) {
  std::vector<Row> rows;
  for (const LayerRanks& layer : a.ranks) rows.push_back({layer.name, &layer, nullptr});
  for (const LayerRanks& layer : b.ranks) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.layer == layer.name; });
    if (found != rows.end())
      found->b = &layer;
    else
      rows.push_back({layer.name, nullptr, &layer});
  }
  return rows;
}

bool has(const LayerRanks* layer, size_t bond) { return layer && bond < layer->live.size(); }

// Fills in the runs to compare if they are not chosen: `a` is the first run with ranks other than the baseline, `b` the baseline, or the
// next run with ranks if the baseline has none.
void choose(const Compare& compare, std::string& a, std::string& b) {
  const ComparedRun* baseline = compare.baseline_run();
  std::vector<const ComparedRun*> others;
  for (const bool with_ranks : {true, false})
    for (const auto& run : compare.runs)
      if (run.get() != baseline && run->snapshot().ranks.empty() != with_ranks) others.push_back(run.get());
  if (!baseline->snapshot().ranks.empty() || others.size() < 2) others.insert(others.begin() + 1, baseline);
  if (!compare.find(a)) a = compare.find(b) == others[0] ? others[1]->wanted : others[0]->wanted;
  if (!compare.find(b)) b = compare.find(a) == others[1] ? others[0]->wanted : others[1]->wanted;
}

void legend(int64_t most, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight(), height = em(0.55f), y = at.y + (line - height) / 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::string low = "-" + std::to_string(most), high = "+" + std::to_string(most);
  const float text = std::max(ImGui::CalcTextSize(low.c_str()).x, ImGui::CalcTextSize(high.c_str()).x) + em(0.4f);
  list->AddText({at.x + text - em(0.4f) - ImGui::CalcTextSize(low.c_str()).x, at.y}, theme().dim, low.c_str());
  constexpr int kParts = 25;
  for (int i = 0; i < kParts; ++i) {
    const float from = at.x + text + width * static_cast<float>(i) / kParts, to = from + width / kParts;
    list->AddRectFilled({from, y}, {to, y + height}, diverging((static_cast<float>(i) + 0.5f) * 2 / kParts - 1));
  }
  list->AddText({at.x + text + width + em(0.4f), at.y}, theme().dim, high.c_str());
  ImGui::Dummy({width + 2 * text, line});
}

void cell(const Row& row, size_t bond, int64_t most, ImVec2 at, ImVec2 size, std::vector<Copied>& copied) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 end(at.x + size.x, at.y + size.y);
  const bool a = has(row.a, bond), b = has(row.b, bond);
  if (!a && !b) return;
  std::string text;
  ImU32 color = theme().dim;
  if (a && b) {
    const int64_t difference = row.a->live[bond] - row.b->live[bond];
    color = diverging(most > 0 ? static_cast<float>(difference) / static_cast<float>(most) : 0);
    list->AddRectFilled(at, end, color, em(0.25f));
    text = difference > 0 ? "+" + std::to_string(difference) : std::to_string(difference);
    color = readable_on(color);
  } else {
    list->AddRect(at, end, theme().border, em(0.25f));
    text = a ? "only A" : "only B";
    if (ImGui::CalcTextSize(text.c_str()).x > size.x - em(0.3f)) text = a ? "A" : "B";
  }
  const std::string both =
      "A " + (a ? std::to_string(row.a->live[bond]) : "none") + "   B " + (b ? std::to_string(row.b->live[bond]) : "none");
  const float line = ImGui::GetTextLineHeight();
  const bool with_both = a && b && size.y > 2.3f * line && ImGui::CalcTextSize(both.c_str()).x < size.x - em(0.4f);
  const auto middle = [&](const std::string& words, float y, ImU32 ink) {
    list->AddText({std::round(at.x + (size.x - ImGui::CalcTextSize(words.c_str()).x) / 2), std::round(y - line / 2)}, ink, words.c_str());
  };
  const float y = at.y + size.y / 2;
  middle(text, with_both ? y - line * 0.55f : y, color);
  if (with_both) middle(both, y + line * 0.55f, with_alpha(color, 0.8f));
  if (!ImGui::IsMouseHoveringRect(at, end) || !ImGui::IsWindowHovered()) return;
  const std::string name = row.layer + ", bond " + std::to_string(bond + 1);
  copied = {{"Copy value", text}, {"Copy line", name + "\t" + both + "\t" + text}};
  if (!ImGui::BeginTooltip()) return;
  ImGui::TextUnformatted(name.c_str());
  text_dim(both);
  ImGui::EndTooltip();
}

void draw_map(const std::vector<Row>& rows, int64_t most) {
  push_small();
  float names = 0;
  size_t bonds = 0;
  for (const Row& row : rows) {
    names = std::max(names, ImGui::CalcTextSize(row.layer.c_str()).x);
    bonds = std::max(bonds, row.bonds());
  }
  ImGui::BeginChild("cells", {0, 0}, 0, ImGuiWindowFlags_HorizontalScrollbar);
  const ImVec2 space = ImGui::GetContentRegionAvail();
  names = std::min(names, space.x * 0.35f);
  const float header = ImGui::GetTextLineHeight() + em(0.3f), gap = std::max(1.0f, em(0.14f)), left = names + em(0.8f);
  const auto count = static_cast<float>(std::max<size_t>(1, bonds));
  const float width = std::max(em(3.2f), std::floor(std::min(em(20), (space.x - left) / count - gap)));
  const float height = std::floor(std::clamp((space.y - header) / static_cast<float>(rows.size()) - gap, em(1.5f), em(5)));
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (size_t bond = 0; bond < bonds; ++bond) {
    const std::string title = width > em(4) ? "bond " + std::to_string(bond + 1) : std::to_string(bond + 1);
    list->AddText(
        {origin.x + left + static_cast<float>(bond) * (width + gap) + (width - ImGui::CalcTextSize(title.c_str()).x) / 2, origin.y},
        theme().dim, title.c_str());
  }
  ImGui::Dummy({left + count * (width + gap), header});
  std::vector<Copied> copied;  // facts of the cell under the mouse
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()), height + gap);
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const Row& row = rows[static_cast<size_t>(i)];
      const ImVec2 at(origin.x, origin.y + header + static_cast<float>(i) * (height + gap));
      ImGui::SetCursorScreenPos({at.x, at.y + (height - ImGui::GetTextLineHeight()) / 2});
      text_fit(row.layer, names, theme().dim);
      ImGui::PushFont(fonts().numbers, 0);
      for (size_t bond = 0; bond < row.bonds(); ++bond)
        cell(row, bond, most, {at.x + left + static_cast<float>(bond) * (width + gap), at.y}, {width, height}, copied);
      ImGui::PopFont();
    }
  ImGui::SetCursorScreenPos({origin.x, origin.y + header + static_cast<float>(rows.size()) * (height + gap)});
  ImGui::Dummy({1, 1});
  copy_menu(copied, !copied.empty());
  ImGui::EndChild();
  name_item("chart:rank-difference");
  ImGui::PopFont();
}

}  // namespace

void draw_ranks_tab(Compare& compare) {
  std::string first = compare.ranks_a, second = compare.ranks_b;
  choose(compare, first, second);
  push_small();
  const float combo = std::clamp((ImGui::GetContentRegionAvail().x - em(6)) / 2, em(7), em(17));
  // Choosing the run of the other side swaps both.
  const auto chosen = [&](std::string a, std::string b, bool a_changed) {
    if (compare.find(a) == compare.find(b)) (a_changed ? b : a) = a_changed ? first : second;
    compare.ranks_a = first = a;
    compare.ranks_b = second = b;
  };
  std::string choice = first;
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted("A");
  ImGui::SameLine(0, em(0.5f));
  if (run_combo("##a", compare, choice, combo)) chosen(choice, second, true);
  ImGui::SameLine(0, em(0.5f));
  if (button("###swap", {.icon = Icon::loop, .tooltip = "Swap A and B"})) chosen(second, first, true);
  ImGui::SameLine(0, em(0.5f));
  ImGui::TextUnformatted("B");
  ImGui::SameLine(0, em(0.5f));
  choice = second;
  if (run_combo("##b", compare, choice, combo)) chosen(first, choice, false);
  ImGui::PopFont();

  const ComparedRun& a = *compare.find(first);
  const ComparedRun& b = *compare.find(second);
  std::string without;
  for (const ComparedRun* run : {&a, &b})
    if (run->read() && run->snapshot().ranks.empty()) add_name(without, label_of(compare, *run));
  if (!a.read() || !b.read()) {
    empty_state(Icon::clock, "Reading the runs", "Their ranks appear in a moment.");
    return;
  }
  if (!without.empty()) {
    empty_state(Icon::chart, "No ranks to compare", ("Without ranks: " + without + ". Choose two runs that train tensor trains.").c_str());
    return;
  }
  const std::vector<Row> rows = rows_of(a.snapshot(), b.snapshot());
  int64_t most = 0, sum_a = 0, sum_b = 0;
  size_t only_a = 0, only_b = 0;
  for (const Row& row : rows) {
    only_a += !row.b;
    only_b += !row.a;
    for (size_t bond = 0; bond < row.bonds(); ++bond) {
      const int64_t x = has(row.a, bond) ? row.a->live[bond] : 0, y = has(row.b, bond) ? row.b->live[bond] : 0;
      sum_a += x;
      sum_b += y;
      if (has(row.a, bond) && has(row.b, bond)) most = std::max(most, std::abs(x - y));
    }
  }
  push_small();
  std::string text = "Sum of ranks: A " + thousands(static_cast<double>(sum_a)) + ", B " + thousands(static_cast<double>(sum_b));
  if (only_a + only_b > 0) text += ". Layers only in one run: " + std::to_string(only_a) + " of A, " + std::to_string(only_b) + " of B";
  text += most == 0 ? ". All ranks are equal" : ". Blue: A has fewer, red: A has more";
  const float right = ImGui::GetContentRegionAvail().x, scale = em(7);
  text_fit(text, std::max(em(8), right - (most > 0 ? scale + em(5.5f) : 0)), theme().dim);
  if (most > 0 && right > scale + em(14)) {
    ImGui::SameLine();
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - scale - em(4.5f));
    legend(most, scale);
  }
  ImGui::PopFont();
  draw_map(rows, most);
}

namespace {

constexpr const char* kRanksTitle = "Rank difference";

Chart rank_difference_chart(const Compare& compare, const ComparedRun& a, const ComparedRun& b) {
  const std::vector<Row> rows = rows_of(a.snapshot(), b.snapshot());
  constexpr float kCell = 46, kRow = 24, kNames = 190, kTop = 84;
  int64_t most = 0;
  size_t bonds = 0;
  for (const Row& row : rows) {
    bonds = std::max(bonds, row.bonds());
    for (size_t bond = 0; bond < row.bonds(); ++bond)
      if (has(row.a, bond) && has(row.b, bond)) most = std::max(most, std::abs(row.a->live[bond] - row.b->live[bond]));
  }
  const ImVec2 size(std::max(480.0f, 40 + kNames + kCell * static_cast<float>(bonds)), kTop + 20 + kRow * static_cast<float>(rows.size()));
  Chart chart{"rank-difference",
              kRanksTitle,
              {},
              begin_drawing(size, "Ranks of A minus ranks of B", "A: " + label_of(compare, a) + ", B: " + label_of(compare, b))};
  std::vector<std::vector<std::string>> table = {{"layer", "bond", "A", "B", "A - B"}};
  Drawing& drawing = chart.drawing;
  for (size_t bond = 0; bond < bonds; ++bond)
    drawing.text({20 + kNames + kCell * (static_cast<float>(bond) + 0.5f), kTop - 16}, 11, theme().dim, std::to_string(bond + 1),
                 Anchor::middle);
  for (size_t r = 0; r < rows.size(); ++r) {
    const float y = kTop + kRow * static_cast<float>(r);
    drawing.text({20, y + kRow / 2}, 12, theme().dim, rows[r].layer);
    for (size_t bond = 0; bond < rows[r].bonds(); ++bond) {
      const bool in_a = has(rows[r].a, bond), in_b = has(rows[r].b, bond);
      if (!in_a && !in_b) continue;
      const int64_t x = in_a ? rows[r].a->live[bond] : 0, z = in_b ? rows[r].b->live[bond] : 0, difference = x - z;
      const ImVec2 from(21 + kNames + kCell * static_cast<float>(bond), y + 1), to(from.x + kCell - 2, y + kRow - 1);
      const bool both = in_a && in_b;
      const ImU32 color = both ? diverging(most > 0 ? static_cast<float>(difference) / static_cast<float>(most) : 0) : theme().border;
      drawing.rect(from, to, color, 3, both ? 0.0f : 1.0f);
      drawing.text({(from.x + to.x) / 2, (from.y + to.y) / 2}, 11, both ? readable_on(color) : theme().dim,
                   !in_b            ? "only A"
                   : !in_a          ? "only B"
                   : difference > 0 ? "+" + std::to_string(difference)
                                    : std::to_string(difference),
                   Anchor::middle);
      table.push_back({rows[r].layer, std::to_string(bond + 1), in_a ? std::to_string(x) : "", in_b ? std::to_string(z) : "",
                       both ? std::to_string(difference) : ""});
    }
  }
  chart.csv = [table = std::move(table)] { return csv_text(table); };
  return chart;
}

}  // namespace

std::vector<ListedChart> rank_difference_charts(Compare& compare) {
  std::string first = compare.ranks_a, second = compare.ranks_b;
  choose(compare, first, second);
  const ComparedRun *a = compare.find(first), *b = compare.find(second);
  if (!a || !b || !a->read() || !b->read() || a->snapshot().ranks.empty() || b->snapshot().ranks.empty()) return {};
  return {{"rank-difference", kRanksTitle, [&compare, a, b] { return rank_difference_chart(compare, *a, *b); }}};
}

}  // namespace comera::studio
