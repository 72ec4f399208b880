#include "core/train/forecast.h"

#include "core/base/error.h"
#include "core/methods/model_size.h"
#include "core/train/engine.h"

namespace comera {

namespace {
// Where the run would be: working memory and the order of small calls are the device's own. The CPU where it is not here.
std::unique_ptr<Device> planning_device(const std::string& name) {
  if (name.rfind("cuda:", 0) == 0) try {
      return open_device(name);
    } catch (const Error&) {
    }
  return open_device("cpu", 1);
}
}  // namespace

Forecast make_forecast(const RunConfig& config, const LiveRanks& ranks, Communicator* others) {
  const std::unique_ptr<Device> device = planning_device(device_to_begin_on(config.train.device));
  const auto resize = [&](ParamSet& params) {
    if (!ranks.empty()) set_ranks(params, ranks);
  };
  Engine engine(config, *device, resize, others);
  Forecast forecast;
  const ParamSet& params = engine.params();
  forecast.parameters = params.count();
  forecast.trainable = params.trained();
  forecast.dense_equivalent = params.dense_equivalent();
  forecast.value_bytes = static_cast<double>(size_of(config.dtype()));
  forecast.memory = engine.planned();
  forecast.work = engine.step_work();
  forecast.sent_bytes = engine.planned_traffic();
  forecast.available = available_on(*device);
  for (const RankLayer& layer : params.rank_layers()) {
    ForecastLayer row{layer.name, layer.in_modes, layer.out_modes, {1}, 0, layer.dense_entries()};
    for (const Param* core : layer.cores) row.entries += core->count();
    for (const Param* rank : layer.ranks) {
      row.ranks.push_back(rank->count());
      forecast.rank_values += rank->count();
    }
    row.ranks.push_back(1);
    forecast.tensorised += row.entries;
    forecast.tensorised_dense += row.dense_entries;
    forecast.layers.push_back(row);
  }
  return forecast;
}

void check_fits(const MemoryByPurpose& planned, int64_t available) {
  if (planned.total() <= available) return;
  const auto mib = [](int64_t bytes) { return std::to_string(bytes / (1024 * 1024)) + " MiB"; };
  throw Error(ErrorCode::memory, "the run needs " + mib(planned.total()) + ", " + mib(available) + " are free",
              "activations take " + mib(planned[Purpose::activation]) + ", workspace " + mib(planned[Purpose::workspace]),
              "use a smaller batch or length: --set train.batch=8; comera plan lists the memory by purpose");
}

}  // namespace comera
