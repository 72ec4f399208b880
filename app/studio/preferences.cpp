#include "app/studio/preferences.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/studio/compare/compare.h"
#include "app/studio/kept_values.h"
#include "app/studio/kept_views.h"
#include "app/studio/parts/export.h"
#include "app/studio/runs/run_fields.h"
#include "app/studio/saved_layouts.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/paths.h"

namespace comera::studio {
namespace {
constexpr int kVersion = 2;  // increased when the panels change so that an old layout would not fit

template <class Rules>  // the alert rules of the settings, const or not
auto rules_of(Rules& rules) {
  return std::array{std::pair("not_finite", &rules.not_finite), std::pair("no_progress", &rules.no_progress),
                    std::pair("collapsed", &rules.collapsed), std::pair("memory_margin", &rules.memory_margin)};
}

// In the functions below `io` is a KeptWriter with const state, or a KeptReader with mutable state.
void keep_settings(auto& io, auto& settings) {
  io.choice("theme", settings.theme, {name_of(ThemeKind::dark), name_of(ThemeKind::light), name_of(ThemeKind::contrast)});
  io.flag("theme_of_desktop", settings.theme_of_desktop);
  io.number("scale", settings.user_scale, 0.75, 3);
  io.number("line_width", settings.line_width, 0.5, 3);
  io.flag("line_markers", settings.line_markers);
  io.number("max_fps", settings.max_fps, 1, 240);
  io.number("training_fps", settings.training_fps, 1, 60);
  io.number("gui_share", settings.gui_share, 0.01, 1);
  io.flag("desktop_dialogs", settings.desktop_dialogs);
  io.flag("follow_newest", settings.follow_newest);
  io.number("autosave_minutes", settings.autosave_minutes, 0, 1e6);
  io.group("alerts", [&](auto& of) {
    of.number("patience", settings.alerts.patience, 1, 1e15);
    of.number("margin", settings.alerts.margin, 0.01, 0.5);
    for (const auto& [name, rule] : rules_of(settings.alerts))
      of.group(name, [what = rule](auto& one) {
        one.flag("on", what->on);
        one.flag("pause", what->pause);
      });
  });
}

// The list of runs.
void keep_list(auto& io, auto& table) {
  io.texts("toggled_columns", table.toggled_columns);
  io.texts("filters", table.saved_filters);
  io.text("filter", table.filter);
  io.custom(
      "sort", table.sort, [](const std::string& sort) { return Json(sort); },
      [](std::string& sort, const Json& json) {
        if (const RunField* field = find_run_field(json.get<std::string>())) sort = field->id;
      });
  io.flag("sort_descending", table.descending);
  io.flag("lineage", table.lineage);
  io.flag("hide_short", table.hide_short);
  io.text("baseline", table.baseline);
}

// Places of files and of the window.
void keep_places(auto& io, auto& ui) {
  io.text("store", ui.settings.store);
  io.number("interrupted_told", ui.settings.interrupted_told, 0, 1e300);
  io.flag("size_target_hint", ui.settings.size_target_hint);
  io.group("export", [&](auto& of) {
    // The default folder is stored as "", since it may differ in the next session.
    of.custom(
        "folder", ui.exports.folder, [](const std::string& folder) { return Json(folder == exports_folder({}) ? "" : folder); },
        [](std::string& folder, const Json& json) { folder = json.get<std::string>(); });
    of.flag("csv", ui.exports.csv);
    of.flag("svg", ui.exports.svg);
    of.flag("png", ui.exports.png);
    of.number("png_scale", ui.exports.png_scale, 1, 4);
  });
  io.group("folders", [&](auto& of) {
    static constexpr const char* kNames[] = {"store", "config", "model", "data"};
    for (size_t i = 0; i < std::size(kNames); ++i) of.text(kNames[i], ui.last_folders[i]);
  });
  io.group("window", [&](auto& of) {
    constexpr double kFar = 1e5;
    of.number("x", ui.place.x, -kFar, kFar);
    of.number("y", ui.place.y, -kFar, kFar);
    of.number("width", ui.place.width, 0, kFar);
    of.number("height", ui.place.height, 0, kFar);
    of.flag("maximised", ui.place.maximised);
  });
}

Json write_open(const UiState& ui) {
  return {{"page", ui.layout}, {"run", shown_run(ui)}, {"compared", compared_runs(ui)}, {"baseline", ui.compare.baseline}};
}

// The runs are looked up once the list of runs is read.
void read_open(const KeptReader& io, UiState& ui) {
  std::string page, baseline;
  std::vector<std::string> compared;
  io.group("open", [&](const KeptReader& of) {
    of.text("page", page);
    of.text("run", ui.reopening.shown);
    of.texts("compared", compared);
    of.text("baseline", baseline);
  });
  for (const char* known : {"start", "new", "train", "compare"})
    if (page == known && (page != "train" || !ui.reopening.shown.empty())) ui.layout = page;
  for (const std::string& run : compared) {
    pick_run(ui.compare, run);
    if (ui.compare.find(run)) ui.reopening.compared.insert(run);
  }
  set_baseline(ui.compare, baseline);
}

void read_keys(const KeptReader& io, KeyBindings& keys) {
  io.custom("keys", keys, nullptr, [](KeyBindings& of, const Json& json) {
    std::map<std::string, std::string> stored;
    for (const auto& [id, text] : json.items())
      if (text.is_string()) stored[id] = text.get<std::string>();
    of.restore(stored);
  });
}

void read_measured(const KeptReader& io, std::vector<MeasuredStep>& measured) {
  io.custom("measured_steps", measured, nullptr, [](std::vector<MeasuredStep>& of, const Json& json) {
    for (const Json& step : json)
      if (step.is_object())
        remember_step(of, {.machine = step.value("machine", ""),
                           .shape = step.value("shape", ""),
                           .name = step.value("name", ""),
                           .step_ms = step.value("step_ms", 0.0),
                           .gflop = step.value("gflop", 0.0),
                           .problem = ""});
  });
}

// An invalid layout does not affect the others.
void read_layouts(const Json& json, UiState& ui) {
  ui.layouts.clear();
  const auto all = json.find("layouts");
  if (all == json.end() || !all->is_array()) return;
  for (const Json& one : *all)
    if (auto layout = layout_from_json(one); layout && !saved_layout(ui, arrangement_of(layout->name)))
      ui.layouts.push_back(std::move(*layout));
}

// Copies an unreadable file, since the next save overwrites it.
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
    if (!json.is_object()) return keep_damaged(file);
    const KeptReader io(json);
    keep_settings(io, ui.settings);
    keep_list(io, ui.run_table);
    keep_places(io, ui);
    load_views(ui, json);
    read_keys(io, ui.settings.keys);
    read_measured(io, ui.settings.measured);
    read_layouts(json, ui);
    read_open(io, ui);
    std::vector<std::string> closed;
    io.texts("closed_panels", closed);
    for (const std::string& id : closed) ui.closed_panels[id] = true;
    std::string layout, arrangement;
    int version = 0;
    io.text("layout", layout);
    io.text("arrangement", arrangement);
    io.number("version", version, kVersion, kVersion);
    if (layout.empty() || version != kVersion) return;
    ImGui::LoadIniSettingsFromMemory(layout.c_str(), layout.size());
    ui.rebuild_layout = false;
    if (!arrangement.empty() && (saved_layout(ui, arrangement) || !arrangement.starts_with("saved:"))) ui.arrangement = arrangement;
  } catch (const std::exception&) {  // keep the defaults
    keep_damaged(file);
  }
}

void reset_settings(UiState& ui) {
  const Settings as_shipped{};
  KeptWriter shipped;
  keep_settings(shipped, as_shipped);
  const KeptReader io(shipped.json);
  keep_settings(io, ui.settings);
}

std::string chosen_store(const std::string& file) {
  try {
    return std::filesystem::exists(file) ? read_json_file(file).value("store", "") : "";
  } catch (const std::exception&) {
    return "";
  }
}

void save_preferences(const UiState& ui, const std::string& file) {
  KeptWriter io;
  io.json = {{"version", kVersion}, {"keys", ui.settings.keys.stored()}};
  keep_settings(io, ui.settings);
  keep_list(io, ui.run_table);
  keep_places(io, ui);
  save_views(ui, io.json);
  Json& json = io.json;
  json["open"] = write_open(ui);
  json["closed_panels"] = Json::array();
  json["arrangement"] = ui.arrangement;
  json["layouts"] = Json::array();
  json["layout"] = ImGui::SaveIniSettingsToMemory();
  for (const SavedLayout& layout : ui.layouts) json["layouts"].push_back(layout_to_json(layout));
  for (const MeasuredStep& step : ui.settings.measured)
    json["measured_steps"].push_back(
        {{"machine", step.machine}, {"shape", step.shape}, {"name", step.name}, {"step_ms", step.step_ms}, {"gflop", step.gflop}});
  for (const auto& [id, closed] : ui.closed_panels)
    if (closed) json["closed_panels"].push_back(id);
  try {
    const std::string fresh = paths::ensure_folder_of(file) + ".new";
    std::ofstream out(fresh);
    out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";  // file names may be invalid UTF-8
    out.close();
    if (out) std::filesystem::rename(fresh, file);
  } catch (const std::exception&) {
  }
}

}  // namespace comera::studio
