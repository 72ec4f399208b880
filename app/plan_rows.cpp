#include "app/plan_rows.h"

#include "app/format.h"

namespace comera {

std::vector<PlanRow> plan_rows(const Forecast& forecast) {
  const auto count = [](int64_t value) { return thousands(static_cast<double>(value)); };
  std::vector<PlanRow> rows = {
      {"parameters", count(forecast.parameters), mebibytes(static_cast<double>(forecast.parameters) * forecast.value_bytes)},
      {"TT cores", count(forecast.tensorised),
       forecast.tensorised > 0 ? significant(forecast.tensorised_compression()) + "x smaller than dense" : "", 1},
      {"rank vectors", count(forecast.rank_values), "", 1},
      {"dense equivalent", count(forecast.dense_equivalent), significant(forecast.model_compression()) + "x the model's size"},
      {"GEMM work per step", significant(forecast.work.gemm_flops / 1e9) + " GFLOP", ""},
      {"peak memory of a step", count(forecast.memory.total()) + " bytes", mebibytes(static_cast<double>(forecast.memory.total()))},
  };
  if (forecast.trainable < forecast.parameters)
    rows.insert(rows.begin() + 1, {"trained", count(forecast.trainable), "the others are frozen", 1});
  for (int i = 0; i < kPurposes; ++i) {
    const int64_t bytes = forecast.memory.bytes[static_cast<size_t>(i)];
    if (bytes > 0) rows.push_back({name_of(static_cast<Purpose>(i)), count(bytes) + " bytes", mebibytes(static_cast<double>(bytes)), 1});
  }
  if (forecast.sent_bytes > 0)
    rows.push_back({"gradients sent per step", count(forecast.sent_bytes) + " bytes", mebibytes(static_cast<double>(forecast.sent_bytes))});
  return rows;
}

}  // namespace comera
