#include "core/layers/dense.h"
#include "core/layers/grads.h"
#include "core/layers/weights.h"

namespace comera {
namespace {

class TiedHead final : public Layer {
 public:
  TiedHead(Param& table, LayerFactory& factory) : table_(table) {
    ++table.uses;
    slot_ = factory.stash().slot(factory.params(), "head", table.shape[1], factory.next_site());
  }

  Tensor forward(Ctx& ctx, Tensor x) override {
    if (ctx.keeps() && table_.trainable) kept_ = ctx.stash.keep(ctx, slot_, x, Use::product);
    Tensor y = ctx.temp({x.size(0), table_.shape[0]}, "logits");
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
    const double beta = into ? 1 : 0;
    Tensor dx = into ? std::move(into) : ctx.temp({dy.size(0), table_.shape[1]}, "head dx");
    ctx.ops.gemm(dx, dy, false, numbers_of(ctx, table_), false, 1, beta);
    if (dtable) grad_ready(ctx, table_, std::move(dtable));
    return dx;
  }

 private:
  Param& table_;
  StashSlot slot_;
  Kept kept_;
};

}  // namespace

std::unique_ptr<Layer> make_tied_head(Param& table, LayerFactory& factory) { return std::make_unique<TiedHead>(table, factory); }

}  // namespace comera
