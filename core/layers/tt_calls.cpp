#include "core/layers/tt_calls.h"

namespace comera {

void TTCalls::make(Ctx& ctx) {
  ctx.ops.rank_mask(masks_, ctx.step);
  ctx.ops.copy(copies_);
  ctx.ops.gemm(products_);
  ctx.ops.rank_mask_backward(mask_gradients_, ctx.step);
  forget();
}

void TTCalls::forget() {  // but not the memory of the lists
  products_.clear();
  copies_.clear();
  masks_.clear();
  mask_gradients_.clear();
}

}  // namespace comera
