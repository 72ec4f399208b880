// What one parameter's step is: Adam, or a projection around another rule. A rule has settings and no tensors of its own;
// Optimizer (optimizer.h) keeps its states and calls it for each parameter.
#pragma once
#include <memory>

#include "core/config/optimizers.h"
#include "core/layers/layer.h"
#include "core/optim/state.h"

namespace comera {

class Rule {
 public:
  virtual ~Rule() = default;
  // The states of a parameter whose gradient has the shape `gradient`: its own, or in a projection a smaller one.
  virtual std::vector<StateSpec> declare(const Param& param, const Shape& gradient) const = 0;
  // Makes the step: w from w, g and the states. It may be left to finish(), which follows the steps of all parameters, so
  // that many are one call of an op.
  virtual void step(Ctx& ctx, Param& param, const Tensor& g, const States& states) = 0;
  virtual void finish(Ctx& ctx) {}
  // Whether each entry of this parameter follows from its own gradient and its own entries of the states, which have the parameter's shape.
  virtual bool by_entries(const Param& param) const { return false; }

  // The shape in which gradients of the parts of a batch are summed; of another one than the parameter's, add_projected() is
  // sum += projection of g, for each part, and step_of_sum() the step from that sum.
  virtual Shape sum_shape(const Param& param) const { return param.shape; }
  virtual void add_projected(Ctx&, const Param& param, const Tensor&, const Tensor&, const States&) {
    CHECK(false, "no sums of projected gradients of '" << param.name << "'");
  }
  virtual void step_of_sum(Ctx&, Param& param, const Tensor&, const States&) {
    CHECK(false, "no step from projected gradients of '" << param.name << "'");
  }

  // For projections: u is the amount to add to w, before it is projected back. Decay is the rule's, before or behind that sum.
  // A rule that cannot be inside a projection has none.
  virtual void update(Ctx&, Param& param, const Tensor&, const Tensor&, const States&) {
    CHECK(false, "no rule to be inside a projection of '" << param.name << "'");
  }
  virtual void after_update(Ctx& ctx, Param& param, const States& states) {}

  // Steps between two refreshes of a parameter's states from its gradient, the same for all that have some; 0 = it has none. A state
  // kRefreshCounts whose first number is above 1 is a multiple of that.
  virtual int64_t refresh_gap(const Param& param) const { return 0; }
  virtual bool refreshes_together() const { return true; }
  // Between the two programs of a step, never captured. `number` is 0 in a parameter's first refresh, then 1, 2, ... A plan asks for those
  // of kRefreshKinds numbers: later ones need no more temporaries.
  static constexpr int64_t kRefreshKinds = 2;
  virtual void refresh(Ctx& ctx, Param& param, const Tensor& g, const States& states, int64_t number) {}
};

class Projector;
struct ProjectedOptions {
  int64_t rank = 0, gap = 0;
  double rank_ratio = 0;  // above 0: the rank is the shorter side over it, at least 1
  double scale = 1;       // of the update on its way back
  bool together = true;   // all matrices are refreshed in the same step, else in turn
  enum Side : unsigned char { shorter, longer, left, right };
  Side side = shorter;  // that becomes as long as the rank
  bool sums = false;    // gradients of the parts of a batch are projected before they are summed
};

// How a rule's states are kept in 8 bits.
struct CodedOptions {
  Adam8bitConfig which = {};
  bool all_signed = false;  // second moments have codes for negative numbers, too, as the released COAP
};

// `restarts`: of the moments of projected gradients, by their projector.
std::unique_ptr<Rule> make_adam_rule(AdamFlavour flavour, const AdamConfig& config, const AdamRestarts& restarts = {});
std::unique_ptr<Rule> make_adam8bit_rule(const AdamConfig& config, const Adam8bitConfig& options);
std::unique_ptr<Rule> make_adafactor_rule(const AdafactorConfig& config);
// `inner` with states in 8 bits: they are decoded into temporaries for its step and coded again.
std::unique_ptr<Rule> make_coded_rule(std::unique_ptr<Rule> inner, const CodedOptions& options);
// `inner` on the projected gradient of each matrix inside a block; as it is on all other parameters.
std::unique_ptr<Rule> make_projected_rule(std::unique_ptr<Rule> inner, std::unique_ptr<Projector> projector,
                                          const ProjectedOptions& options);
// `next`: the projection of the step behind each, as random projections change. `coded`: which momentum, where it is kept in 8 bits.
// `of_sums`: of gradients that are summed over the parts of a batch.
std::unique_ptr<Rule> make_flora_rule(const AdafactorConfig& config, const FloraConfig& options, const Adam8bitConfig& coded,
                                      std::unique_ptr<Projector> now, std::unique_ptr<Projector> next, std::unique_ptr<Projector> of_sums);
std::unique_ptr<Rule> make_apollo_rule(const AdamConfig& config, const ApolloConfig& options, std::unique_ptr<Projector> projector);

}  // namespace comera
