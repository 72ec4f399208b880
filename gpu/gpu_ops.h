// The ops of a GPU, f32 and f64, for any Machine that launches their kernels: CUDA, or the CPU in tests. One header a family holds the
// kernels' bodies and their launches. attention.cu, layers.cu, tables.cu and weights.cu instantiate several families each, because nvcc
// spends more time on the common headers than on a family.
//
// A Machine has
//     dry_run(bool)                    true: calls only count scratch; tensors have no memory
//     begin(op, shape)                 begins an op: resets its scratch; errors name op and shape
//     launch(LaunchShape, body)        runs the body on every thread of the shape; without blocks does nothing
//     scratch<T>(count)                working memory of this op
//     copy(to, from, bytes)            inside the device
//     products()                       precision of float products
//     gemm(ColumnGemm<T>)              a product as in BLAS; float in the precision of products(), where fp8 counts as tf32
//     gemm(Fp8Gemm)                    a product of E4M3; false, with nothing done, if it is not supported
//     gemm_and(ColumnGemm<T>)          a product with its fused bias or sums; false, with nothing done, if it is not supported
//     sort(keys, order, ...)           stable sort of pairs by key
//     read(host, device, bytes)        waits for the device, so never inside a step
// Calls take effect in order. No op reads the device or allocates, so a step can be captured once and replayed; decisions that depend on
// device values are made in kernels. So bad ids and labels cannot throw as on the CPU: they give NaN, and the run ends as diverged.
#pragma once
#include <cstdint>

#include "core/base/rng.h"
#include "core/ops/device.h"
#include "core/ops/ops.h"
#include "core/ops/pointwise_math.h"
#include "gpu/group.h"
#include "gpu/scratch.h"

namespace comera::gpu {

// C (m, n) = alpha op(A) op(B) + beta C, column-major.
template <class T>
struct ColumnGemm {
  int64_t m, n, k;
  bool ta, tb;
  T alpha;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T beta;
  T* c;
  int64_t ldc;
  // At most one is not null: `bias` (m) is added to every column of C; `sums` (n) = sum of op(B) over k.
  const T* bias = nullptr;
  T* sums = nullptr;

  // From row-major matrices, which are the column-major transposes: C^T = op(B)^T op(A)^T.
  static ColumnGemm of_rows(const GemmArgs& p) {
    const Mat &a = p.a, &b = p.b, &c = p.c;
    return {c.cols,
            c.rows,
            p.terms(),
            p.transpose_b,
            p.transpose_a,
            static_cast<T>(p.alpha),
            b.data<T>(),
            std::max<int64_t>(b.ld, 1),
            a.data<T>(),
            std::max<int64_t>(a.ld, 1),
            static_cast<T>(p.beta),
            c.data<T>(),
            std::max<int64_t>(c.ld, 1)};
  }
};

// C (m, n) = alpha scale_a scale_b A^T B + beta C, column-major, accumulated in f32. A (k, m) and B (k, n) are E4M3, contiguous.
// m, n, k are multiples of 16; C and its columns are aligned to 16 bytes.
struct Fp8Gemm {
  static constexpr int64_t kMultiple = 16;
  int64_t m, n, k;
  float alpha;
  const uint8_t* a;
  const float* scale_a;  // one number on the device
  const uint8_t* b;
  const float* scale_b;
  float beta;
  float* c;
  int64_t ldc;
};

// Calls body(T{}) with T the float type of `t`, which check() has verified.
template <class Body>
void by_float_type(const Tensor& t, const Body& body) {
  if (t.dtype() == DType::f32)
    body(float{});
  else
    body(double{});
}

inline const StepScalars* scalars_in(const Tensor& step) { return static_cast<const StepScalars*>(step.raw()); }
inline StepResults* results_in(const Tensor& results) { return static_cast<StepResults*>(results.raw()); }

// Offset of entry i of a row-major matrix with row stride `ld`.
struct MatIndex {
  int64_t cols, ld;
  HD int64_t operator()(int64_t i) const { return cols == ld ? i : i / cols * ld + i % cols; }
};

// The dropout mask of one Philox site. Off at probability 0: then `step` is not read.
template <class T>
struct DropoutSite {
  const StepScalars* step = nullptr;
  uint32_t site = 0;
  uint64_t count = 0;
  DropoutMask<T> mask{0.0};

  // `count`: elements of the mask. The mask of part p of a batch continues where the mask of part p - 1 ends.
  DropoutSite(Dropout dropout, const Tensor& scalars, int64_t count) : count(static_cast<uint64_t>(count)) {
    if (!(dropout.probability > 0)) return;
    step = scalars_in(scalars);
    site = dropout.site;
    mask = DropoutMask<T>(dropout.probability);
  }
  HD bool on() const { return step != nullptr; }
  HD uint64_t before() const { return on() ? step->part * count : 0; }
  HD Philox stream() const { return on() ? Philox{step->seed, static_cast<uint32_t>(step->step), site} : Philox{}; }
};

// Mask factors for a thread that visits neighbours in order: one Philox draw gives eight.
template <class T>
class DropoutDraws {
 public:
  HD explicit DropoutDraws(const DropoutSite<T>& site) : site_(site), stream_(site.stream()), before_(site.before()) {}
  // x times the factor of element `index`.
  HD T apply(T x, int64_t index) {
    if (!site_.on()) return x;
    const uint64_t at = before_ + static_cast<uint64_t>(index);
    if (at >> 3 != block_) drawn_ = stream_.draw(block_ = at >> 3);
    return site_.mask.apply(x, drawn_.half(at));
  }
  // Bit l: whether element index + l is kept, l < 4. One draw where they share it, else two.
  HD uint32_t keeps(int64_t index) const {
    if (!site_.on()) return 15;
    const uint64_t at = before_ + static_cast<uint64_t>(index);
    const uint32_t first = kept_of(stream_.draw(at >> 3));
    if (at % 8 <= 4) return first >> at % 8 & 15;
    return (first | kept_of(stream_.draw((at >> 3) + 1)) << 8) >> at % 8 & 15;
  }
  // Multiplies elements index to index + 3 by their factors.
  template <class Four>
  HD void apply_four(Four& x, int64_t index) const {
    if (!site_.on()) return;
    const uint32_t bits = keeps(index);
    for (int l = 0; l < 4; ++l) x.v[l] = apply(x.v[l], bits, l);
  }
  // x times the factor of element l of keeps().
  HD T apply(T x, uint32_t keeps, int l) const { return site_.on() ? x * (keeps >> l & 1 ? site_.mask.scale : T(0)) : x; }

 private:
  HD uint32_t kept_of(const Philox::Block& drawn) const {
    uint32_t bits = 0;
    for (int w = 0; w < 4; ++w)
      bits |= (site_.mask.keeps(drawn.v[w] & 0xffffu) ? 1u << 2 * w : 0u) | (site_.mask.keeps(drawn.v[w] >> 16) ? 2u << 2 * w : 0u);
    return bits;
  }

  const DropoutSite<T>& site_;
  const Philox stream_;
  const uint64_t before_;  // elements of earlier parts
  uint64_t block_ = ~uint64_t{0};
  Philox::Block drawn_ = {};
};

template <class Machine>
class GpuOps final : public Ops {
 public:
  explicit GpuOps(Machine& machine) : machine_(machine) {}
  bool batches_small_calls() const override { return true; }
  bool notes_workspace(bool) const override { return true; }

 private:
#define COMERA_BODY(Op) void body(const op::Op& args) override;
  COMERA_OPS(COMERA_BODY)
#undef COMERA_BODY

  // f(i) for i < count, one thread each.
  template <class F>
  void each(int64_t count, const F& f) {
    machine_.launch(over_elements(count), Elements<F>{count, f});
  }

  // Parts of ops that others are made of (pointwise.h).
  void product(const GemmArgs& args);
  void activate(Activation kind, const Tensor& y, const Tensor& x);
  void activate_back(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved);
  void gate(Activation kind, const Tensor& y, const Tensor& x, const Tensor& gate);
  void gate_back(Activation kind, const Tensor& dx, const Tensor& dgate, const Tensor& dy, const Tensor& x, const Tensor& gate);
  void broadcast(const Tensor& y, const Tensor& row);
  void norm(const op::NormForward& args);  // norm.h: without a product
  void norm_of_whole_product(op::NormForward args);
  void norm_back(const op::NormBackward& args);
  struct WaistCalls;  // waist.h

  // The kernel of a loss and its sums over rows; `rows` lacks labels, results and working memory (loss.h).
  template <class Rows>
  void sum_rows(const Tensor& results, const Tensor& labels, Rows rows, LaunchShape shape);

  // A product of E4M3 operands, where products() asks for such and it is worth its conversions (fp8.h).
  // `aligned`: C begins at a multiple of 16 bytes.
  bool in_fp8(const ColumnGemm<float>& product, bool aligned);
  bool in_fp8(const ColumnGemm<double>&, bool) { return false; }
  // Whether products may have a fused epilogue: not in fp8.
  bool may_fuse() const { return machine_.products() != Products::fp8; }

  // The beginning of every body.
  template <class Op>
  void begin(const Op&, const Shape& shape) {
    machine_.dry_run(dry);
    machine_.begin(Op::name, shape);
  }

  Machine& machine_;
};

}  // namespace comera::gpu
