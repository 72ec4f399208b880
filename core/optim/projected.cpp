// A rule on projected gradients: R = project(G) is (m, r) or (r, n), so its moments take 2 r max(m, n) numbers instead of
// 2 m n.
#include <algorithm>
#include <bit>

#include "core/base/draw.h"
#include "core/optim/projector.h"
#include "core/optim/rule.h"

namespace comera {

Shape Projector::projected(const Projection& p) const { return p.right ? Shape{p.gradient[0], p.rank} : Shape{p.rank, p.gradient[1]}; }

unsigned Projector::rank_axes(const Projection& p) const {
  Projection larger = p;
  ++larger.rank;
  ++larger.asked;
  const Shape shape = projected(p), other = projected(larger);
  unsigned axes = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != other[axis]) axes |= 1u << axis;
  return axes;
}

bool is_projected(const Param& param) { return param.kind == ParamKind::weight && param.shape.rank() == 2; }

Projection projection_of(const Param& param, int64_t rank) {
  const int64_t m = param.shape[0], n = param.shape[1], shorter = std::min(m, n);
  return {param.shape, std::min(rank, shorter), m >= n, site_of(param.name), param.places, rank};
}

StateSpec stored_projection(const Projection& p, const char* name) {
  return {.name = name,
          .shape = p.right ? Shape{p.rank, p.gradient[1]} : Shape{p.gradient[0], p.rank},
          .rank_axes = p.right ? 1u : 2u,
          .follows = StateSpec::keeps_and_completes};
}

Tensor Projector::basis(Ctx&, const Projection&, const States&) {
  CHECK(false, "a projection without a basis");
  return {};
}

void Projector::down(Ctx& ctx, const Projection& p, const States& states, const Tensor& r, const Tensor& g) {
  const Tensor basis = this->basis(ctx, p, states);
  if (p.right) {
    ctx.ops.gemm(r, g, false, basis, true);
  } else {
    ctx.ops.gemm(r, basis, true, g, false);
  }
}

void Projector::up(Ctx& ctx, const Projection& p, const States& states, const Tensor& w, const Tensor& u, double alpha) {
  const Tensor basis = this->basis(ctx, p, states);
  if (p.right) {
    ctx.ops.gemm(w, u, false, basis, false, alpha, 1);
  } else {
    ctx.ops.gemm(w, basis, false, u, false, alpha, 1);
  }
}

namespace {

class Projected final : public Rule {
 public:
  Projected(std::unique_ptr<Rule> inner, std::unique_ptr<Projector> projector, const ProjectedOptions& options)
      : inner_(std::move(inner)), projector_(std::move(projector)), options_(options) {}

  std::vector<StateSpec> declare(const Param& param, const Shape& gradient) const override {
    if (!is_projected(param)) return inner_->declare(param, gradient);
    const Projection projection = this->projection(param);
    const unsigned ranks = projector_->rank_axes(projection);
    std::vector<StateSpec> specs = projector_->declare(projection);
    const Shape shape = projector_->projected(projection);
    Param seen = param;  // whose axes are those of the projected gradient, which may have more
    if (shape.rank() != param.shape.rank()) seen.shape = shape;
    for (StateSpec spec : inner_->declare(seen, shape)) {
      for (unsigned axis = 1; axis <= ranks; axis <<= 1)
        if (spec.axes & ranks & axis) spec.rank_axes |= 1u << std::popcount(spec.axes & (axis - 1));
      specs.push_back(spec);
    }
    for (StateSpec& spec : specs) spec.axes = kStartsAnew;
    return specs;
  }

  void step(Ctx& ctx, Param& param, const Tensor& g, const States& states) override {
    if (!is_projected(param)) return inner_->step(ctx, param, g, states);
    const Projection projection = this->projection(param);
    Tensor r = ctx.temp(projector_->projected(projection), "projected gradient");
    projector_->down(ctx, projection, states, r, g);
    step_of_projected(ctx, param, std::move(r), states);
  }

  Shape sum_shape(const Param& param) const override {
    return options_.sums && is_projected(param) ? projector_->projected(projection(param)) : param.shape;
  }
  void add_projected(Ctx& ctx, const Param& param, const Tensor& sum, const Tensor& g, const States& states) override {
    const Tensor part = ctx.temp(sum.shape(), "projected gradient");
    projector_->down(ctx, projection(param), states, part, g);
    ctx.ops.axpy(sum, 1, part);
  }
  void step_of_sum(Ctx& ctx, Param& param, const Tensor& sum, const States& states) override { step_of_projected(ctx, param, sum, states); }

  void finish(Ctx& ctx) override { inner_->finish(ctx); }

  int64_t refresh_gap(const Param& param) const override { return is_projected(param) ? options_.gap : 0; }
  bool refreshes_together() const override { return options_.together; }
  void refresh(Ctx& ctx, Param& param, const Tensor& g, const States& states, int64_t number) override {
    projector_->refresh(ctx, projection(param), states, g, number);
  }

 private:
  void step_of_projected(Ctx& ctx, Param& param, Tensor r, const States& states) {
    const Tensor u = ctx.temp(r.shape(), "projected update");
    inner_->update(ctx, param, u, r, states);
    r = {};
    projector_->up(ctx, projection(param), states, param.value, u, options_.scale);
    inner_->after_update(ctx, param, states);
  }

  Projection projection(const Param& param) const {
    const double ratio = options_.rank_ratio, shorter = static_cast<double>(std::min(param.shape[0], param.shape[1]));
    Projection p = projection_of(param, ratio > 0 ? std::max<int64_t>(1, static_cast<int64_t>(shorter / ratio)) : options_.rank);
    p.right = on_the_right(p.right);
    p.ratio = ratio;
    return p;
  }

  bool on_the_right(bool columns_are_shorter) const {
    switch (options_.side) {
      case ProjectedOptions::shorter:
        return columns_are_shorter;
      case ProjectedOptions::longer:
        return !columns_are_shorter;
      case ProjectedOptions::left:
        return false;
      case ProjectedOptions::right:
        return true;
    }
    return columns_are_shorter;
  }

  const std::unique_ptr<Rule> inner_;
  const std::unique_ptr<Projector> projector_;
  const ProjectedOptions options_;
};

}  // namespace

std::unique_ptr<Rule> make_projected_rule(std::unique_ptr<Rule> inner, std::unique_ptr<Projector> projector,
                                          const ProjectedOptions& options) {
  return std::make_unique<Projected>(std::move(inner), std::move(projector), options);
}

}  // namespace comera
