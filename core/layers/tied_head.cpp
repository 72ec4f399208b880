#include "core/layers/dense.h"
#include "core/layers/grads.h"
#include "core/layers/weights.h"

namespace comera {
namespace {

class TiedHead final : public Layer {
 public:
  TiedHead(Param& table, LayerFactory& factory, bool bias)
      : table_(table),
        bias_(bias ? &factory.params().add("head.bias", {table.shape[0]}, ParamKind::bias, ParamGroup::rest, {Init::zeros}) : nullptr) {
    ++table.uses;
    slot_ = factory.stash().slot(factory.params(), "head", table.shape[1], factory.next_site());
  }

  Tensor forward(Ctx& ctx, Tensor x) override {
    if (ctx.keeps() && table_.trainable) kept_ = ctx.stash.keep(ctx, slot_, x, Use::product);
    Tensor y = ctx.temp({x.size(0), table_.shape[0]}, "logits");
    if (bias_)
      ctx.ops.linear(y, x, numbers_of(ctx, table_), bias_->value);
    else
      ctx.ops.gemm(y, x, false, numbers_of(ctx, table_), true);
    return y;
  }

  Tensor backward(Ctx& ctx, Tensor dy, Tensor into) override {
    Tensor dtable;
    if (table_.trainable) {
      CHECK(kept_, "backward of a tied head without its forward");
      const Tensor x = ctx.stash.load(ctx, slot_, kept_);
      dtable = grad_room(ctx, table_);
      ctx.ops.gemm(dtable, rows_for(ctx, kept_, dy), true, x, false);
      kept_ = {};
    }
    if (bias_ && bias_->trainable) {
      Tensor db = grad_room(ctx, *bias_);
      ctx.ops.column_sum(db, dy);
      grad_ready(ctx, *bias_, std::move(db));
    }
    const double beta = into ? 1 : 0;
    Tensor dx = into ? std::move(into) : ctx.temp({dy.size(0), table_.shape[1]}, "head dx");
    ctx.ops.gemm(dx, dy, false, numbers_of(ctx, table_), false, 1, beta);
    if (dtable) grad_ready(ctx, table_, std::move(dtable));
    return dx;
  }

 private:
  Param& table_;
  Param* const bias_;  // null: none
  StashSlot slot_;
  Kept kept_;
};

}  // namespace

std::unique_ptr<Layer> make_tied_head(Param& table, LayerFactory& factory, bool bias) {
  return std::make_unique<TiedHead>(table, factory, bias);
}

}  // namespace comera
