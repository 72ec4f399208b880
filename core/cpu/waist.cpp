// Two thin products with an activation between them, in tiles (waist_tiles.h), else with parts of the wide tensor that stay in the second-
// and third-level cache.
#include <algorithm>

#include "core/cpu/cpu_ops.h"
#include "core/cpu/typed.h"
#include "core/cpu/waist_tiles.h"

namespace comera {

namespace {
// Tokens of a part: the depth that skinny_gemm.cpp sums at a time, so gradients are sums of the same terms in the same order as
// those of whole matrices.
constexpr int64_t kRows = 128;
int64_t rows_of(int64_t tokens) { return std::clamp<int64_t>(tokens, 1, kRows); }
}  // namespace

// For waist_in_parts.
struct CpuOps::WaistCalls {
  CpuOps& ops;
  void gemm(const GemmArgs& args) const { ops.multiply(args); }  // in f32
  void forward(Activation kind, const Tensor& y, const Tensor& x) const { ops.body(op::ActivationForward{kind, y, x}); }
  void backward(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved) const {
    ops.body(op::ActivationBackward{kind, dx, dy, saved});
  }
  void gated_forward(Activation kind, const Tensor& y, const Tensor& x, const Tensor& gate) const {
    ops.body(op::GatedForward{kind, y, x, gate});
  }
  void gated_backward(Activation kind, const Tensor& dx, const Tensor& dgate, const Tensor& dy, const Tensor& x, const Tensor& gate) const {
    ops.body(op::GatedBackward{kind, dx, dgate, dy, x, gate});
  }
  void fill(const Tensor& y, const Tensor& row) const { ops.body(op::BroadcastRows{y, row}); }
};

void CpuOps::body(const op::WaistActivation& args) {
  if (args.y.tensor.dtype() == DType::f32 && waist_tiles(pool_, workspace, dry, args)) return;
  by_float_type(args.y.tensor, [&](auto type) {
    const Shape part{rows_of(args.y.rows), args.r.cols};
    Workspace::Call memory(workspace, dry);
    const auto wide = [&] { return Tensor(memory.take<decltype(type)>(part.count()), part, args.y.tensor.dtype()); };
    const Tensor h = wide(), g = args.gate ? wide() : Tensor();
    if (!dry) waist_in_parts(args, part[0], h, g, WaistCalls{*this});
  });
}

void CpuOps::body(const op::WaistActivationBackward& args) {
  if (args.dy.tensor.dtype() == DType::f32 && waist_tiles(pool_, workspace, dry, args)) return;
  by_float_type(args.dy.tensor, [&](auto type) {
    const Shape part{rows_of(args.dy.rows), args.r.cols};
    Workspace::Call memory(workspace, dry);
    const auto wide = [&] { return Tensor(memory.take<decltype(type)>(part.count()), part, args.dy.tensor.dtype()); };
    const Tensor h = wide(), d = wide(), g = args.gate ? wide() : Tensor();
    if (!dry) waist_in_parts(args, part[0], h, d, g, WaistCalls{*this});
  });
}

}  // namespace comera
