// COAP's projection of convolutions (METHODS.md 3.1): the gradient G (O, A, I), O outputs and I inputs at each of A places of a window, is
// projected along outputs and inputs,
//     R (r_O, A, r_I):  R_a = L^T G_a Q^T,   L (O, r_O), Q (r_I, I)
// so a partial Tucker decomposition. In memory G is (O, A I) and (O A, I), whichever a product needs.
#include <algorithm>
#include <cmath>

#include "core/optim/coded.h"
#include "core/optim/projector.h"

namespace comera {
namespace {

constexpr double kTuckerStepSize = 0.1;  // of a refinement, as released
constexpr int kSweeps = 3;               // of a reset

struct Sizes {
  int64_t out, places, in, rows, columns;  // O, A, I, r_O, r_I

  explicit Sizes(const Projection& p) : out(p.gradient[0]), places(p.places), in(p.gradient[1] / p.places) {
    const auto rank = [&](int64_t size) {
      const int64_t asked = p.ratio > 0 ? static_cast<int64_t>(std::floor(static_cast<double>(size) / std::sqrt(p.ratio))) : p.asked;
      return std::clamp<int64_t>(asked, 1, size);
    };
    // No more than the other side can fill.
    rows = std::min(rank(out), places * rank(in));
    columns = std::min(rank(in), places * rows);
  }
  Tensor wide(const Tensor& g) const { return g.view({out, places * in}); }
  Tensor tall(const Tensor& g) const { return g.view({out * places, in}); }
  Tensor wide_r(const Tensor& r) const { return r.view({rows, places * columns}); }
  Tensor tall_r(const Tensor& r) const { return r.view({rows * places, columns}); }
};

class TuckerProjector final : public Projector {
 public:
  explicit TuckerProjector(const CoapConfig& config) : config_(config) {}

  std::vector<StateSpec> declare(const Projection& p) const override {
    const Sizes n(p);
    return {{.name = "projection", .shape = {n.columns, n.in}, .rank_axes = 1u, .follows = StateSpec::keeps_and_completes},
            {.name = "projection_left", .shape = {n.out, n.rows}, .rank_axes = 2u, .follows = StateSpec::keeps_and_completes}};
  }
  Shape projected(const Projection& p) const override {
    const Sizes n(p);
    return {n.rows, n.places, n.columns};
  }

  void down(Ctx& ctx, const Projection& p, const States& states, const Tensor& r, const Tensor& g) override {
    const Sizes n(p);
    const Tensor inner = along_inputs(ctx, n, states, g);
    ctx.ops.gemm(n.wide_r(r), left(states), true, inner.view({n.out, n.places * n.columns}), false);
  }
  void up(Ctx& ctx, const Projection& p, const States& states, const Tensor& w, const Tensor& u, double alpha) override {
    const Sizes n(p);
    const Tensor inner = ctx.temp({n.out, n.places * n.columns}, "update along outputs");
    ctx.ops.gemm(inner, left(states), false, n.wide_r(u), false);
    ctx.ops.gemm(n.tall(w), inner.view({n.out * n.places, n.columns}), false, right(states), false, alpha, 1);
  }

  void refresh(Ctx& ctx, const Projection& p, const States& states, const Tensor& g, int64_t number) override {
    const Sizes n(p);
    Tensor old_left, old_right;
    if (config_.restore && number > 0) {
      old_left = ctx.temp(left(states).shape(), "projection before");
      old_right = ctx.temp(right(states).shape(), "projection before");
      ctx.ops.copy(old_left, left(states));
      ctx.ops.copy(old_right, right(states));
    }
    if (number % config_.reset_every == 0)
      reset(ctx, n, states, g);
    else
      refine(ctx, p, n, states, g);
    if (old_left) restore(ctx, n, states, old_left, old_right);
  }

 private:
  static Tensor left(const States& states) { return states["projection_left"].value; }
  static Tensor right(const States& states) { return states["projection"].value; }

  // G_a Q^T (O A, r_I).
  static Tensor along_inputs(Ctx& ctx, const Sizes& n, const States& states, const Tensor& g) {
    Tensor inner = ctx.temp({n.out * n.places, n.columns}, "gradient along inputs");
    ctx.ops.gemm(inner, n.tall(g), false, right(states), true);
    return inner;
  }
  // L^T G_a (r_O A, I).
  static Tensor along_outputs(Ctx& ctx, const Sizes& n, const States& states, const Tensor& g) {
    Tensor inner = ctx.temp({n.rows, n.places * n.in}, "gradient along outputs");
    ctx.ops.gemm(inner, left(states), true, n.wide(g), false);
    return inner.view({n.rows * n.places, n.in});
  }

  // Singular vectors of G by outputs, then in turn of what the other side leaves (HOOI).
  static void reset(Ctx& ctx, const Sizes& n, const States& states, const Tensor& g) {
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      if (sweep == 0)
        ctx.ops.singular_basis(left(states), n.wide(g), true);
      else
        ctx.ops.singular_basis(left(states), along_inputs(ctx, n, states, g).view({n.out, n.places * n.columns}), true);
      ctx.ops.singular_basis(right(states), along_outputs(ctx, n, states, g), false);
    }
  }

  // One step of each side down the loss of the matrix form, with cosines of G and the moment over the inputs of each output and place.
  void refine(Ctx& ctx, const Projection& p, const Sizes& n, const States& states, const Tensor& g) {
    const ParamState* first = states.find("m");
    const Tensor m = first ? numbers_of(ctx, *first) : Tensor();
    const Tensor a = ctx.temp(projected(p), "projected gradient"), of_lost = ctx.temp(a.shape(), "projected loss");
    const Tensor lost = ctx.temp(p.gradient, "lost gradient"), moment = ctx.temp(p.gradient, "moment brought back");
    const Tensor g_in = along_inputs(ctx, n, states, g).view({n.out, n.places * n.columns});
    ctx.ops.gemm(n.wide_r(a), left(states), true, g_in, false);
    ctx.ops.scale(lost, g, -1);
    up(ctx, p, states, lost, a, 1);
    ctx.ops.fill(moment, 0);
    if (m) up(ctx, p, states, moment, m, 1);
    ctx.ops.run(op::CoapDirections{n.tall(lost), n.tall(moment), n.tall(g), config_.normalised});
    const Tensor step_left = ctx.temp(left(states).shape(), "step of the projection"),
                 step_right = ctx.temp(right(states).shape(), "step of the projection");
    {
      const Tensor lost_in = along_inputs(ctx, n, states, lost).view({n.out, n.places * n.columns});
      ctx.ops.gemm(n.wide_r(of_lost), left(states), true, lost_in, false);
      ctx.ops.gemm(step_left, lost_in, false, n.wide_r(a), true);
      ctx.ops.gemm(step_left, g_in, false, n.wide_r(of_lost), true, 1, 1);
    }
    if (m) {
      const Tensor moment_in = along_inputs(ctx, n, states, moment).view({n.out, n.places * n.columns});
      ctx.ops.gemm(step_left, moment_in, false, n.wide_r(m), true, -1, 1);
    }
    ctx.ops.gemm(step_right, n.tall_r(a), true, along_outputs(ctx, n, states, lost), false);
    ctx.ops.gemm(step_right, n.tall_r(of_lost), true, along_outputs(ctx, n, states, g), false, 1, 1);
    if (m) ctx.ops.gemm(step_right, n.tall_r(m), true, along_outputs(ctx, n, states, moment), false, -1, 1);
    ctx.ops.run(op::ClippedStep{left(states), step_left, kTuckerStepSize});
    ctx.ops.run(op::ClippedStep{right(states), step_right, kTuckerStepSize});
  }

  // Moments as the new projection sees them, as in the matrix form.
  static void restore(Ctx& ctx, const Sizes& n, const States& states, const Tensor& old_left, const Tensor& old_right) {
    const Tensor turn_left = ctx.temp({n.rows, n.rows}, "turn of the projection"),
                 turn_right = ctx.temp({n.columns, n.columns}, "turn of the projection");
    ctx.ops.gemm(turn_left, left(states), true, old_left, false);
    ctx.ops.gemm(turn_right, old_right, false, right(states), true);
    const auto turn = [&](const Tensor& x) {
      const Tensor half = ctx.temp({n.rows * n.places, n.columns}, "turned moment");
      ctx.ops.gemm(half, n.tall_r(x), false, turn_right, false);
      ctx.ops.gemm(n.wide_r(x), turn_left, false, n.wide_r(half), false);
    };
    if (const ParamState* m = states.find("m")) {
      const Tensor numbers = numbers_of(ctx, *m);
      turn(numbers);
      keep_numbers(ctx, *m, numbers);
    }
    if (const ParamState* v = states.find("v")) {
      const Tensor numbers = numbers_of(ctx, *v);
      ctx.ops.run(op::Square{numbers, numbers, true});
      turn(numbers);
      ctx.ops.run(op::Square{numbers, numbers});
      keep_numbers(ctx, *v, numbers);
    }
  }

  const CoapConfig config_;
};

}  // namespace

std::unique_ptr<Projector> make_tucker_projector(const CoapConfig& config) { return std::make_unique<TuckerProjector>(config); }

}  // namespace comera
