// Adagrad (METHODS.md 9.2): steps divided by the root of the sum of all squared gradients so far, of an entry or of a row of a table.
#include "core/optim/optimizer.h"

namespace comera {
namespace {

class Adagrad final : public Rule {
 public:
  explicit Adagrad(const AdagradConfig& config) : config_(config) {}

  std::vector<StateSpec> declare(const Param& param, const Shape& gradient) const override {
    if (of_rows(param)) return {{.name = "row_sum", .shape = {gradient[0]}, .axes = 1, .averages = true}};
    // Nothing later holds back the steps of new entries whose squares begin at 0.
    return {{.name = "sum", .shape = gradient, .axes = all_axes(param.shape), .anew = StateSpec::mean, .grown = StateSpec::mean}};
  }
  void step(Ctx& ctx, Param& param, const Tensor& g, const States& states) override {
    if (of_rows(param))
      ctx.ops.run(op::AdagradRows{param.value, g, states["row_sum"].value, config_.eps, param.group, ctx.step});
    else
      enlisted_.push_back({param.value, g, states["sum"].value, param.group});
  }
  void finish(Ctx& ctx) override {
    if (!enlisted_.empty()) ctx.ops.run(op::Adagrad{enlisted_, config_.eps, ctx.step});
    enlisted_.clear();  // its memory stays, so that a steady step allocates nothing
  }
  bool by_entries(const Param& param) const override { return !of_rows(param); }

 private:
  bool of_rows(const Param& param) const { return config_.rowwise && param.by_rows; }

  const AdagradConfig config_;
  std::vector<AdagradTensors> enlisted_;
};

}  // namespace

std::unique_ptr<Optimizer> AdagradConfig::make(const OptimizerSettings&) const {
  return std::make_unique<Optimizer>(std::make_unique<Adagrad>(*this));
}

}  // namespace comera
