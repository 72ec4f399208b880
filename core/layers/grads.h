// How a layer hands over the gradient of a parameter: it asks for room, writes "=" into it, and says when it needs neither the
// gradient nor the value of the parameter any more in this pass. Whether the gradient is kept until the update, summed over the parts of
// a batch or consumed at once is not the layer's business (GradWay, param.h).
#pragma once
#include "core/layers/layer.h"

namespace comera {

// What an optimizer does with gradients while backward runs.
class GradTaker {
 public:
  virtual ~GradTaker() = default;
  // Of those that are `given`: a whole step, after which the memory of the gradient is free again.
  virtual void take(Ctx& ctx, Param& param, const Tensor& grad) = 0;
  // Of those that are `projected`: Param::grad += projection of `grad`.
  virtual void add_projected(Ctx& ctx, Param& param, const Tensor& grad) = 0;
  // Param::grad is complete for this pass. Not called for parameters whose gradients are `given`.
  virtual void complete(Ctx& ctx, const Param& param) {}
};

// Room of the parameter's shape for one contribution to its gradient; contents are undefined. It may serve as scratch until it
// is handed over. kept: Param::grad itself for the first contribution of a pass; otherwise a temporary. Of a frozen parameter it is
// a temporary that nobody reads, for ops that compute several gradients at once.
Tensor grad_room(Ctx& ctx, Param& param);
// The gradient of a table (V, D) that was looked up at ids (T), of dy (T, D): computed and handed over, by rows where its way is so.
void grad_of_rows(Ctx& ctx, Param& param, const Tensor& dy, const Tensor& ids);
// Hands over what was written into the room. A parameter that is used several times a pass (Param::uses) is complete with its last one.
void grad_ready(Ctx& ctx, Param& param, Tensor grad);

}  // namespace comera
