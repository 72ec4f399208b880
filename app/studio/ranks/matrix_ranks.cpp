#include "app/studio/ranks/matrix_ranks.h"

#include <algorithm>
#include <cmath>

#include "app/figure/rank_map.h"
#include "app/format.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plots.h"
#include "app/studio/parts/texts.h"
#include "core/train/rank_setting.h"

namespace comera::studio {
namespace {

struct Change {
  int64_t step = 0;  // the first one with this rank
  RunConfig config;
};

// Settings in force, oldest first: those of the start, then one for each edit of a rank up to the shown step.
std::vector<Change> changes_of(const UiState& ui) {
  const RunView& view = ui.shown();
  const std::optional<RankSetting> setting = rank_setting(view.config);
  const int64_t last = ui.replaying() ? ui.snapshot().step : view.snapshot->step + 1;
  std::vector<Change> out{{0, view.config_at(0)}};
  for (const Edit& edit : view.edits)
    if (edit.step <= last && (edit.path == "method.coap.rank_ratio" || (setting && edit.path == setting->path)))
      out.push_back({edit.step, view.config_at(edit.step)});
  return out;
}

// For each matrix the step of its last refresh up to `step`, under the settings in force then; 0: not known, or the method has none.
std::vector<int64_t> refreshes_until(const RunView& view, size_t matrices, int64_t step) {
  std::vector<int64_t> out(matrices, 0);
  for (int64_t newest = step; newest >= 1 && std::find(out.begin(), out.end(), 0) != out.end();) {
    int64_t first = 1;  // step since which the settings of `newest` are in force
    for (const Edit& edit : view.edits)
      if (edit.step <= newest && edit.path.ends_with(".gap")) first = std::max(first, edit.step);
    const std::vector<int64_t> last = last_refreshes(view.config_at(first).method, static_cast<int64_t>(matrices), newest);
    if (last.empty()) break;
    for (size_t i = 0; i < matrices; ++i)
      if (out[i] == 0 && last[i] >= first) out[i] = last[i];
    newest = first - 1;
  }
  return out;
}

int64_t rank_of(const RankedMatrix& matrix, const RunConfig& config) { return rank_of_matrix(config, matrix.rows, matrix.columns); }

// Of the rank at the start, as in the map of tensor trains.
float share_of(const RankedMatrix& matrix, const RunConfig& config, const RunConfig& first) {
  return std::min(1.0f, static_cast<float>(rank_of(matrix, config)) / static_cast<float>(std::max<int64_t>(1, rank_of(matrix, first))));
}

bool has_factors(const RunConfig& config) { return config.method.chosen_weights().factors; }

// One row: the name, the rank now, and before that the ranks over the steps.
void row(const RankedMatrix& matrix, const std::vector<Change>& changes, int64_t newest, int64_t refreshed, float names, float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, cell = std::min(em(7), width * 0.25f), gap = em(0.5f);
  const RunConfig& first = changes.front().config;
  const int64_t rank = rank_of(matrix, changes.back().config);
  ImGui::InvisibleButton("row", {width, height});
  name_item("matrix:" + matrix.name);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float left = at.x + names + gap, right = at.x + width - cell - gap;
  const double last = static_cast<double>(std::max<int64_t>(1, newest));
  for (size_t i = 0; i < changes.size() && right > left; ++i) {
    const auto place = [&](int64_t step) {
      return left + (right - left) * static_cast<float>(std::clamp(static_cast<double>(step) / last, 0.0, 1.0));
    };
    const float from = place(changes[i].step), to = i + 1 < changes.size() ? place(changes[i + 1].step) : right;
    if (to > from)
      list->AddRectFilled({from, at.y}, {to, at.y + height}, with_alpha(heat(share_of(matrix, changes[i].config, first)), 0.6f));
  }
  const ImVec2 begin(at.x + width - cell, at.y), end(at.x + width, at.y + height);
  const ImU32 color = heat(share_of(matrix, changes.back().config, first));
  list->AddRectFilled(begin, end, color, em(0.25f));
  const std::string text = std::to_string(rank) + " / " + std::to_string(rank_of(matrix, first));
  const ImVec2 extent = ImGui::CalcTextSize(text.c_str());
  list->AddText({std::round(begin.x + (cell - extent.x) / 2), std::round(at.y + (height - extent.y) / 2)}, readable_on(color),
                text.c_str());
  const std::string shape = std::to_string(matrix.rows) + " x " + std::to_string(matrix.columns);
  if (ImGui::IsItemHovered() && ImGui::BeginTooltip()) {
    ImGui::TextUnformatted(matrix.name.c_str());
    text_dim(shape + ", rank " + std::to_string(rank) + ", shorter side " + std::to_string(std::min(matrix.rows, matrix.columns)));
    if (refreshed > 0) text_dim("last refresh at step " + thousands(static_cast<double>(refreshed)));
    for (const Change& change : changes)
      if (changes.size() > 1)
        text_dim("from step " + thousands(static_cast<double>(change.step)) + ": rank " + std::to_string(rank_of(matrix, change.config)));
    ImGui::EndTooltip();
  }
  copy_menu({{"Copy name", matrix.name}, {"Copy line", matrix.name + "\t" + shape + "\trank " + std::to_string(rank)}});
  ImGui::SetCursorScreenPos({at.x, at.y + (height - ImGui::GetTextLineHeight()) / 2});
  text_fit(matrix.name, names, theme().dim);
  ImGui::SetCursorScreenPos({at.x, at.y + height + std::max(1.0f, em(0.14f))});
}

}  // namespace

void draw_matrix_ranks(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  const std::vector<Change> changes = changes_of(ui);
  const bool factors = has_factors(changes.back().config);
  card_title("Rank map", factors ? "Rank of the factors of each matrix, now and over the steps."
                                 : "Rank to which the gradient of each matrix is projected, now and over the steps.");
  ImGui::SameLine(0, em(1));
  push_small();
  const std::optional<RankSetting> setting = rank_setting(changes.back().config);
  const std::vector<int64_t> refreshed = refreshes_until(ui.shown(), s.ranked.size(), s.step);
  const int64_t last = *std::max_element(refreshed.begin(), refreshed.end());
  const std::string about = std::string(factors ? "factors" : "projections") +
                            (setting ? ", rank " + std::to_string(setting->configured) : "") +
                            (last > 0 ? ", last refresh at step " + thousands(static_cast<double>(last)) : "");
  const float button = export_button_width();
  text_fit(about, ImGui::GetContentRegionAvail().x - button - em(0.5f), theme().dim);
  name_item("says:" + about);
  if (ImGui::GetContentRegionAvail().x > 0) {
    ImGui::SameLine();
    ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - button));
  }
  export_button(ui, "ranks");
  float names = 0;
  for (const RankedMatrix& matrix : s.ranked) names = std::max(names, ImGui::CalcTextSize(matrix.name.c_str()).x);
  ImGui::BeginChild("matrices", {0, 0}, ImGuiChildFlags_NavFlattened);
  names = std::min(names, ImGui::GetContentRegionAvail().x * 0.35f);
  const float height =
      std::floor(std::clamp(ImGui::GetContentRegionAvail().y / static_cast<float>(s.ranked.size()) - em(0.14f), em(1.5f), em(2.6f)));
  for (size_t i = 0; i < s.ranked.size(); ++i) {
    ImGui::PushID(s.ranked[i].name.c_str());
    row(s.ranked[i], changes, s.step, refreshed[i], names, height);
    ImGui::PopID();
  }
  ImGui::Dummy({1, 1});
  ImGui::EndChild();
  name_item("chart:rank-map");
  ImGui::PopFont();
}

ListedChart matrix_ranks_chart(UiState& ui, const std::string& note) {
  return {"rank-map", "Rank map", [&ui, note] {
            const std::vector<Change> changes = changes_of(ui);
            std::vector<LayerRanks> layers;
            std::vector<std::vector<std::string>> rows{{"matrix", "rows", "columns", "step", "rank"}};
            for (const RankedMatrix& matrix : ui.snapshot().ranked) {
              const int64_t rank = rank_of(matrix, changes.back().config);
              layers.push_back({matrix.name, {rank}, {rank}, {rank_of(matrix, changes.front().config)}});
              for (const Change& change : changes)
                rows.push_back({matrix.name, std::to_string(matrix.rows), std::to_string(matrix.columns), std::to_string(change.step),
                                std::to_string(rank_of(matrix, change.config))});
            }
            Chart chart{"rank-map", "Rank map", {}, rank_map(layers, note)};
            chart.csv = [rows = std::move(rows)] { return csv_text(rows); };
            return chart;
          }};
}

}  // namespace comera::studio
