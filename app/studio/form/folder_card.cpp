// The card of a run that begins with the weights of a model folder.
#include <imgui.h>

#include <algorithm>
#include <string>

#include "app/format.h"
#include "app/studio/form/folder_fit.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

std::string ranks_text(const std::vector<int64_t>& ranks) {
  std::string text;
  for (const int64_t rank : ranks) text += (text.empty() ? "" : " ") + std::to_string(rank);
  return text;
}

void choice_of_ranks(UiState& ui) {
  FolderFit& fit = ui.form.fit;
  static constexpr const char* kFrom[] = {"By rank", "By error", "By size"};
  static constexpr const char* kAbout[] = {
      "Each matrix gets the ranks of the settings. Its error follows from them.",
      "The smallest ranks for which the relative error of each matrix is at most the value below.",
      "The ranks with the smallest errors at which these matrices together have this many times fewer values."};
  int from = static_cast<int>(fit.ranks_from);
  if (segmented("ranks-from", kFrom, 3, from)) fit.ranks_from = static_cast<RanksFrom>(from);
  text_wrapped(kAbout[from], theme().dim);
  if (fit.ranks_from == RanksFrom::error) {
    ImGui::SetNextItemWidth(em(8));
    const double least = 0.001, most = 1;
    ImGui::DragScalar("largest relative error###most-error", ImGuiDataType_Double, &fit.most_error, 0.002f, &least, &most, "%.3f",
                      ImGuiSliderFlags_AlwaysClamp);
    name_item("most-error");
    return;
  }
  if (fit.ranks_from == RanksFrom::compression) {
    ImGui::SetNextItemWidth(em(8));
    const double least = 1, most = 1000;
    ImGui::DragScalar("times smaller###compression", ImGuiDataType_Double, &fit.compression, 0.02f, &least, &most, "%.2f",
                      ImGuiSliderFlags_AlwaysClamp);
    name_item("compression");
  }
  ImGui::Checkbox("weight errors by gradients###by-gradients", &fit.by_gradients);
  name_item("by-gradients");
  if (!fit.by_gradients) return;
  text_wrapped("Keeps the parts of each matrix that change the loss on training batches most.", theme().dim);
  ImGui::SetNextItemWidth(em(8));
  const int64_t least = 1, most = 100000;
  ImGui::DragScalar("batches###gradient-batches", ImGuiDataType_S64, &fit.batches, 0.5f, &least, &most, "%lld",
                    ImGuiSliderFlags_AlwaysClamp);
  name_item("gradient-batches");
}

void totals(const FolderWeights& weights) {
  int64_t dense = 0, entries = 0;
  for (const Compressed& layer : weights.compressed) dense += layer.dense, entries += layer.entries;
  const double ratio = static_cast<double>(dense) / static_cast<double>(std::max<int64_t>(1, entries));
  const std::string times = significant(std::max(ratio, 1 / ratio), 3) + (ratio < 1 ? " times more" : " times fewer");
  text_wrapped(thousands(static_cast<double>(weights.compressed.size())) + " matrices: " + thousands(static_cast<double>(dense)) +
                   " values as " + thousands(static_cast<double>(entries)) + ", " + times,
               theme().text);
  name_item("fit-totals");
}

void table(const FolderWeights& weights) {
  const bool by_gradients = std::any_of(weights.compressed.begin(), weights.compressed.end(),
                                        [](const Compressed& layer) { return layer.weighted_error.has_value(); });
  const float rows = static_cast<float>(std::min<size_t>(weights.compressed.size(), 9)) + 1;
  const int columns = by_gradients ? 5 : 4;
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(em(0.3f), em(0.06f)));
  const bool open = ImGui::BeginTable("fit", columns, ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_ScrollY,
                                      {0, rows * (ImGui::GetTextLineHeight() + 2 * em(0.06f)) + em(0.2f)});
  ImGui::PopStyleVar();
  if (!open) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("matrix", ImGuiTableColumnFlags_WidthStretch, 1.6f);
  for (const char* name : {"ranks", "smaller", "error"}) ImGui::TableSetupColumn(name, ImGuiTableColumnFlags_WidthStretch, 0.8f);
  if (by_gradients) ImGui::TableSetupColumn("by gradients", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableHeadersRow();
  for (const Compressed& layer : weights.compressed) {
    ImGui::TableNextRow();
    const double smaller = static_cast<double>(layer.dense) / static_cast<double>(std::max<int64_t>(1, layer.entries));
    for (const std::string& text : {layer.layer, ranks_text(layer.ranks), significant(smaller, 3) + " x", significant(layer.error, 3)}) {
      ImGui::TableNextColumn();
      text_fit(text, ImGui::GetContentRegionAvail().x, theme().text);
    }
    if (!by_gradients) continue;
    ImGui::TableNextColumn();
    text_fit(layer.weighted_error ? significant(*layer.weighted_error, 3) : "-", ImGui::GetContentRegionAvail().x, theme().text);
  }
  ImGui::EndTable();
}

void trains(UiState& ui) {
  FolderFit& fit = ui.form.fit;
  choice_of_ranks(ui);
  if (fit.number != 0) {
    if (button("Stop###stop-fit", {.icon = Icon::stop})) stop_fit(fit);
    ImGui::SameLine();
    small_beside("computing", theme().dim);
  } else {
    const char* why_not = no_fit(ui.form);
    if (button("Compute sizes and errors###fit",
               {.icon = Icon::clock,
                .enabled = why_not == nullptr,
                .tooltip = "Factorises every matrix (TT-SVD); large models take minutes. The run starts with this result.",
                .why_not = why_not}))
      fit_folder(ui);
  }
  if (fit.number == 0 && fit.answer && !fit.answer->weights) {
    text_wrapped(fit.answer->problem, theme().bad);
    if (!fit.answer->hint.empty()) text_wrapped("Try: " + fit.answer->hint, theme().dim);
  }
  if (!is_fitted(ui.form)) return;
  totals(*fit.answer->weights);
  table(*fit.answer->weights);
}

}  // namespace

void draw_folder_card(UiState& ui) {
  const NewRun& form = ui.form;
  const std::optional<std::string> folder = folder_of(form);
  if (!folder) return;
  if (!begin_card("card-folder", {0, 0}, ImGuiChildFlags_AutoResizeY)) return end_card();
  card_title("Weights of a model folder", folder->c_str());
  push_small();
  if (!form.new_head.empty()) text_wrapped("The folder has no head for this task. Drawn at random: " + form.new_head, theme().dim);
  if (has_trains(form))
    trains(ui);
  else
    text_wrapped(
        "The run begins with the folder's matrices. To make them tensor trains, set method.weights = tt or choose the method CoMERA.",
        theme().dim);
  ImGui::PopFont();
  end_card();
}

}  // namespace comera::studio
