#include "core/optim/slab.h"

namespace comera {
namespace {

// bitsandbytes' Adam with moments in 8 bits (METHODS.md 13). Small tensors and, unless asked for, embedding tables keep
// plain moments: a table's rows are touched so unevenly that one block's largest entry drowns the others. The rule is
// bitsandbytes' for all, so that a tensor's trajectory does not depend on which side of min_size it lies.
class Adam8bit final : public SlabOptimizer {
 public:
  Adam8bit(const AdamConfig& config, const Adam8bitConfig& options)
      : rule_{AdamFlavour::bitsandbytes, config.beta1, config.beta2, config.eps}, options_(options) {}

 private:
  void step(Ctx&, Param& param) override { enlist(param); }
  void finish(Ctx& ctx) override { step_enlisted(ctx, rule_); }
  Slots declare(const Param& param) const override {
    const bool plain = param.count() < options_.min_size || (param.kind == ParamKind::table && !options_.embeddings);
    Slots slots;
    declare_moments(slots, param.shape, !plain);
    return slots;
  }

  const AdamRule rule_;
  const Adam8bitConfig options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adam8bit(const AdamConfig& config, const Adam8bitConfig& options) {
  return std::make_unique<Adam8bit>(config, options);
}

}  // namespace comera
