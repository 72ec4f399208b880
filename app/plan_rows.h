// The forecast of a config as a table: printed by `comera plan`, shown in the form of a new run.
#pragma once
#include <string>
#include <vector>

#include "core/train/forecast.h"

namespace comera {

struct PlanRow {
  std::string what, count, note;
  int level = 0;  // 1: part of the nearest row above with level 0
};
std::vector<PlanRow> plan_rows(const Forecast& forecast);

}  // namespace comera
