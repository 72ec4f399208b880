// Batches of several parts, and clipping.
#include "core/cpu/cpu_ops.h"
#include "core/cpu/typed.h"
#include "core/ops/gradient_math.h"

namespace comera {

void CpuOps::body(const op::AddPart& args) {
  const double factor = add_part(results_in(args.results));
  if (factor != 1) body(op::Scale{args.dlogits, args.dlogits, factor});
}

void CpuOps::body(const op::FinishParts& args) { finish_parts(results_in(args.results)); }

void CpuOps::body(const op::WeightGradients& args) {
  const double factor = gradient_weight(results_in(args.results));
  if (factor != 1) body(op::Scale{args.y, args.y, factor});
}

void CpuOps::body(const op::ClipGradients& args) {
  const double factor = clip_factor(results_in(args.results), args.limit);
  if (factor < 1) body(op::Scale{args.y, args.y, factor});
}

}  // namespace comera
