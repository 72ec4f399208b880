// What the values of the axes of a method (core/config/method.h) make.
#pragma once
#include <memory>

#include "core/config/config.h"
#include "core/layers/param.h"

namespace comera {

class Optimizer;
class Stash;

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings);
std::unique_ptr<Stash> make_stash(const MethodConfig& config);
WeightForms make_forms(const MethodConfig& config, const TTKinds& kinds);
// Format in which a parameter is stored.
WeightFormat weight_format(const MethodConfig& config, const Param& param);
// How the gradient of a parameter of this run is handed over.
GradWay grad_way(const RunConfig& config, const Param& param);

}  // namespace comera
