// Any rule with moments in 8 bits, as COAP was published (METHODS.md 3). 8-bit Adam (adam8bit.cpp) decodes and codes inside one op
// and needs no temporaries; here every rule does, at the price of its decoded moments while one parameter is updated.
#include "core/optim/coded.h"
#include "core/optim/rule.h"

namespace comera {
namespace {

class CodedRule final : public Rule {
 public:
  CodedRule(std::unique_ptr<Rule> inner, const CodedOptions& options) : inner_(std::move(inner)), options_(options) {}

  std::vector<StateSpec> declare(const Param& param, const Shape& gradient) const override {
    std::vector<StateSpec> specs = inner_->declare(param, gradient);
    for (StateSpec& spec : specs)
      if (is_kept_in_8_bits(options_.which, param, spec.shape.count())) {
        spec.format = options_.all_signed || is_first_moment(spec) ? StateSpec::int8_signed : StateSpec::int8_unsigned;
        spec.floor = options_.which.floor && !is_first_moment(spec);
      }
    return specs;
  }

  void step(Ctx& ctx, Param& param, const Tensor& g, const States& states) override {
    if (!any_coded(states)) return inner_->step(ctx, param, g, states);
    const Tensor u = ctx.temp(param.shape, "update");
    update(ctx, param, u, g, states);
    ctx.ops.axpy(param.value, 1, u);
    inner_->after_update(ctx, param, states);
  }
  void finish(Ctx& ctx) override { inner_->finish(ctx); }

  void update(Ctx& ctx, Param& param, const Tensor& u, const Tensor& g, const States& states) override {
    decoded_.clear();
    for (const ParamState& state : states.all()) {
      decoded_.push_back({state.spec, numbers_of(ctx, state)});
      decoded_.back().spec.format = StateSpec::real;
    }
    inner_->update(ctx, param, u, g, States(decoded_));
    for (size_t i = 0; i < decoded_.size(); ++i) keep_numbers(ctx, states.all()[i], decoded_[i].value);
    decoded_.clear();  // its memory stays, so that a steady step allocates nothing
  }
  void after_update(Ctx& ctx, Param& param, const States& states) override { inner_->after_update(ctx, param, states); }

 private:
  static bool is_first_moment(const StateSpec& spec) { return std::string_view(spec.name) == "m"; }
  static bool any_coded(const States& states) {
    for (const ParamState& state : states.all())
      if (state.spec.coded()) return true;
    return false;
  }

  const std::unique_ptr<Rule> inner_;
  const CodedOptions options_;
  std::vector<ParamState> decoded_;  // the states that the inner rule sees
};

}  // namespace

std::unique_ptr<Rule> make_coded_rule(std::unique_ptr<Rule> inner, const CodedOptions& options) {
  return std::make_unique<CodedRule>(std::move(inner), options);
}

}  // namespace comera
