// comera plan CONFIG: sizes, compression, memory by purpose and work of a step, from a dry run; nothing is allocated.
#include <iostream>
#include <memory>

#include "app/cli/cli.h"
#include "app/plan_rows.h"
#include "core/train/forecast.h"

namespace comera::cli {
namespace {

int plan(const Context& context, const std::string& name, const std::vector<std::string>& sets) {
  const Forecast forecast = make_forecast(load_config(name, sets));
  if (context.json) {
    Json memory = {{"peak_bytes", forecast.memory.total()}};
    for (int i = 0; i < kPurposes; ++i)
      memory["by_purpose"][name_of(static_cast<Purpose>(i))] = forecast.memory.bytes[static_cast<size_t>(i)];
    Json layers = Json::array();
    for (const ForecastLayer& layer : forecast.layers)
      layers.push_back({{"name", layer.name},
                        {"in_modes", layer.in_modes},
                        {"out_modes", layer.out_modes},
                        {"ranks", layer.ranks},
                        {"entries", layer.entries},
                        {"dense_entries", layer.dense_entries}});
    print_json({{"config", name},
                {"parameters",
                 {{"all", forecast.parameters},
                  {"trainable", forecast.trainable},
                  {"tensorised", forecast.tensorised},
                  {"rank_values", forecast.rank_values},
                  {"dense_equivalent", forecast.dense_equivalent},
                  {"tensorised_dense_equivalent", forecast.tensorised_dense}}},
                {"compression", {{"model", forecast.model_compression()}, {"tensorised", forecast.tensorised_compression()}}},
                {"memory", memory},
                {"flops", {{"step", forecast.work.gemm_flops}}},
                {"traffic", {{"step_bytes", forecast.work.other_bytes}}},
                {"layers", layers}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const PlanRow& row : plan_rows(forecast))
    rows.push_back({std::string(2 * static_cast<size_t>(row.level), ' ') + row.what, row.count, row.note});
  print_table(context, {"quantity", "value", ""}, rows);
  return 0;
}

}  // namespace

void add_plan(Verb& program, Context& context) {
  Verb verb = program.verb("plan", "print sizes, compression and exact memory of a config; allocates nothing");
  struct Options {
    std::string name;
    std::vector<std::string> sets;
  };
  auto options = std::make_shared<Options>();
  verb.option("config", options->name, "preset or file; - for stdin").required();
  verb.settings(options->sets);
  verb.does([&context, options] { return plan(context, options->name, options->sets); });
}

}  // namespace comera::cli
