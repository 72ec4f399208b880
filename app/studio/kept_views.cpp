#include "app/studio/kept_views.h"

#include <algorithm>
#include <cmath>

#include "app/studio/compare/tabs.h"
#include "app/studio/kept_values.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

std::vector<std::string> names_of_axes(int count) {
  std::vector<std::string> names;
  for (int axis = 0; axis < count; ++axis) names.emplace_back(name_of(static_cast<XAxis>(axis)));
  return names;
}

// Settings of single plots.
Json write_looks(const std::map<std::string, PlotLook>& looks) {
  Json json = Json::object();
  for (const auto& [id, look] : looks) {
    if (look.log_scale) json[id]["log"] = *look.log_scale;
    if (look.outliers) json[id]["outliers"] = *look.outliers;
    if (look.locked) json[id]["locked"] = {look.low, look.high};
  }
  return json;
}

void read_range(PlotLook& look, const Json& range) {
  if (!range.is_array() || range.size() != 2 || !range[0].is_number() || !range[1].is_number()) return;
  const double low = range[0].get<double>(), high = range[1].get<double>();
  if (!std::isfinite(low) || !std::isfinite(high) || !(low < high)) return;
  look.locked = true;
  look.low = low;
  look.high = high;
}

void read_looks(std::map<std::string, PlotLook>& looks, const Json& json) {
  if (!json.is_object()) return;
  for (auto& [id, look] : looks) {
    look.log_scale.reset();
    look.outliers.reset();
    look.locked = false;
  }
  for (const auto& [id, kept] : json.items()) {
    if (!kept.is_object()) continue;
    const auto flag = [&own = kept](const char* key, std::optional<bool>& value) {
      if (own.contains(key) && own.at(key).is_boolean()) value = own.at(key).get<bool>();
    };
    PlotLook& look = looks[id];
    flag("log", look.log_scale);
    flag("outliers", look.outliers);
    if (kept.contains("locked")) read_range(look, kept.at("locked"));
  }
}

Json write_cells(const std::map<std::string, PlotCells>& cells) {
  Json json = Json::object();
  for (const auto& [id, of] : cells) json[id] = {of.columns, of.rows};
  return json;
}

void read_cells(std::map<std::string, PlotCells>& cells, const Json& json) {
  cells.clear();
  const auto count = [](const Json& of, int most) {
    return static_cast<int>(std::clamp(of.get<double>(), 1.0, static_cast<double>(most)));
  };
  for (const auto& [id, of] : json.items()) cells[id] = {count(of.at(0), kMostColumns), count(of.at(1), kMostRows)};
}

Json write_sizes(const std::map<std::string, ImVec2>& sizes) {
  Json json = Json::object();
  for (const auto& [title, size] : sizes) json[title] = {size.x, size.y};
  return json;
}

void read_sizes(std::map<std::string, ImVec2>& sizes, const Json& json) {
  sizes.clear();
  const auto length = [](const Json& of) { return static_cast<float>(std::clamp(of.get<double>(), 1.0, 1000.0)); };
  for (const auto& [title, size] : json.items()) sizes[title] = {length(size.at(0)), length(size.at(1))};
}

// In the functions below `io` is a KeptWriter with const state, or a KeptReader with mutable state.
void keep_plots(auto& io, auto& view) {
  io.number("smoothing", view.smoothing, 0, 0.9991);  // 0.999 as a float is slightly larger
  io.place("smoothing_kind", view.smoothing_kind, kSmoothings);
  io.flag("log_scale", view.log_scale);
  io.flag("outliers", view.outliers);
  io.custom("plots", view.looks, write_looks, read_looks);
}

void keep_metrics(auto& io, auto& grid) {
  io.choice("x_axis", grid.axis, names_of_axes(kXAxesOfOne));
  io.text("x_metric", grid.over);
  io.number("plot_columns", grid.columns, 0, kMostColumns);
  io.texts("toggled_plots", grid.toggled);
  io.texts("pinned_plots", grid.pinned);
  io.custom("plot_cells", grid.cells, write_cells, read_cells);
  io.text("plot_alone", grid.alone);
}

void keep_ranks(auto& io, auto& ui) {
  io.choice("view", ui.ranks_view, {"now", "over_steps", "drops"});
  io.choice("order", ui.rank_order, {"depth", "size", "drop"});
  io.flag("as_share", ui.ranks_as_share);
}

void keep_memory(auto& io, auto& ui) {
  io.choice("view", ui.memory_view, {"by_purpose", "by_layer", "over_steps", "in_step"});
  io.choice("counts", ui.memory_counts, {"values", "training", "whole_step"});
  io.choice("scope", ui.memory_scope, {"training", "process", "everything"});
}

void keep_size_target(auto& io, auto& ui) {
  io.choice("unit", ui.target_unit, {"share", "MiB", "compression"});
  io.flag("beyond_start", ui.target_beyond);
}

void keep_timeline(auto& io, auto& timeline) {
  io.number("speed", timeline.speed, 0.25, 64);
  // The selection is not stored, so looping over it is not either.
  io.custom(
      "loop", timeline.loop, [](Loop loop) { return Json(loop == Loop::all); },
      [](Loop& loop, const Json& json) { loop = json.get<bool>() ? Loop::all : Loop::off; });
}

void keep_log(auto& io, auto& log) {
  io.choice("level", log.level, {"all", "warnings", "errors"});
  io.custom(
      "filter", log.filter, [](const TextFilter& filter) { return Json(filter.text()); },
      [](TextFilter& filter, const Json& json) { filter.set(json.get<std::string>()); });
  io.flag("follow", log.follow);
  io.flag("later", log.later);
}

Json write_tab(const Compare& compare) { return compare.tab.empty() ? compare.front_tab : compare.tab; }

void read_tab(Compare& compare, const Json& json) {
  const std::string wanted = json.get<std::string>();
  for (const CompareTab& tab : compare_tabs())
    if (wanted == tab.id) compare.tab = wanted;
  if (wanted.empty() && !compare.front_tab.empty()) compare.tab = compare_tabs().front().id;
}

Json write_axis(const Compare& compare) { return name_of(compare.axis); }

void read_axis(Compare& compare, const Json& json) {
  for (int axis = 0; axis < kXAxes; ++axis)
    if (json == name_of(static_cast<XAxis>(axis))) set_axis(compare, static_cast<XAxis>(axis));
}

void keep_comparison(auto& io, auto& compare) {
  io.custom("tab", compare, write_tab, read_tab);
  io.custom("axis", compare, write_axis, read_axis);
  io.text("over", compare.over);
  io.texts("toggled_metrics", compare.toggled_metrics);
  io.flag("by_run", compare.by_run);
  io.text("group_by", compare.group_by);
  io.choice("group_middle", compare.group_middle, {"mean", "median"});
  io.choice("group_band", compare.group_band, {"extremes", "deviation"});
  io.flag("all_settings", compare.all_settings);
  io.flag("memory_at_peak", compare.memory_at_peak);
  io.flag("pareto_log", compare.pareto_log);
  io.choice("pareto_cost", compare.pareto_cost, {"size", "peak", "step", "time"});
  keep_plots(io, compare.plots);
}

void keep_samples(auto& io, auto& samples) {
  io.text("prompt", samples.prompt);
  io.number("temperature", samples.temperature, 0, 2);
}

void keep_views(auto& io, auto& ui) {
  keep_plots(io, ui.plots);
  keep_metrics(io, ui.metrics);
  io.flag("timeline_by_time", ui.timeline.by_time);
  io.group("timeline", [&](auto& of) { keep_timeline(of, ui.timeline); });
  io.group("ranks", [&](auto& of) { keep_ranks(of, ui); });
  io.group("memory", [&](auto& of) { keep_memory(of, ui); });
  io.group("size_target", [&](auto& of) { keep_size_target(of, ui); });
  io.group("form", [&](auto& of) { of.flag("all_methods", ui.form.methods.shown); });
  io.group("log", [&](auto& of) { keep_log(of, ui.log); });
  io.group("samples", [&](auto& of) { keep_samples(of, ui.samples); });
  io.group("compare", [&](auto& of) { keep_comparison(of, ui.compare); });
  io.custom("dialogs", ui.dialogs.sizes, write_sizes, read_sizes);
}

}  // namespace

void save_views(const UiState& ui, Json& json) {
  KeptWriter io;
  keep_views(io, ui);
  json.update(io.json);
}

void load_views(UiState& ui, const Json& json) {
  KeptReader io(json);
  keep_views(io, ui);
}

bool reset_views(UiState& ui) {
  const UiState as_shipped;
  Json shipped = Json::object(), now = Json::object();
  save_views(as_shipped, shipped);
  save_views(ui, now);
  load_views(ui, shipped);
  save_views(ui, shipped);
  return now != shipped;
}

}  // namespace comera::studio
