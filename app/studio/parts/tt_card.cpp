#include "app/studio/parts/tt_card.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/figure/figure.h"
#include "app/figure/tt_drawing.h"
#include "app/format.h"
#include "app/studio/form/live_controls.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

std::string bond_name(const std::string& layer, int64_t bond) { return layer + "." + std::to_string(bond); }

std::string product_text(const std::vector<int64_t>& modes) {
  std::string out;
  for (const int64_t mode : modes) out += (out.empty() ? "" : " \xc2\xb7 ") + std::to_string(mode);
  return out;
}

int64_t multiplied(const std::vector<int64_t>& modes) {
  int64_t out = 1;
  for (const int64_t mode : modes) out *= mode;
  return out;
}

// Live rank of a bond over steps, from the records.
FigureLine history_of(const RunView& view, const std::string& layer, int64_t bond, int64_t until) {
  FigureLine line{.label = bond_name(layer, bond), .color = theme().series[1], .stairs = true};
  if (const auto ranks = view.bond_ranks.find({layer, bond}); ranks != view.bond_ranks.end()) {
    const Rising<double>& x = ranks->second.x();
    const auto end = std::upper_bound(x.begin(), x.end(), static_cast<double>(until));
    line.x.assign(x.begin(), end);
    line.y.assign(ranks->second.y().begin(), ranks->second.y().begin() + (end - x.begin()));
  }
  if (!line.x.empty() && line.x.back() < static_cast<double>(until)) {
    line.x.push_back(static_cast<double>(until));
    line.y.push_back(line.y.back());
  }
  return line;
}

void fact(const char* name, const std::string& value, float column) {
  text_dim(name);
  ImGui::SameLine(column);
  text_fit(value, ImGui::GetContentRegionAvail().x, theme().text);
  ImGui::PushID(name);
  copy_menu({{"Copy value", value}});
  ImGui::PopID();
}

// Copy menu of the last picture: the value under the mouse, or all data as CSV.
template <class Row>
void offer_to_copy(const char* id, const std::string& value, const char* header, size_t rows, const Row& row) {
  const bool asked = ImGui::IsItemHovered() && ImGui::IsMouseReleased(ImGuiMouseButton_Right);
  std::vector<Copied> what;
  if (asked && rows > 0) {
    std::string table = std::string(header) + "\n";
    for (size_t i = 0; i < rows; ++i) table += row(i) + "\n";
    what = {{"Copy value", value}, {"Copy data", std::move(table)}};
  }
  ImGui::PushID(id);
  copy_menu(what, asked);
  ImGui::PopID();
}

void sparkline(const FigureLine& line, double top, double end, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme().raised, em(0.25f));
  const float room = em(0.3f);
  const auto place = [&](double x, double y) {
    return ImVec2(at.x + room + (size.x - 2 * room) * static_cast<float>(end > 0 ? std::min(1.0, x / end) : 0),
                  at.y + size.y - room - (size.y - 2 * room) * static_cast<float>(top > 0 ? y / top : 0));
  };
  std::vector<ImVec2> points;
  for (size_t i = 0; i < line.x.size(); ++i) {
    if (i > 0) points.push_back(place(line.x[i], line.y[i - 1]));
    points.push_back(place(line.x[i], line.y[i]));
  }
  list->AddPolyline(points.data(), static_cast<int>(points.size()), line.color, std::max(1.0f, em(0.12f)));
  if (!points.empty()) list->AddCircleFilled(points.back(), em(0.2f), line.color);
  ImGui::Dummy(size);
  name_item("card:history");
  std::string value;
  if (ImGui::IsItemHovered() && !line.x.empty()) {
    const double step = end * std::clamp((ImGui::GetMousePos().x - at.x - room) / std::max(1.0f, size.x - 2 * room), 0.0f, 1.0f);
    double rank = line.y.front();
    for (size_t i = 0; i < line.x.size() && line.x[i] <= step; ++i) rank = line.y[i];
    value = "step " + grouped(step) + ": rank " + grouped(rank);
    ImGui::SetTooltip("%s", value.c_str());
  }
  offer_to_copy("history", value, "step,rank", line.x.size(),
                [&](size_t i) { return csv_number(line.x[i]) + "," + csv_number(line.y[i]); });
}

// The entries of a bond, largest first, on a logarithmic scale. Entries below the line are dead.
void entry_bars(std::vector<double> values, double threshold, ImVec2 size) {
  std::sort(values.rbegin(), values.rend());
  const double low = threshold / 10, high = std::max(1.0, values.empty() ? 1.0 : values.front());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme().raised, em(0.25f));
  const float room = em(0.3f), inner = size.y - 2 * room,
              step = (size.x - 2 * room) / static_cast<float>(std::max<size_t>(1, values.size()));
  const auto height = [&](double value) {
    return inner * static_cast<float>(std::clamp(std::log(std::max(value, low) / low) / std::log(high / low), 0.02, 1.0));
  };
  for (size_t i = 0; i < values.size(); ++i) {
    const float x = at.x + room + step * static_cast<float>(i), y = at.y + size.y - room;
    list->AddRectFilled({x, y - height(values[i])}, {x + std::max(1.0f, step * 0.78f), y},
                        values[i] > threshold ? theme().series[0] : with_alpha(theme().dim, 0.6f));
  }
  const float line = at.y + size.y - room - height(threshold);
  for (const auto& [from, to] : dashes({{at.x, line}, {at.x + size.x, line}}, em(0.35f), em(0.25f)))
    list->AddLine({from.x, from.y}, {to.x, to.y}, theme().warning, std::max(1.0f, em(0.08f)));
  ImGui::Dummy(size);
  name_item("card:entries");
  std::string value;
  if (ImGui::IsItemHovered() && !values.empty()) {
    const float over = (ImGui::GetMousePos().x - at.x - room) / step;
    const size_t i = std::min(values.size() - 1, static_cast<size_t>(std::max(0.0f, over)));
    value = "entry " + std::to_string(i + 1) + ": " + significant(values[i], 3) + (values[i] > threshold ? "" : ", dead");
    ImGui::SetTooltip("%s", value.c_str());
  }
  offer_to_copy("entries", value, "entry,value", values.size(),
                [&](size_t i) { return std::to_string(i + 1) + "," + csv_number(values[i]); });
}

// Histogram of a core's values, with 0 in the middle.
void value_bars(const InspectedCore& core, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme().raised, em(0.25f));
  const float room = em(0.3f), step = (size.x - 2 * room) / static_cast<float>(std::max<size_t>(1, core.bins.size()));
  const int64_t most = core.bins.empty() ? 0 : *std::max_element(core.bins.begin(), core.bins.end());
  for (size_t i = 0; i < core.bins.size() && most > 0; ++i) {
    if (core.bins[i] == 0) continue;
    const float x = at.x + room + step * static_cast<float>(i), y = at.y + size.y - room;
    const float high = (size.y - 2 * room) * static_cast<float>(core.bins[i]) / static_cast<float>(most);
    list->AddRectFilled({x, y - std::max(1.0f, high)}, {x + std::max(1.0f, step * 0.85f), y}, theme().series[0]);
  }
  ImGui::Dummy(size);
  name_item("card:values");
  const double wide = 2 * core.largest / static_cast<double>(std::max<size_t>(1, core.bins.size()));
  const auto low = [&](size_t i) { return -core.largest + wide * static_cast<double>(i); };
  std::string value;
  if (ImGui::IsItemHovered() && !core.bins.empty()) {
    const auto i = std::min(core.bins.size() - 1, static_cast<size_t>(std::max(0.0f, (ImGui::GetMousePos().x - at.x - room) / step)));
    value = significant(low(i), 3) + " to " + significant(low(i + 1), 3) + ": " + grouped(core.bins[i]) + " values";
    ImGui::SetTooltip("%s", value.c_str());
  }
  offer_to_copy("values", value, "from,to,values", core.bins.size(),
                [&](size_t i) { return csv_number(low(i)) + "," + csv_number(low(i + 1)) + "," + std::to_string(core.bins[i]); });
  const std::string most_text = significant(core.largest, 3);
  const float left = ImGui::GetCursorPosX();
  text_dim("-" + most_text);
  ImGui::SameLine();
  ImGui::SetCursorPosX(left + (size.x - ImGui::CalcTextSize("0").x) / 2);
  text_dim("0");
  ImGui::SameLine();
  text_right(most_text, left + size.x, theme().dim);
}

// Values of a bond or core at the shown step: from the live session, else from the checkpoint nearest to the cursor. Missing values are
// requested.
struct SeenValues {
  const InspectedBond* bond = nullptr;
  const InspectedCore* core = nullptr;
  std::string note = {};                       // source of the values, or why there are none
  std::shared_ptr<const void> keep = nullptr;  // owner of the values
};

SeenValues past_values(UiState& ui, const LayerRanks& layer, int64_t bond, int64_t core) {
  constexpr const char* kNone = "Not recorded for this run at this step: ";
  const int64_t step = ui.snapshot().step;
  const Replay* replay = ui.timeline.replay.get();
  if (!replay) return {.note = std::string(kNone) + "the run is not stored."};
  const CheckpointRow* nearest = nullptr;
  for (const CheckpointRow& row : replay->checkpoints())
    if (!nearest || std::abs(row.step - step) < std::abs(nearest->step - step)) nearest = &row;
  if (!nearest) return {.note = std::string(kNone) + "the run has no checkpoint."};
  TTView& tt = ui.tt;
  if (!tt.past) tt.past = std::make_unique<Background<CheckpointQuestion, CheckpointValues>>(read_checkpoint_values, ui.wake);
  const CheckpointQuestion question{nearest->path, nearest->step, layer.name, bond, core};
  if (question != tt.past_question) {
    tt.past_question = question;
    tt.past->ask(question);
  }
  const auto answer = tt.past->latest();
  if (!answer || answer->answer.question != question) return {.note = "Reading the checkpoint of step " + grouped(nearest->step) + " ..."};
  const CheckpointValues& values = answer->answer;
  if (!values.problem.empty()) return {.note = kNone + values.problem};
  const int64_t away = nearest->step - step;
  return {.bond = bond > 0 ? &values.bond : nullptr,
          .core = core > 0 ? &values.core : nullptr,
          .note = away == 0 ? "From the checkpoint of this step."
                            : "From the nearest checkpoint, step " + grouped(nearest->step) + ": " + counted(std::abs(away), "step") +
                                  (away > 0 ? " later." : " earlier."),
          .keep = answer};
}

SeenValues seen_values(UiState& ui, const LayerRanks& layer, int64_t bond, int64_t core) {
  const Snapshot& s = ui.snapshot();
  if (ui.replaying() || !ui.shown().live) return past_values(ui, layer, bond, core);
  if (bond > 0 && s.inspected.layer == layer.name && s.inspected.bond == bond) return {.bond = &s.inspected};
  if (core > 0 && s.inspected_core.layer == layer.name && s.inspected_core.core == core) return {.core = &s.inspected_core};
  if (ui.editable()) return {.note = "Waiting ..."};
  return {.note = "The run ended before these values were read. Move the timeline to see the values of a checkpoint."};
}

void dim_lines(const std::string& text) {
  if (text.empty()) return;
  ImGui::PushTextWrapPos(0);
  text_dim(text);
  ImGui::PopTextWrapPos();
}

void lock_switch(UiState& ui, const LayerRanks& layer) {
  live_switch(ui, "Lock layer",
              "Sets the weight of this layer in the rank penalty to 0. The loss still moves its ranks, and caps stay in effect.",
              layer.weight == 0, "rank.weight." + layer.name, "0", "null");
}

void bond_card(UiState& ui, const LayerRanks& layer, int64_t bond) {
  const Snapshot& s = ui.snapshot();
  const RunView& view = ui.shown();
  const auto index = static_cast<size_t>(bond - 1);
  const auto at = [&](const std::vector<int64_t>& ranks) { return index < ranks.size() ? ranks[index] : 0; };
  const int64_t live = at(layer.live), held = at(layer.held), initial = at(layer.initial), cap = at(layer.caps);
  const double threshold = ui.config().method.comera.threshold;
  const float width = ImGui::GetContentRegionAvail().x, column = ImGui::GetCursorPosX() + em(4.6f);
  fact("live rank", std::to_string(live) + " of " + std::to_string(initial) + " initially", column);
  fact("dead", grouped(std::max<int64_t>(0, held - live)) + " in memory, " + grouped(std::max<int64_t>(0, initial - held)) + " pruned",
       column);
  fact("threshold", significant(threshold, 3), column);
  if (live == 0) banner(Level::warning, "The bond is dead: the layer outputs 0. The setting floor_rank keeps one entry alive.");

  ImGui::Dummy({0, em(0.15f)});
  const std::string path = "rank.cap." + bond_name(layer.name, bond);
  const auto most = static_cast<double>(std::max<int64_t>(2, initial));
  live_slider(ui,
              {"Rank cap",
               "Upper limit of the live rank: the largest entries stay. Raising the cap gives the bond new entries; removing it does not.",
               1, most, false, "%.0f", true},
              cap > 0 ? static_cast<double>(cap) : most, path);
  if (cap > 0) {
    if (button("Remove cap", {.enabled = ui.editable() != nullptr, .why_not = "Only while this window trains the run"}))
      ui.editable()->edit(path, "null");
  } else {
    text_dim("No cap.");
  }
  ImGui::Dummy({0, em(0.15f)});
  text_dim("Entries of the rank vector, sorted");
  const SeenValues seen = seen_values(ui, layer, bond, 0);
  if (seen.bond) entry_bars(seen.bond->values, threshold, {width, em(5)});
  dim_lines(seen.note);
  ImGui::Dummy({0, em(0.15f)});
  text_dim("Live rank over time");
  const FigureLine past = history_of(view, layer.name, bond, s.step);
  if (past.x.empty())
    text_dim("Not recorded for this run.");
  else
    sparkline(past, static_cast<double>(initial), static_cast<double>(std::max<int64_t>(1, view.snapshot->step)), {width, em(3.4f)});
  ImGui::Dummy({0, em(0.15f)});
  lock_switch(ui, layer);
}

void core_card(UiState& ui, const LayerRanks& layer, int64_t core) {
  const Snapshot& s = ui.snapshot();
  const auto index = static_cast<size_t>(core - 1);
  const int64_t live = core_entries(layer, layer.live, index), held = core_entries(layer, layer.held, index);
  const std::vector<LayerRanks> alone{layer};
  const TTLayout layout = lay_out(alone, {});
  const float column = ImGui::GetCursorPosX() + em(5.6f);
  const double bytes = s.size.bytes_an_entry();
  if (index < layout.cores.size()) fact("shape", core_label(layout.cores[index]), column);
  const SeenValues seen = seen_values(ui, layer, 0, core);
  if (seen.core) {
    value_bars(*seen.core, {ImGui::GetContentRegionAvail().x, em(5)});
    std::string shape;
    for (const int64_t size : seen.core->shape) shape += (shape.empty() ? "" : " \xc3\x97 ") + std::to_string(size);
    if (index >= layout.cores.size() || shape != core_label(layout.cores[index])) fact("in memory", shape, column);
    fact("norm", significant(seen.core->norm, 4), column);
    if (ui.shown().live && !ui.replaying())
      fact("gradient",
           std::isfinite(seen.core->gradient_norm) ? "norm " + significant(seen.core->gradient_norm, 4) : "known after the next step",
           column);
    if (seen.core->step != s.step && seen.note.empty()) text_dim("at step " + grouped(seen.core->step));
  }
  dim_lines(seen.note);
  ImGui::Dummy({0, em(0.15f)});
  const bool input = layer.is_table() || index < layer.in_modes.size();
  fact("side", layer.is_table() ? "rows and columns" : input ? "input" : "output", column);
  fact("parameters", grouped(live) + " live, " + grouped(held) + " in memory", column);
  fact("initially", grouped(core_entries(layer, layer.initial, index)), column);
  fact("size", mebibytes(static_cast<double>(live) * bytes) + " live, " + mebibytes(static_cast<double>(held) * bytes) + " in memory",
       column);
  if (s.size.entries > 0)
    fact("share", significant(static_cast<double>(live) / s.size.entries * 100, 3) + " % of all tensor trains", column);
}

void layer_card(UiState& ui, const LayerRanks& layer) {
  const Snapshot& s = ui.snapshot();
  const float column = ImGui::GetCursorPosX() + em(5.6f);
  const int64_t live = layer_entries(layer, layer.live), in = multiplied(layer.in_modes), out = multiplied(layer.out_modes);
  fact(layer.is_table() ? "rows" : "inputs", grouped(in) + " = " + product_text(layer.in_modes), column);
  fact(layer.is_table() ? "columns" : "outputs", grouped(out) + " = " + product_text(layer.out_modes), column);
  fact("parameters", grouped(live) + " live", column);
  fact("in memory", grouped(layer_entries(layer, layer.held)), column);
  fact("initially", grouped(layer_entries(layer, layer.initial)), column);
  fact("size", mebibytes(static_cast<double>(live) * s.size.bytes_an_entry()), column);
  if (live > 0)
    fact("dense", significant(static_cast<double>(in) * static_cast<double>(out) / static_cast<double>(live), 3) + " x as many entries",
         column);
  ImGui::Dummy({0, em(0.2f)});
  lock_switch(ui, layer);
  text_dim("Click a bond to cap it.");
}

}  // namespace

void choose_in_diagram(UiState& ui, const std::string& layer, int64_t bond, int64_t core) {
  ui.selected_layer = ui.tt.shown_layer = layer;
  ui.tt.bond = bond;
  ui.tt.core = core;
}

void draw_tt_card(UiState& ui, const LayerRanks& layer) {
  TTView& tt = ui.tt;
  const auto bonds = static_cast<int64_t>(layer.initial.size());
  push_title();
  const std::string title = tt.bond > 0 ? "Bond " + std::to_string(tt.bond) : tt.core > 0 ? "Core " + std::to_string(tt.core) : "Layer";
  ImGui::TextUnformatted(title.c_str());
  ImGui::PopFont();
  ImGui::SameLine();
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - em(1.6f);
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right));
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.25f), 0));
  const bool close = button("###close", {.icon = Icon::cross, .tooltip = "Close", .size = {em(1.6f), 0}});
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  push_small();
  text_fit("of " + layer.name, ImGui::GetContentRegionAvail().x, theme().dim);
  ImGui::Dummy({0, em(0.1f)});
  if (tt.bond > 0 && tt.bond <= bonds)
    bond_card(ui, layer, tt.bond);
  else if (tt.core > 0 && tt.core <= bonds + 1)
    core_card(ui, layer, tt.core);
  else
    layer_card(ui, layer);
  ImGui::PopFont();
  if (close) choose_in_diagram(ui, "", 0, 0);
}

void inspect_chosen(UiState& ui, const LayerRanks* layer) {
  LiveRun* run = ui.editable();
  if (!run) return;
  const auto bonds = layer ? static_cast<int64_t>(layer->initial.size()) : -1;
  const int64_t bond = layer && ui.tt.bond > 0 && ui.tt.bond <= bonds ? ui.tt.bond : 0;
  const int64_t core = layer && bond == 0 && ui.tt.core > 0 && ui.tt.core <= bonds + 1 ? ui.tt.core : 0;
  const std::string name = bond > 0 ? bond_name(layer->name, bond) : core > 0 ? layer->name + "/" + std::to_string(core) : "";
  if (name == ui.tt.inspected && (run == ui.tt.asked || name.empty())) return;
  ui.tt.inspected = name;
  ui.tt.asked = run;
  run->inspect(name.empty() ? "" : layer->name, bond, core);
}

namespace {

std::string note_of(const UiState& ui, const SeenValues& seen) {
  const Snapshot& s = ui.snapshot();
  return s.name + ", step " + thousands(static_cast<double>(s.step)) + (seen.note.empty() ? "" : ". " + seen.note);
}

Chart core_chart(const UiState& ui, const SeenValues& seen, const std::string& title) {
  Figure values{.title = title, .note = note_of(ui, seen), .x_title = "value"};
  const double wide = 2 * seen.core->largest / static_cast<double>(seen.core->bins.size());
  for (size_t i = 0; i < seen.core->bins.size(); ++i) {
    const double low = -seen.core->largest + wide * static_cast<double>(i);
    values.bars.push_back({"", low, low + wide, static_cast<double>(seen.core->bins[i]), theme().series[0]});
  }
  return chart_of("core-values", std::move(values));
}

Chart entries_chart(const UiState& ui, const SeenValues& seen, const std::string& title) {
  Figure entries{.title = title, .note = note_of(ui, seen), .x_title = "entry", .threshold = ui.config().method.comera.threshold};
  std::vector<double> values = seen.bond->values;
  std::sort(values.rbegin(), values.rend());
  for (size_t i = 0; i < values.size(); ++i)
    entries.bars.push_back({"", static_cast<double>(i) + 0.6, static_cast<double>(i) + 1.4, values[i],
                            values[i] > entries.threshold ? theme().series[0] : theme().dim});
  return chart_of("bond-entries", std::move(entries));
}

}  // namespace

void add_card_charts(UiState& ui, const LayerRanks& layer, std::vector<ListedChart>& out) {
  const auto bonds = static_cast<int64_t>(layer.initial.size());
  if (ui.tt.bond == 0 && ui.tt.core > 0 && ui.tt.core <= bonds + 1) {
    const SeenValues seen = seen_values(ui, layer, 0, ui.tt.core);
    if (!seen.core || seen.core->bins.empty()) return;
    const std::string title = "Values of " + layer.name + ", core " + std::to_string(ui.tt.core);
    out.push_back({"core-values", title, [&ui, seen, title] { return core_chart(ui, seen, title); }});
  }
  if (ui.tt.bond <= 0 || ui.tt.bond > bonds) return;
  const std::string name = bond_name(layer.name, ui.tt.bond);
  out.push_back({"bond-history", "Live rank of " + name, [&ui, name, of = layer.name, bond = ui.tt.bond] {
                   return chart_of("bond-history", {.title = "Live rank of " + name,
                                                    .note = note_of(ui, {}),
                                                    .lines = {history_of(ui.shown(), of, bond, ui.snapshot().step)},
                                                    .from_zero = true});
                 }});
  if (const SeenValues seen = seen_values(ui, layer, ui.tt.bond, 0); seen.bond)
    out.push_back(
        {"bond-entries", "Entries of " + name, [&ui, seen, title = "Entries of " + name] { return entries_chart(ui, seen, title); }});
}

}  // namespace comera::studio
