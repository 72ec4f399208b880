#include "app/studio/form/forecast_chart.h"

#include "app/format.h"
#include "app/plan_rows.h"
#include "app/studio/form/method_memory_view.h"
#include "app/studio/parts/looks.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

constexpr const char *kNumbers = "Forecast", *kLayers = "Tensor trains";

using Rows = std::vector<std::vector<std::string>>;

Chart numbers_chart(const Forecast& forecast, const std::string& note) {
  Rows shown{{"quantity", "count", ""}};
  TableLook look{.marks = {0}};
  for (const PlanRow& row : plan_rows(forecast)) {
    std::string what = row.what;
    look.marks.push_back(0);
    for (int i = 0; i < kPurposes; ++i)
      if (what == name_of(static_cast<Purpose>(i))) {
        const PurposeLook of = look_of(static_cast<Purpose>(i));
        what = of.title;
        look.marks.back() = of.color;
      }
    shown.push_back({what, row.count, row.note});
  }
  return table_chart("forecast", kNumbers, note, std::move(shown), look);
}

Chart layers_chart(const Forecast& forecast, const std::string& note) {
  const auto list = [](const std::vector<int64_t>& values, const char* between) {
    std::string text;
    for (const int64_t value : values) text += (text.empty() ? "" : between) + std::to_string(value);
    return text;
  };
  Rows shown{{"layer", "modes in", "modes out", "ranks", "entries", "dense", "smaller"}};
  for (const ForecastLayer& layer : forecast.layers)
    shown.push_back({layer.name, list(layer.in_modes, "x"), list(layer.out_modes, "x"), list(layer.ranks, " "),
                     std::to_string(layer.entries), std::to_string(layer.dense_entries),
                     significant(static_cast<double>(layer.dense_entries) / static_cast<double>(std::max<int64_t>(1, layer.entries)), 4)});
  return table_chart("forecast-layers", kLayers, note, std::move(shown));
}

}  // namespace

std::vector<ListedChart> forecast_charts(UiState& ui) {
  std::vector<ListedChart> out;
  const NewRun& form = ui.form;
  if (!form.ready) return out;
  out = method_memory_charts(ui);
  if (!form.forecast) return out;
  const Forecast& forecast = *form.forecast;
  const std::string note = form.config.name + ", before step 1";
  out.push_back({"forecast", kNumbers, [&forecast, note] { return numbers_chart(forecast, note); }});
  if (!forecast.layers.empty()) out.push_back({"forecast-layers", kLayers, [&forecast, note] { return layers_chart(forecast, note); }});
  return out;
}

}  // namespace comera::studio
