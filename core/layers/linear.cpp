// y (T, O) = x (T, I) W^T + b with a dense W (O, I), or without b.
#include <cmath>

#include "core/layers/dense.h"
#include "core/layers/grads.h"
#include "core/layers/weights.h"

namespace comera {
namespace {

class DenseLinear final : public Layer {
 public:
  DenseLinear(const MatrixSpec& spec, LayerFactory& factory) {
    ParamSet& params = factory.params();
    // Only matrices inside blocks are `weight`: methods that project gradients leave the layers behind the blocks alone.
    const bool in_block = spec.kind != LinearKind::head && spec.kind != LinearKind::classifier;
    const Init init{Init::uniform, 1 / std::sqrt(static_cast<double>(spec.in))};
    w_ = &params.add(spec.name + ".weight", {spec.out, spec.in}, in_block ? ParamKind::weight : ParamKind::head, ParamGroup::rest, init);
    if (spec.bias) b_ = &params.add(spec.name + ".bias", {spec.out}, ParamKind::bias, ParamGroup::rest, init);
    w_->places = spec.places;
    w_->trainable = spec.trainable;
    if (b_) b_->trainable = spec.trainable;
    const uint32_t site = factory.next_site();
    if (spec.trainable) slot_ = factory.stash().slot(params, spec.name.c_str(), spec.in, site);
  }

  Tensor forward(Ctx& ctx, Tensor x) override {
    if (ctx.keeps() && w_->trainable) kept_ = ctx.stash.keep(ctx, slot_, x, Use::product);
    Tensor y = ctx.temp({x.size(0), w_->shape[0]}, "linear y");
    if (b_)
      ctx.ops.linear(y, x, numbers_of(ctx, *w_), b_->value);
    else
      ctx.ops.gemm(y, x, false, numbers_of(ctx, *w_), true);
    return y;
  }

  Tensor backward(Ctx& ctx, Tensor dy, Tensor into) override {
    Tensor dw, db;
    if (!w_->trainable && b_ && b_->trainable) ctx.ops.column_sum(db = grad_room(ctx, *b_), dy);
    if (w_->trainable) {
      CHECK(kept_, "backward of a linear layer without its forward");
      const Tensor x = ctx.stash.load(ctx, slot_, kept_);
      dw = grad_room(ctx, *w_);
      if (b_) db = grad_room(ctx, *b_);
      if (db && !kept_.index) {
        ctx.ops.linear_backward(dw, db, dy, x);
      } else {
        if (db) ctx.ops.column_sum(db, dy);
        ctx.ops.gemm(dw, rows_for(ctx, kept_, dy), true, x, false);
      }
      kept_ = {};
    }  // x goes before dx comes
    const double beta = into ? 1 : 0;
    Tensor dx = into ? std::move(into) : ctx.temp({dy.size(0), w_->shape[1]}, "linear dx");
    ctx.ops.gemm(dx, dy, false, numbers_of(ctx, *w_), false, 1, beta);
    if (dw) grad_ready(ctx, *w_, std::move(dw));
    if (db) grad_ready(ctx, *b_, std::move(db));
    return dx;
  }

 private:
  Param* w_ = nullptr;
  Param* b_ = nullptr;  // null: none
  StashSlot slot_;
  Kept kept_;
};

}  // namespace

std::unique_ptr<Layer> make_dense_linear(const MatrixSpec& spec, LayerFactory& factory) {
  return std::make_unique<DenseLinear>(spec, factory);
}

}  // namespace comera
