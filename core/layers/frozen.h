// What forms with trained factors beside frozen matrices (LoRA, LTE) share: which matrices have factors, and what else is trained.
#pragma once
#include <set>
#include <string>

#include "core/layers/factory.h"

namespace comera {

// Factors for matrices inside blocks, and for tables where a form has some. What stands behind the blocks is trained as it is; other
// tables, norms and the biases of frozen matrices only with `rest`.
class FrozenForm : public WeightForm {
 public:
  explicit FrozenForm(bool rest) : rest_(rest) {}

  std::unique_ptr<Layer> linear(const MatrixSpec& spec, LayerFactory& build) final {
    if (spec.kind == LinearKind::head || spec.kind == LinearKind::classifier) return nullptr;
    MatrixSpec frozen = spec;
    frozen.trainable = false;
    auto layer = factored(spec, build.linear(frozen), build);
    if (spec.bias) build.params().find(spec.name + ".bias")->trainable = rest_;
    return layer;
  }

  void finish(ParamSet& params) final {
    for (Param& param : params.params())
      if (param.kind == ParamKind::table || param.kind == ParamKind::norm) param.trainable = rest_ && !with_factors_.contains(param.name);
  }

 protected:
  // The layer with factors around its frozen `base`.
  virtual std::unique_ptr<Layer> factored(const MatrixSpec& spec, std::unique_ptr<Layer> base, LayerFactory& build) = 0;
  // The frozen table of one that has factors.
  std::unique_ptr<Layer> frozen_table(const MatrixSpec& spec, LayerFactory& build) {
    auto table = build.embedding(spec.name, spec.in, spec.out, spec.std);
    with_factors_.insert(spec.name + ".weight");
    return table;
  }

 private:
  std::set<std::string> with_factors_;
  const bool rest_;
};

}  // namespace comera
