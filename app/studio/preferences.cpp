#include "app/studio/preferences.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/studio/saved_layouts.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/paths.h"

namespace comera::studio {
namespace {
constexpr int kVersion = 2;  // grows when the panels change so that an old layout would not fit

template <class Rules>  // of settings that are read, or written
auto rules_of(Rules& rules) {
  return std::array{std::pair("not_finite", &rules.not_finite), std::pair("no_progress", &rules.no_progress),
                    std::pair("collapsed", &rules.collapsed), std::pair("memory_margin", &rules.memory_margin)};
}

// One that is broken does not take the others with it.
void read_layouts(const Json& json, UiState& ui) {
  ui.layouts.clear();
  const auto all = json.find("layouts");
  if (all == json.end() || !all->is_array()) return;
  for (const Json& one : *all)
    if (auto layout = layout_from_json(one); layout && !saved_layout(ui, arrangement_of(layout->name)))
      ui.layouts.push_back(std::move(*layout));
}

// What cannot be read is kept beside it: the next save writes over it.
void keep_damaged(const std::string& file) {
  std::error_code ignored;
  std::filesystem::copy_file(file, file + ".damaged", std::filesystem::copy_options::overwrite_existing, ignored);
}

}  // namespace

std::string preferences_file() { return paths::state_folder() + "/studio.json"; }

void load_preferences(UiState& ui, const std::string& file) {
  try {
    if (!std::filesystem::exists(file)) return;
    const Json json = read_json_file(file);
    ui.settings.theme = theme_of_name(json.value("theme", "")).value_or(ui.settings.theme);
    ui.settings.theme_of_desktop = json.value("theme_of_desktop", false);
    read_layouts(json, ui);
    ui.settings.user_scale = json.value("scale", 1.0f);
    ui.settings.store = json.value("store", "");
    ui.settings.interrupted_told = json.value("interrupted_told", 0.0);
    ui.settings.max_fps = std::clamp(json.value("max_fps", ui.settings.max_fps), 1, 240);
    ui.settings.gui_share = std::clamp(json.value("gui_share", ui.settings.gui_share), 0.01, 1.0);
    ui.settings.desktop_dialogs = json.value("desktop_dialogs", true);
    ui.settings.autosave_minutes = std::max(0.0, json.value("autosave_minutes", 0.0));
    const Json alerts = json.value("alerts", Json::object());
    for (const auto& [name, rule] : rules_of(ui.settings.alerts)) {
      const Json stored = alerts.value(name, Json::object());
      rule->on = stored.value("on", rule->on);
      rule->pause = stored.value("pause", rule->pause);
    }
    std::map<std::string, std::string> keys;
    const Json stored_keys = json.value("keys", Json());
    for (const auto& [id, text] : stored_keys.items())
      if (text.is_string()) keys[id] = text.get<std::string>();
    ui.settings.keys.restore(keys);
    for (const Json& step : json.value("measured_steps", Json::array()))
      if (step.is_object())
        remember_step(ui.settings.measured, {.machine = step.value("machine", ""),
                                             .shape = step.value("shape", ""),
                                             .name = step.value("name", ""),
                                             .step_ms = step.value("step_ms", 0.0),
                                             .gflop = step.value("gflop", 0.0),
                                             .problem = ""});
    ui.settings.alerts.patience = std::max<int64_t>(1, alerts.value("patience", ui.settings.alerts.patience));
    ui.settings.alerts.margin = std::clamp(alerts.value("margin", ui.settings.alerts.margin), 0.01, 0.5);
    ui.plots.smoothing = json.value("smoothing", ui.plots.smoothing);
    ui.plots.log_scale = json.value("log_scale", false);
    ui.plots.outliers = json.value("outliers", true);
    ui.plots.smoothing_kind = static_cast<Smoothing>(std::clamp(json.value("smoothing_kind", 0), 0, kSmoothings - 1));
    for (int axis = 0; axis < kXAxesOfOne; ++axis)
      if (json.value("x_axis", "step") == name_of(static_cast<XAxis>(axis))) ui.metrics.axis = static_cast<XAxis>(axis);
    ui.metrics.over = json.value("x_metric", "");
    const Json plots = json.value("plots", Json::object());
    for (const auto& [id, look] : plots.items()) {
      if (look.contains("log")) ui.plots.looks[id].log_scale = look.value("log", false);
      if (look.contains("outliers")) ui.plots.looks[id].outliers = look.value("outliers", true);
    }
    ui.metrics.columns = std::clamp(json.value("plot_columns", 0), 0, 4);
    ui.metrics.toggled = json.value("toggled_plots", std::set<std::string>{});
    ui.metrics.pinned = json.value("pinned_plots", std::set<std::string>{});
    ui.run_table.toggled_columns = json.value("toggled_columns", std::set<std::string>{});
    ui.run_table.saved_filters = json.value("filters", std::vector<std::string>{});
    ui.run_table.sort = json.value("sort", ui.run_table.sort);
    ui.run_table.descending = json.value("sort_descending", true);
    ui.run_table.lineage = json.value("lineage", false);
    ui.run_table.baseline = json.value("baseline", "");
    ui.timeline.by_time = json.value("timeline_by_time", false);
    for (const auto& id : json.value("closed_panels", Json::array())) ui.closed_panels[id.get<std::string>()] = true;
    const std::string layout = json.value("version", 0) == kVersion ? json.value("layout", "") : "";
    if (layout.empty()) return;
    ImGui::LoadIniSettingsFromMemory(layout.c_str(), layout.size());
    ui.rebuild_layout = false;
    const std::string arrangement = json.value("arrangement", ui.arrangement);
    if (saved_layout(ui, arrangement) || !arrangement.starts_with("saved:")) ui.arrangement = arrangement;
  } catch (const std::exception&) {  // the defaults are as good
    keep_damaged(file);
  }
}

std::string chosen_store(const std::string& file) {
  try {
    return std::filesystem::exists(file) ? read_json_file(file).value("store", "") : "";
  } catch (const std::exception&) {
    return "";
  }
}

void save_preferences(const UiState& ui, const std::string& file) {
  Json json = {{"version", kVersion},
               {"theme", name_of(ui.settings.theme)},
               {"theme_of_desktop", ui.settings.theme_of_desktop},
               {"scale", ui.settings.user_scale},
               {"store", ui.settings.store},
               {"interrupted_told", ui.settings.interrupted_told},
               {"max_fps", ui.settings.max_fps},
               {"gui_share", ui.settings.gui_share},
               {"desktop_dialogs", ui.settings.desktop_dialogs},
               {"autosave_minutes", ui.settings.autosave_minutes},
               {"keys", ui.settings.keys.stored()},
               {"alerts", {{"patience", ui.settings.alerts.patience}, {"margin", ui.settings.alerts.margin}}},
               {"smoothing", ui.plots.smoothing},
               {"log_scale", ui.plots.log_scale},
               {"outliers", ui.plots.outliers},
               {"smoothing_kind", static_cast<int>(ui.plots.smoothing_kind)},
               {"x_axis", name_of(ui.metrics.axis)},
               {"x_metric", ui.metrics.over},
               {"plot_columns", ui.metrics.columns},
               {"toggled_plots", ui.metrics.toggled},
               {"pinned_plots", ui.metrics.pinned},
               {"toggled_columns", ui.run_table.toggled_columns},
               {"filters", ui.run_table.saved_filters},
               {"sort", ui.run_table.sort},
               {"sort_descending", ui.run_table.descending},
               {"lineage", ui.run_table.lineage},
               {"baseline", ui.run_table.baseline},
               {"timeline_by_time", ui.timeline.by_time},
               {"closed_panels", Json::array()},
               {"arrangement", ui.arrangement},
               {"layouts", Json::array()},
               {"layout", ImGui::SaveIniSettingsToMemory()}};
  for (const SavedLayout& layout : ui.layouts) json["layouts"].push_back(layout_to_json(layout));
  for (const MeasuredStep& step : ui.settings.measured)
    json["measured_steps"].push_back(
        {{"machine", step.machine}, {"shape", step.shape}, {"name", step.name}, {"step_ms", step.step_ms}, {"gflop", step.gflop}});
  json["plots"] = Json::object();
  for (const auto& [id, look] : ui.plots.looks) {
    if (look.log_scale) json["plots"][id]["log"] = *look.log_scale;
    if (look.outliers) json["plots"][id]["outliers"] = *look.outliers;
  }
  for (const auto& [name, rule] : rules_of(ui.settings.alerts)) json["alerts"][name] = {{"on", rule->on}, {"pause", rule->pause}};
  for (const auto& [id, closed] : ui.closed_panels)
    if (closed) json["closed_panels"].push_back(id);
  try {
    const std::string fresh = paths::ensure_folder_of(file) + ".new";
    std::ofstream out(fresh);
    out << json.dump(2) << "\n";
    out.close();
    if (out) std::filesystem::rename(fresh, file);
  } catch (const std::exception&) {
  }
}

}  // namespace comera::studio
