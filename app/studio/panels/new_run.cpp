// The form of a new run: all settings of a config, generated from its fields, next to the forecast.
#include "app/studio/form/new_run.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "app/format.h"
#include "app/plan_rows.h"
#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/form/config_form.h"
#include "app/studio/form/method_memory_view.h"
#include "app/studio/form/misfit_card.h"
#include "app/studio/form/sweep_card.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/shown_run/processes_link.h"

namespace comera::studio {
namespace {

std::string title_of_source(const std::string& source) {
  const size_t slash = source.rfind('/');
  return slash == std::string::npos ? source : source.substr(slash + 1);
}

void choose_source(UiState& ui) {
  NewRun& form = ui.form;
  if (!ImGui::BeginCombo("##source", whole_label(title_of_source(form.source)).c_str())) return;
  for (const std::string& name : form.presets)
    if (ImGui::Selectable(whole_label(name).c_str(), name == form.source)) open_form(ui, name);
  ImGui::Separator();
  std::set<std::string> opened{form.source};  // files and folders, with what was changed of them
  for (const auto& [source, draft] : form.drafts) opened.insert(source);
  for (const std::string& source : opened) {
    if (source.find('/') == std::string::npos) continue;
    if (ImGui::Selectable((whole_label(title_of_source(source)) + "###" + source).c_str(), source == form.source)) open_form(ui, source);
    tooltip(source.c_str());
  }
  if (ImGui::Selectable("Open a config file ...")) open_browser(ui, BrowseFor::config);
  if (ImGui::Selectable("Open a model folder ...")) open_browser(ui, BrowseFor::model, Choose::folder);
  name_item("source:model-folder");
  ImGui::EndCombo();
}

// In narrow windows the forecast is above the settings instead of next to them.
bool stacked() { return ImGui::GetMainViewport()->Size.x < em(44); }

void source_and_search(UiState& ui) {
  NewRun& form = ui.form;
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  const bool wide = ImGui::GetContentRegionAvail().x > em(64), narrow = stacked();
  ImGui::AlignTextToFramePadding();
  if (wide) {
    card_title("New run");
    ImGui::SameLine(0, em(1));
    text_dim(form.fork ? "as a fork of" : "from");
    ImGui::SameLine();
  }
  const float named = ImGui::CalcTextSize(title_of_source(form.source).c_str()).x + ImGui::GetFrameHeight() + em(1);
  ImGui::SetNextItemWidth(wide ? em(13) : std::clamp(named, em(narrow ? 8 : 10), em(13)));
  choose_source(ui);
  tooltip(form.fork ? ("Continues from " + form.fork->name + " after step " + thousands(static_cast<double>(form.fork->step)) +
                       ". Its settings are below. A preset here starts a new run instead")
                          .c_str()
                    : ("Initial settings from: " + form.source).c_str());
  ImGui::SameLine();
  const std::string count = form.changed.empty() ? "No changes" : "Reset " + std::to_string(form.changed.size()) + " changed";
  const std::string tip = (narrow ? count + ": all" : std::string("All")) +
                          (form.fork ? " settings back to those of the run" : " settings back to the preset") + "; the seed stays";
  if (button(((narrow ? "" : count) + "###reset").c_str(),
             {.icon = Icon::rewind, .enabled = !form.changed.empty(), .tooltip = tip.c_str(), .why_not = "No setting is changed"}))
    reset_form(ui);
  ImGui::SameLine();
  const float width = std::max(em(6), std::min(em(20), right - ImGui::GetCursorPosX()));
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right - width));
  ImGui::SetNextItemWidth(std::max(em(3), right - ImGui::GetCursorPosX()));
  if (std::exchange(ui.find, false)) {
    ImGui::SetWindowFocus();  // from the column beside, whose window would keep the keyboard
    ImGui::SetKeyboardFocusHere();
  }
  char text[128];
  std::snprintf(text, sizeof text, "%s", form.search.c_str());
  if (ImGui::InputTextWithHint("##search", with_key(ui.settings.keys, "Search settings", "view.find").c_str(), text, sizeof text))
    form.search = text;
}

// Problems that prevent the start; a click scrolls to the setting.
void problem_list(UiState& ui) {
  NewRun& form = ui.form;
  std::vector<Problem> problems = blocking_problems(form);
  if (problems.empty()) {
    form.listing = false;
    return;
  }
  std::erase_if(problems, [&](const Problem& problem) { return in_misfit_card(form, problem.path); });
  if (problems.empty()) return;
  if (begin_card("card-problems", {0, 0}, ImGuiChildFlags_AutoResizeY)) {
    ImGui::PushStyleColor(ImGuiCol_Text, theme().bad);
    ImGui::PushTextWrapPos(0);
    card_title(problems.size() == 1 ? "One setting is invalid" : "Some settings are invalid");
    ImGui::PopTextWrapPos();
    ImGui::PopStyleColor();
    push_small();
    for (const Problem& problem : problems) {
      ImGui::PushID(static_cast<int>(&problem - problems.data()));
      ImGui::PushTextWrapPos(0);
      if (ImGui::TextLink((problem.path.empty() ? "config" : problem.path).c_str())) jump_to(form, problem.path);
      name_item("listed:" + problem.path);
      ImGui::TextUnformatted(problem.text.c_str());
      if (!problem.hint.empty()) text_dim("Try: " + problem.hint);
      ImGui::PopTextWrapPos();
      ImGui::PopID();
    }
    ImGui::PopFont();
  }
  end_card();
}

void numbers(const Forecast& forecast) {
  const bool narrow = ImGui::GetContentRegionAvail().x < em(30);
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(em(0.3f), em(0.06f)));
  const bool open = ImGui::BeginTable("plan", 3, ImGuiTableFlags_SizingStretchProp);
  ImGui::PopStyleVar();
  if (!open) return;
  ImGui::TableSetupColumn("quantity", ImGuiTableColumnFlags_WidthStretch, 1.15f);
  ImGui::TableSetupColumn("count", ImGuiTableColumnFlags_WidthStretch, narrow ? 0.75f : 1);
  ImGui::TableSetupColumn("note", ImGuiTableColumnFlags_WidthStretch, 1.2f);
  for (const PlanRow& row : plan_rows(forecast)) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    std::string what = row.what;
    for (int i = 0; i < kPurposes; ++i) {  // purposes have the same names and colours as in other panels
      if (what != name_of(static_cast<Purpose>(i))) continue;
      const PurposeLook look = look_of(static_cast<Purpose>(i));
      color_mark(look.color);
      what = look.title;
    }
    if (row.level > 0 && what == row.what) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ImGui::GetTextLineHeight());
    text_fit(what, ImGui::GetContentRegionAvail().x, row.level == 0 ? theme().text : theme().dim);
    std::string count = row.count;
    if (const size_t unit = count.find(" bytes"); narrow && unit != std::string::npos) count.resize(unit);  // MiB is in the next column
    const std::string note = row.note.substr(0, narrow ? row.note.find(" than dense") : std::string::npos);
    for (const std::string* text : {static_cast<const std::string*>(&count), &note}) {
      ImGui::TableNextColumn();
      const bool words = text->find(' ') != text->rfind(' ');
      ImGui::PushFont(words ? fonts().text : fonts().numbers, 0);
      const float room = ImGui::GetContentRegionAvail().x, needed = ImGui::CalcTextSize(text->c_str()).x;
      ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, room - needed));
      text_fit(*text, room, row.level == 0 ? theme().text : theme().dim);
      ImGui::PopFont();
    }
  }
  ImGui::EndTable();
}

std::string list_of(const std::vector<int64_t>& values, const char* between) {
  std::string text;
  for (const int64_t value : values) text += (text.empty() ? "" : between) + std::to_string(value);
  return text;
}

// "14 20/32 32": the rank of each bond, after its cap if there is one.
std::string bonds_text(const NewRun& form, const ForecastLayer& layer) {
  std::string text;
  for (size_t bond = 1; bond + 1 < layer.ranks.size(); ++bond) {
    const auto cap = form.caps.find(layer.name + "." + std::to_string(bond));
    const bool held = cap != form.caps.end() && cap->second < layer.ranks[bond];
    text += (text.empty() ? "" : " ") + (held ? std::to_string(cap->second) + "/" : "") + std::to_string(layer.ranks[bond]);
  }
  return text;
}

void caps_popup(NewRun& form, const ForecastLayer& layer) {
  if (!ImGui::BeginPopup("caps")) return;
  card_title(("Rank caps of " + layer.name).c_str(),
             "Upper limits of the ranks from the first step on. Entries beyond a cap are 0 and are pruned at the next check. Caps can "
             "change during training. The forecast ignores them.");
  for (size_t bond = 1; bond + 1 < layer.ranks.size(); ++bond) {
    const std::string name = layer.name + "." + std::to_string(bond);
    const int64_t most = layer.ranks[bond], least = 1;
    const auto found = form.caps.find(name);
    int64_t cap = found == form.caps.end() ? most : std::min(found->second, most);
    ImGui::SetNextItemWidth(em(12));
    if (ImGui::SliderScalar(("bond " + std::to_string(bond) + "###cap-" + name).c_str(), ImGuiDataType_S64, &cap, &least, &most,
                            ("%lld of " + std::to_string(most)).c_str(), ImGuiSliderFlags_AlwaysClamp)) {
      if (cap < most)
        form.caps[name] = cap;
      else
        form.caps.erase(name);
    }
    name_item("cap:" + name);
  }
  ImGui::EndPopup();
}

void layers(NewRun& form, const Forecast& forecast) {
  if (forecast.layers.empty()) return;
  ImGui::Dummy({0, em(0.3f)});
  const std::string title = std::to_string(forecast.layers.size()) + " tensor trains###layers";
  const bool shown = ImGui::TreeNodeEx(title.c_str(), ImGuiTreeNodeFlags_NoTreePushOnOpen | ImGuiTreeNodeFlags_SpanAvailWidth);
  name_item("tensor-trains");
  if (!shown) return;
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(em(0.3f), em(0.06f)));
  const bool open = ImGui::BeginTable("layers", 4, ImGuiTableFlags_SizingStretchProp);
  ImGui::PopStyleVar();
  if (!open) return;
  for (const ForecastLayer& layer : forecast.layers) {
    ImGui::TableNextRow();
    ImGui::PushID(layer.name.c_str());
    const std::string smaller =
        significant(static_cast<double>(layer.dense_entries) / static_cast<double>(std::max<int64_t>(1, layer.entries)), 3) + " x";
    ImGui::TableNextColumn();
    if (ImGui::Selectable("##caps", false, ImGuiSelectableFlags_SpanAllColumns)) ImGui::OpenPopup("caps");
    name_item("caps:" + layer.name);
    tooltip("Click: set rank caps");
    caps_popup(form, layer);
    ImGui::SameLine(0, 0);
    text_fit(layer.name, ImGui::GetContentRegionAvail().x, theme().dim);
    for (const std::string& text :
         {list_of(layer.in_modes, "·") + " to " + list_of(layer.out_modes, "·"), "ranks " + bonds_text(form, layer), smaller}) {
      ImGui::TableNextColumn();
      text_fit(text, ImGui::GetContentRegionAvail().x, theme().dim);
    }
    ImGui::PopID();
  }
  ImGui::EndTable();
}

// A forecast and its source in two lines that can be focused and have a tooltip.
void two_lines(const std::string& text, ImU32 color, const std::string& from, ImU32 from_color, float room, const std::string& more) {
  const ImVec2 at = ImGui::GetCursorPos();
  ImGui::BeginGroup();
  text_fit(text, room, color);
  text_fit(from, room, from_color);
  ImGui::EndGroup();
  focus_area("##pace", at, ImGui::GetItemRectSize());
  name_item("pace");
  told("pace", more, text + "\n" + from);
}

// "30.0 it/s, 2 min for 4,500 steps", limited by the step limit.
std::string speed_text(const RunConfig& config, double step_ms, int64_t steps, const std::string& count) {
  if (const double limit = config.train.max_steps_per_s; limit > 0) step_ms = std::max(step_ms, 1000 / limit);
  std::string text = three_figures(1000 / step_ms) + " it/s";
  if (steps > 0) text += ", " + duration(static_cast<double>(steps) * step_ms / 1000) + " for " + count;
  return text;
}

// Without a stored run: the time measured on this machine, else an estimate from another measured step, else "not known".
void guess_line(UiState& ui, int64_t steps, const std::string& count) {
  NewRun& form = ui.form;
  const Guess& guess = form.guess;
  const char* busy = form.measuring ? "Steps are being timed" : ui.training() ? "A run is training: both would slow down" : nullptr;
  const char* why_not = busy                     ? busy
                        : form.misfit            ? "The run does not fit into memory"
                        : !form.problems.empty() ? "A setting is invalid"
                                                 : nullptr;
  const ButtonLook look{.icon = Icon::clock,
                        .enabled = why_not == nullptr,
                        .tooltip = "Times some steps on synthetic data of this shape, for some seconds. Only the time is stored.",
                        .why_not = why_not};
  const std::string label = (form.measuring ? "Measuring" : guess.same ? "Measure again" : "Measure") + std::string("###measure");
  const float room = ImGui::GetContentRegionAvail().x - button_width(label.c_str(), look) - em(0.6f), left = ImGui::GetCursorPosX();
  if (guess.step_ms > 0) {
    const std::string text = (guess.same ? "" : "About ") + speed_text(form.config, guess.step_ms, steps, count);
    two_lines(text, theme().text,
              guess.same ? "measured on this machine with synthetic data"
                         : "estimate, at the GEMM rate of " + guess.from + ", measured on this machine",
              theme().dim, room, "There is no stored run of this shape. Falling ranks make later steps faster.");
  } else {
    two_lines((count.empty() ? "" : count + ". ") + "Speed: not known yet", theme().dim,
              form.measure_problem.empty() ? "there is no stored run of this shape" : form.measure_problem,
              form.measure_problem.empty() ? theme().dim : theme().bad, room,
              "A stored run with this model, method, batch size and device gives the step time.");
  }
  ImGui::SameLine();
  ImGui::SetCursorPosX(left + room + em(0.6f));
  if (button(label.c_str(), look)) measure_form(ui);
}

// Forecast of speed and duration with its source; without a stored run, guess_line().
void pace_line(UiState& ui) {
  NewRun& form = ui.form;
  const int64_t steps =
      form.facts() ? planned_steps(form.config, form.facts()->rows, form.facts()->whole) : planned_steps(form.config, 0, false);
  const std::string count = steps > 0 ? counted(steps, "step") : "";
  const float room = ImGui::GetContentRegionAvail().x;
  if (form.pace.step_ms <= 0) {
    guess_line(ui, steps, count);
    return;
  }
  const std::string text = speed_text(form.config, form.pace.step_ms, steps, count);
  two_lines(text, theme().text, "speed of " + form.pace.name + " (" + form.pace.run + "), " + form.pace.device, theme().dim, room,
            "Median time of the last steps of the newest stored run with the same step, without evaluation and checkpoints. Falling ranks "
            "make later steps faster.");
}

void no_forecast(const NewRun& form) {
  push_small();
  ImGui::PushTextWrapPos(0);
  text_dim("There is no forecast while a setting is invalid.");
  for (const Problem& problem : form.outlook_problems) {
    if (problem.path != "model") continue;  // other problems are shown at their settings
    ImGui::TextUnformatted(problem.text.c_str());
    if (!problem.hint.empty()) text_dim("Try: " + problem.hint);
  }
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
}

void forecast_card(UiState& ui) {
  NewRun& form = ui.form;
  if (!begin_card("card-forecast", {0, 0}, ImGuiChildFlags_AutoResizeY)) return end_card();
  card_title("Forecast", "From a dry run of the training step; nothing is allocated. `comera plan` prints the same.");
  if (form.looking) {
    ImGui::SameLine();
    small_beside("computing", theme().dim);
  }
  if (form.forecast) {
    ImGui::SameLine();
    export_button(ui, "form");
  }
  if (form.forecast) {
    const Forecast& forecast = *form.forecast;
    ImGui::PushStyleVar(ImGuiStyleVar_Alpha, form.looking ? 0.6f : 1.0f);
    const float column = ImGui::GetContentRegionAvail().x / 3, left = ImGui::GetCursorPosX();
    stat("parameters", thousands(static_cast<double>(forecast.parameters)));
    ImGui::SameLine(left + column * 1.05f);
    push_small();
    const bool wide = ImGui::CalcTextSize("smaller than dense").x + em(0.5f) < column;
    ImGui::PopFont();
    stat(wide ? "smaller than dense" : "compression", significant(forecast.model_compression(), 3) + " x");
    ImGui::SameLine(left + column * 2.05f);
    stat("peak memory", mebibytes(static_cast<double>(forecast.memory.total())));
    told("peak", exact_bytes(static_cast<double>(forecast.memory.total())));
    purpose_bar(forecast.memory, static_cast<double>(forecast.memory.total()), em(0.8f));
    push_small();
    pace_line(ui);
    ImGui::PopFont();
    ImGui::PopStyleVar();
  } else if (!form.looking) {
    no_forecast(form);
  }
  push_small();
  static constexpr const char* kViews[] = {"This method", "Memory of all methods"};
  int view = form.methods.shown ? 1 : 0;
  if (segmented("forecast-view", kViews, 2, view)) form.methods.shown = view == 1;
  if (form.methods.shown) {
    draw_method_memory(ui);
  } else if (form.forecast) {
    ImGui::PushStyleVar(ImGuiStyleVar_Alpha, form.looking ? 0.6f : 1.0f);
    // When stacked, this long list would push the settings down, so it is collapsed.
    if (!stacked() || ImGui::TreeNodeEx("Details###numbers", ImGuiTreeNodeFlags_NoTreePushOnOpen | ImGuiTreeNodeFlags_SpanAvailWidth)) {
      numbers(*form.forecast);
      layers(form, *form.forecast);
    }
    ImGui::PopStyleVar();
  }
  ImGui::PopFont();
  end_card();
}

// How many processes train the run together; only where they can be started.
void processes_field(NewRun& form, UiState& ui) {
  if (form.fork || !no_processes().empty()) return;
  constexpr int kMostHere = 64;
  ImGui::AlignTextToFramePadding();
  text_fit("Processes", em(6), theme().dim);
  ImGui::SameLine(em(6.5f));
  ImGui::SetNextItemWidth(em(7));
  int processes = form.processes;
  if (ImGui::InputInt("##processes", &processes)) {
    form.processes = std::clamp(processes, 1, kMostHere);
    form_changed(ui, "");
  }
  tooltip(
      "Processes of this machine that share each batch, started by mpirun. The result is that of one process with as many "
      "micro-batches. On the CPU one process uses all cores as well; several pay where each has a GPU.");
}

void start_card(UiState& ui) {
  NewRun& form = ui.form;
  if (!begin_card("card-start", {0, 0}, ImGuiChildFlags_AutoResizeY)) return end_card();
  const float width = ImGui::GetContentRegionAvail().x, half = (width - ImGui::GetStyle().ItemSpacing.x) / 2;
  const std::string no = no_writing(ui);
  if (button(form.fork ? "Fork###start-run" : "Start###start-run",
             {.icon = form.fork ? Icon::fork : Icon::play,
              .primary = true,
              .enabled = !form.start_wanted && no.empty(),
              .tooltip = form.fork ? "Starts the fork with these settings" : "Starts a run with these settings",
              .keys = ui.settings.keys.of("run.start_form"),
              .why_not = no.empty() ? "The settings are being checked" : no.c_str(),
              .size = {width, ImGui::GetFrameHeight() + em(0.5f)}}))
    start_form(ui);
  processes_field(form, ui);
  const bool beside = button_width("Copy CLI command", {}) <= half;
  const ImVec2 size(beside ? half : width, 0);
  if (button("Copy as JSON", {.tooltip = "Copies all settings as a config file", .size = size})) {
    ImGui::SetClipboardText(form_json(form).c_str());
    toast(ui, Level::good, "Config copied");
  }
  if (beside) ImGui::SameLine();
  if (button("Copy CLI command", {.tooltip = "Copies the shell command for this run", .size = size})) {
    ImGui::SetClipboardText(form_command(form, ui.store_path).c_str());
    toast(ui, Level::good, "Command copied");
  }
  if (!folder_of(form)) draw_sweep_switch(ui);
  end_card();
}

}  // namespace

void draw_new_run(UiState& ui) {
  NewRun& form = ui.form;
  const float full = ImGui::GetContentRegionAvail().x, wide = std::min(full, em(100));
  const float indent = std::floor((full - wide) / 2);
  if (indent > 0) ImGui::Indent(indent);
  ImGui::BeginChild("new-run-page", {wide, 0}, ImGuiChildFlags_NavFlattened);
  source_and_search(ui);
  ImGui::Dummy({0, em(0.1f)});
  if (!form.ready) {
    if (begin_card("card-not-ready")) {
      if (form.problem.empty())
        empty_state(Icon::clock, "Reading the settings", form.source.c_str());
      else if (empty_state(Icon::warning, form.problem.c_str(), form.hint.c_str(), "Back to the demo"))
        open_form(ui, "demo");
    }
    end_card();
  } else if (stacked()) {
    ImGui::BeginChild("settings", {0, 0}, ImGuiChildFlags_NavFlattened);
    start_card(ui);
    draw_sweep_card(ui);
    draw_form_misfit(ui);
    if (form.listing) problem_list(ui);
    draw_folder_card(ui);
    forecast_card(ui);
    draw_config_form(ui);
    ImGui::EndChild();
  } else {
    const float side = std::clamp(wide * 0.4f, em(21), em(34)), gap = ImGui::GetStyle().ItemSpacing.x;
    ImGui::BeginChild("settings", {wide - side - gap, 0}, ImGuiChildFlags_NavFlattened);
    draw_config_form(ui);
    ImGui::EndChild();
    ImGui::SameLine(0, gap);
    ImGui::BeginChild("outlook", {0, 0}, ImGuiChildFlags_NavFlattened);
    start_card(ui);
    draw_sweep_card(ui);
    draw_form_misfit(ui);
    if (form.listing) problem_list(ui);
    draw_folder_card(ui);
    forecast_card(ui);
    ImGui::EndChild();
  }
  ImGui::EndChild();
  if (indent > 0) ImGui::Unindent(indent);
}

}  // namespace comera::studio
