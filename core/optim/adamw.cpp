#include "core/optim/slab.h"

namespace comera {
namespace {

// torch AdamW (METHODS.md 0.2): what CoMERA was published with.
class AdamW final : public SlabOptimizer {
 public:
  explicit AdamW(const AdamConfig& config) : rule_{AdamFlavour::torch, config.beta1, config.beta2, config.eps} {}

 private:
  void step(Ctx&, Param& param) override { enlist(param); }
  void finish(Ctx& ctx) override { step_enlisted(ctx, rule_); }
  Slots declare(const Param& param) const override {
    Slots slots;
    declare_moments(slots, param.shape, false);
    return slots;
  }

  const AdamRule rule_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const AdamConfig& config) { return std::make_unique<AdamW>(config); }

}  // namespace comera
