#include "core/config/suggest.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/config/tt_shape.h"

namespace comera {
namespace {

using Modes = std::map<std::string, std::vector<int64_t>>;

class Chooser {
 public:
  void add(const ModelMatrix& matrix, const TTOptions& options) {
    if (!options.tensorise) return;
    std::vector<Problem> problems;
    TTOptions free = options;
    free.in_modes.clear();
    free.out_modes.clear();
    free.ranks.clear();
    take(matrix.kind, (matrix.table ? table_shape : linear_shape)(matrix.in, matrix.out, free, "", problems));
  }
  Modes finish() {
    for (const std::string& path : twice_) modes_.erase(path);
    return std::move(modes_);
  }

 private:
  void take(const std::string& kind, const TTShape& shape) {
    for (const auto& [side, modes] :
         {std::pair<const char*, const std::vector<int64_t>&>{"in_modes", shape.in_modes}, {"out_modes", shape.out_modes}}) {
      const std::string path = "model.tt." + kind + "." + side;
      if (modes.empty()) continue;
      const auto [at, fresh] = modes_.try_emplace(path, modes);
      if (!fresh && at->second != modes) twice_.push_back(path);
    }
  }
  Modes modes_;
  std::vector<std::string> twice_;  // layers of the kind have different sizes
};

// The divisor of `size` that is nearest to `value`, the smaller one of two.
int64_t nearest_divisor(int64_t size, int64_t value) {
  int64_t best = 1;
  for (int64_t divisor = 1; divisor <= std::min<int64_t>(size, 256); ++divisor)
    if (size % divisor == 0 && std::abs(divisor - value) < std::abs(best - value)) best = divisor;
  return best;
}

}  // namespace

std::map<std::string, std::vector<int64_t>> chosen_modes(const RunConfig& config) {
  Chooser chooser;
  for (const ModelMatrix& matrix : config.trains()) chooser.add(matrix, config.model.tt.*matrix.options);
  return chooser.finish();
}

std::string nearest_value(const RunConfig& config, const std::string& path) {
  const EncoderConfig& encoder = config.model.encoder;
  const FieldEntry* setting = find_setting(path);
  if (setting && (setting->type == "int" || setting->type == "number")) {
    RunConfig copy = config;
    const FieldValue value = field_values(fields_of(copy)).at(path);
    const int64_t* whole = std::get_if<int64_t>(&value);
    const double now = whole ? static_cast<double>(*whole) : std::get<double>(value);
    const double near = std::clamp(now, setting->info.range.low, setting->info.range.high);
    if (near != now) return whole ? Json(static_cast<int64_t>(std::llround(near))).dump() : Json(near).dump();
  }
  if (path == "model.encoder.heads" && encoder.d_model > 0) return Json(nearest_divisor(encoder.d_model, encoder.heads)).dump();
  if (path == "model.encoder.positions" || path == "data.token_budget") return Json(config.model.length).dump();
  const Modes modes = chosen_modes(config);
  const auto chosen = modes.find(path);
  return chosen == modes.end() ? "" : Json(chosen->second).dump();
}

}  // namespace comera
