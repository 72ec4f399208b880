#include "core/methods/tables.h"

#include "core/base/error.h"
#include "core/layers/form.h"
#include "core/layers/stash.h"
#include "core/methods/method.h"
#include "core/optim/optimizer.h"

namespace comera {
namespace {

// One row per choice of the axis; its title and help are in core/config/method.cpp.
template <class Made>
struct Row {
  const char* id;
  std::unique_ptr<Made> (*make)(const MethodConfig& config);
};

constexpr Row<Stash> kStashes[] = {
    {"exact", [](const MethodConfig&) { return make_exact_stash(); }},
    {"bf16", [](const MethodConfig&) { return make_bf16_stash(); }},
    {"int8", [](const MethodConfig& c) { return make_int8_stash(c.mesa.groups, c.mesa.decay); }},
};

template <class Made, size_t kRows>
std::unique_ptr<Made> make(const Row<Made> (&rows)[kRows], const std::string& id, const MethodConfig& config) {
  for (const Row<Made>& row : rows)
    if (id == row.id) return row.make(config);
  CHECK(false, "nothing makes '" << id << "'");
  return nullptr;
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings) {
  std::unique_ptr<Optimizer> made;
  OptimizerSettings::each(settings, [&](const auto& own) {
    if (settings.optimizer == own.info().choice.id) made = own.make(settings);
  });
  CHECK(made, "nothing makes '" << settings.optimizer << "'");
  return made;
}
std::unique_ptr<Stash> make_stash(const MethodConfig& config) {
  auto below = make(kStashes, config.stash, config);
  if (config.wta.ratio < 1) below = make_sampled_stash(config.wta, std::move(below));
  return config.waist ? make_waist_stash(std::move(below)) : std::move(below);
}
WeightForms make_forms(const MethodConfig& config, const TTKinds& kinds) {
  std::optional<WeightForms> made;
  MethodConfig::each_weights(config, [&](const auto& own) {
    if (config.weights == own.info().choice.id) made = own.make_forms(config, kinds);
  });
  CHECK(made, "nothing makes '" << config.weights << "'");
  return *made;
}

// Vectors are small, and one number of them scales a whole row or slice: they stay as they are. Groups of int8 codes run along the rows of
// matrices inside blocks, as published; cores and factors, which are cut, and tables stay as they are.
WeightFormat weight_format(const MethodConfig& config, const Param& param) {
  const bool vector = param.shape.rank() == 1, matrix = param.kind == ParamKind::weight && param.shape.rank() == 2;
  if (config.weight_format == "int8") return matrix ? WeightFormat::int8 : WeightFormat::full;
  return config.weight_format == "bf16" && !vector ? WeightFormat::bf16 : WeightFormat::full;
}

namespace {

bool steps_rows(const RunConfig& config) {
  const MethodConfig& c = config.method;
  const bool codes_tables = (c.optimizer == "adam8bit" || c.inner_rule() == "adam8bit") && c.adam8bit.embeddings;
  return c.chosen().by_rows && !codes_tables && c.weight_format != "bf16" && c.update != "backward" && config.train.micro_batches == 1;
}

}  // namespace

// Rank vectors get the gradients of penalties as well, behind backward.
GradWay grad_way(const RunConfig& config, const Param& param) {
  if (config.method.table_gradients == "rows" && steps_rows(config) && param.by_rows && param.uses == 1) return GradWay::rows;
  if (config.method.update == "backward" && param.kind != ParamKind::rank_vector) return GradWay::given;
  return config.train.micro_batches > 1 ? GradWay::summed : GradWay::kept;
}

std::unique_ptr<Method> make_method(const RunConfig& config, ParamSet& params) {
  std::unique_ptr<Method> made;
  MethodConfig::each_weights(config.method, [&](const auto& own) {
    if constexpr (requires { own.make_method(config, params); })
      if (config.method.weights == own.info().choice.id) made = own.make_method(config, params);
  });
  return made ? std::move(made) : std::make_unique<Method>();
}

}  // namespace comera
