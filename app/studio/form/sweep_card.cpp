#include "app/studio/form/sweep_card.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "app/format.h"
#include "app/studio/form/queue_controls.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/sweeping.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

// A caption and a box of text, `after` of the line left free; true when the text was changed.
bool text_line(const std::string& caption, const std::string& id, const char* hint, std::string& value, float after = 0) {
  const float left = ImGui::GetCursorPosX(), width = ImGui::GetContentRegionAvail().x - after, label = std::min(em(8), width * 0.4f);
  ImGui::AlignTextToFramePadding();
  text_fit(caption, label - em(0.4f), theme().text);
  ImGui::SameLine();
  ImGui::SetCursorPosX(left + label);
  ImGui::SetNextItemWidth(width - label);
  char text[2048];
  std::snprintf(text, sizeof text, "%s", value.c_str());
  const bool changed = ImGui::InputTextWithHint(("##" + id).c_str(), hint, text, sizeof text);
  if (changed) value = text;
  name_item(id);
  return changed;
}

// What is wrong with values. The line appears when the box is left and the button of the mouse is up: else it would move what is clicked.
void problem_line(VariedSetting& varied, bool typing) {
  const std::string& problem = varied.list.problem;
  if (!typing && !ImGui::IsMouseDown(ImGuiMouseButton_Left)) varied.told = true;
  if (problem.empty()) varied.told = false;
  if (varied.told) text_wrapped(problem, theme().bad);
}

void name_line(FormSweep& sweep) {
  std::string name = sweep.name;
  if (text_line("Name", "sweep-name", "", name)) set_sweep_name(sweep, name);
  tooltip("Its runs have the tag sweep:NAME. The same sweep with the same name continues where it was stopped");
}

const char* hint_of(const std::string& path) {
  if (path == kMethodPath) return "comera, adamw";
  const FieldEntry* setting = find_setting(path);
  return setting && setting->type == "number" ? "1e-3, 3e-3"
         : setting && setting->type == "int"  ? "8, 16, 32"
                                              : "values with commas between";
}

// One varied setting; true when it is to vary no more.
bool varied_line(FormSweep& sweep, VariedSetting& varied) {
  const std::string caption = short_name(varied.path, [&] {
    std::vector<std::string> paths;
    for (const VariedSetting& one : sweep.varied) paths.push_back(one.path);
    return paths;
  }());
  const float cross = ImGui::GetFrameHeight();
  ImGui::PushID(varied.path.c_str());
  std::string text = varied.text;
  if (text_line(caption, "values:" + varied.path, hint_of(varied.path), text, cross + em(0.3f))) set_values(sweep, varied, text);
  const bool typing = ImGui::IsItemActive();
  tooltip((varied.path + ": values, separated by commas").c_str());
  ImGui::SameLine(0, em(0.3f));
  const bool gone = button(("###no-longer:" + varied.path).c_str(), {.icon = Icon::cross, .tooltip = "Varies no more", .size = {cross, 0}});
  problem_line(varied, typing);
  ImGui::PopID();
  return gone;
}

void seeds_line(NewRun& form) {
  FormSweep& sweep = form.sweep;
  std::string text = sweep.seeds.text;
  const std::string hint = std::to_string(form.config.train.seed);
  if (text_line("Seeds", "values:seeds", hint.c_str(), text)) set_values(sweep, sweep.seeds, text);
  const bool typing = ImGui::IsItemActive();
  tooltip("Each point is trained once for each seed, for example 1, 2, 3. Empty: the seed of the form");
  problem_line(sweep.seeds, typing);
}

void lines(UiState& ui) {
  NewRun& form = ui.form;
  FormSweep& sweep = form.sweep;
  name_line(sweep);
  std::string gone;
  for (VariedSetting& varied : sweep.varied)
    if (varied_line(sweep, varied)) gone = varied.path;
  if (!gone.empty()) set_varied(form, gone, false);
  seeds_line(form);
  bool methods = sweep.find(kMethodPath) != nullptr;
  const bool fits = checkbox_width("Vary the method as a whole") < ImGui::GetContentRegionAvail().x;
  if (ImGui::Checkbox(fits ? "Vary the method as a whole###vary-method" : "Method###vary-method", &methods))
    set_varied(form, kMethodPath, methods);
  name_item("vary:method");
  tooltip("Methods by name, as in Memory of all methods: comera, galore, comera+adam8bit");
}

// "12 runs of 4 points, 3 trained"
void count_line(const NewRun& form) {
  const FormSweep& sweep = form.sweep;
  const PlannedSweep& plan = *sweep.plan;
  const auto points = std::count_if(plan.points.begin(), plan.points.end(), [](const SweepPoint& point) { return !point.runs.empty(); });
  const int64_t over = sweep.runs_over();
  text_wrapped(counted(static_cast<int64_t>(plan.runs()), "run") + " of " + counted(points, "point") +
                   (over > 0 ? ", " + std::to_string(over) + " trained already" : ""),
               theme().text);
  if (!sweep.trained.problem.empty()) text_wrapped(sweep.trained.problem, theme().bad);
}

void peak_line(const FormSweep& sweep) {
  const PlannedSweep& plan = *sweep.plan;
  if (sweep.peaks.size() < plan.points.size())
    return text_wrapped("Planning the memory of " + counted(static_cast<int64_t>(plan.points.size() - sweep.peaks.size()), "point"),
                        theme().dim);
  const size_t largest = sweep.largest();
  const int64_t bytes = sweep.peaks[largest];
  if (bytes == 0) return;
  const std::string of = plan.text_of_point(largest);
  const bool fits = sweep.available == 0 || bytes <= sweep.available;
  text_wrapped("Largest planned peak " + mebibytes(static_cast<double>(bytes)) + (of.empty() ? "" : " (" + of + ")") +
                   (fits ? "" : ", but " + mebibytes(static_cast<double>(sweep.available)) + " are free"),
               fits ? theme().dim : theme().bad);
}

// One line a reason.
void refused_lines(const PlannedSweep& plan) {
  std::map<std::string, std::vector<size_t>> refused;
  for (size_t i = 0; i < plan.points.size(); ++i)
    if (plan.points[i].runs.empty()) refused[plan.points[i].refusal].push_back(i);
  for (const auto& [reason, points] : refused) {
    const std::string count = points.size() == 1 ? "" : counted(static_cast<int64_t>(points.size()), "point") + ", the first ";
    text_wrapped("Left out: " + count + plan.text_of_point(points.front()) + ": " + reason, theme().warning);
  }
}

void summary(const NewRun& form) {
  const FormSweep& sweep = form.sweep;
  if (sweep.varied.empty() && sweep.seeds.text.empty())
    return text_wrapped("Tick the settings to vary; every combination of their values is a point", theme().dim);
  if (sweep.runs() > kMostSweepRuns) return text_wrapped(sweep.problem() + ": `comera sweep` trains them", theme().bad);
  if (!sweep.problem().empty()) return text_wrapped("Waits for valid values", theme().dim);
  if (!sweep.plan) return text_wrapped("Planning the points", theme().dim);
  if (!sweep.plan->problem.empty()) return text_wrapped(sweep.plan->problem, theme().bad);
  count_line(form);
  peak_line(sweep);
  refused_lines(*sweep.plan);
}

void train_button(UiState& ui) {
  const std::string no = no_sweep(ui);
  if (button("Train sweep###sweep-start",
             {.icon = Icon::play,
              .primary = true,
              .enabled = no.empty(),
              .tooltip = "Trains the runs one after another. Those that are trained already are not trained again. "
                         "`comera sweep` in a terminal does the same with the saved file",
              .keys = ui.settings.keys.of("sweep.start"),
              .why_not = no.c_str()}))
    start_sweep(ui);
}

void buttons(UiState& ui) {
  if (trains_queue(ui, kSweepNoun))
    draw_queue_progress(ui, "sweep.stop");
  else
    train_button(ui);
  bool own_line = trains_queue(ui, kSweepNoun);  // below the progress
  const auto add = [&](const char* label, const char* tip, const std::string& no, void (*act)(UiState&)) {
    const ButtonLook look{.enabled = no.empty(), .tooltip = tip, .why_not = no.c_str()};
    if (!std::exchange(own_line, false)) beside_or_below(button_width(label, look));
    if (button(label, look)) act(ui);
  };
  add("Save file###sweep-save", "Writes the JSON file that `comera sweep` reads into the folder of exports", no_sweep_file(ui), save_sweep);
  add("Compare###sweep-compare", "Compares its runs, those of the best points if there are many", no_sweep_comparison(ui), compare_sweep);
  add("List runs###sweep-list", "Shows the runs with the tag of this sweep", "", list_sweep);
}

}  // namespace

void draw_sweep_switch(UiState& ui) {
  if (ui.form.fork) return;
  const char* label = "Sweep: vary settings and seeds";
  if (checkbox_width(label) > ImGui::GetContentRegionAvail().x) label = "Sweep";
  ImGui::Checkbox((std::string(label) + "###sweep").c_str(), &ui.form.sweep.shown);
  name_item("sweep");
  tooltip("Trains many combinations of settings, each under several seeds. Every setting gets a box to let it vary");
}

void draw_sweep_card(UiState& ui) {
  if (!shows_sweep(ui.form)) return;
  if (begin_card("card-sweep", {0, 0}, ImGuiChildFlags_AutoResizeY)) {
    card_title("Sweep", "The same network trained with every combination of the values below, each under every seed.");
    push_small();
    lines(ui);
    summary(ui.form);
    buttons(ui);
    ImGui::PopFont();
  }
  end_card();
}

float sweep_tick_width() { return ImGui::GetTextLineHeight() + 2 * em(0.15f) + em(0.5f); }

void draw_sweep_tick(NewRun& form, const std::string& path) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (may_vary(path)) {
    const float height = ImGui::GetTextLineHeight() + 2 * em(0.15f);
    bool on = form.sweep.find(path) != nullptr;
    ImGui::SetCursorScreenPos({at.x, at.y + std::floor((ImGui::GetFrameHeight() - height) / 2)});
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.15f), em(0.15f)));
    ImGui::PushID(path.c_str());
    if (ImGui::Checkbox("##vary", &on)) set_varied(form, path, on);
    ImGui::PopID();
    ImGui::PopStyleVar();
    name_item("vary:" + path);
    tooltip("Varies in the sweep");
  }
  ImGui::SetCursorScreenPos({at.x + sweep_tick_width(), at.y});
}

}  // namespace comera::studio
