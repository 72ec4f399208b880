// LOMO (METHODS.md 9.1): plain gradient descent, which keeps nothing, made while backward runs.
#include <limits>

#include "core/optim/optimizer.h"

namespace comera {
namespace {

class Lomo final : public Rule {
 public:
  explicit Lomo(const LomoConfig& config) : limit_(config.clip_value > 0 ? config.clip_value : std::numeric_limits<double>::infinity()) {}

  std::vector<StateSpec> declare(const Param&, const Shape&) const override { return {}; }
  void step(Ctx&, Param& param, const Tensor& g, const States&) override { enlisted_.push_back({param.value, g, param.group}); }
  void finish(Ctx& ctx) override {
    ctx.ops.run(op::Sgd{enlisted_, limit_, ctx.step});
    enlisted_.clear();  // its memory stays, so that a steady step allocates nothing
  }
  bool by_entries(const Param&) const override { return true; }

 private:
  const double limit_;
  std::vector<SgdTensors> enlisted_;
};

}  // namespace

std::unique_ptr<Optimizer> LomoConfig::make(const OptimizerSettings&) const {
  return std::make_unique<Optimizer>(std::make_unique<Lomo>(*this));
}

}  // namespace comera
