// y = x W^T + b with W as a tensor train (METHODS.md 1.1): p input modes and q output modes, 1 to 5 each, K = p + q
// cores U_k (r_{k-1}, l_k, r_k), rank vectors D_k (r_k) on the K - 1 bonds. E_k = U_k * thr(D_k) along the last axis,
// E_K = U_K. Letters: T tokens, I and O the true sizes, N and M what the modes multiply to (>= I, O), r = r_p.
//
// The modes and ranks are read from the parameters at each forward, so a layer goes on after its ranks were cut.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "core/layers/factory.h"
#include "core/layers/tt_shape.h"
#include "core/tensor/tensor_list.h"

namespace comera {

// Where a layer's small calls go: to the ops at once, or held back until make(), together with those of other layers.
// Held calls keep their temporaries.
class TTCalls {
 public:
  void hold(bool held) { held_ = held; }
  void gemm(Ctx& ctx, const Mat& c, const Mat& a, bool transpose_a, const Mat& b, bool transpose_b);
  void copy(Ctx& ctx, const Tensor& y, const Tensor& x);
  void rank_mask(Ctx& ctx, const Tensor& e, const Tensor& u, const Tensor& d);
  void rank_mask_backward(Ctx& ctx, const Tensor& du, const Tensor& dd, const Tensor& de, const Tensor& u, const Tensor& d);
  void make(Ctx& ctx);  // what is held; none of it may wait for another
  void forget();

 private:
  bool held_ = false;
  std::vector<Product> products_;
  std::vector<Copying> copies_;
  std::vector<RankMask> masks_;
  std::vector<RankMaskGradient> mask_gradients_;
};

// What a TT matrix is made of.
struct TTMatrix {
  TTShape shape;              // ranks: as the cores are now
  std::vector<Param*> cores;  // K
  std::vector<Param*> ranks;  // K - 1
  Param* bias = nullptr;      // (O)

  size_t inputs() const { return shape.in_modes.size(); }    // p
  size_t outputs() const { return shape.out_modes.size(); }  // q
  void read_ranks();
  // E_k, k = 1..K as index k - 1: masked copies of the cores, the last one is the core itself.
  TensorList effective(Ctx& ctx, TTCalls& calls) const;
  // On entry cores[k].grad holds dE_k, on exit dU_k; writes the gradients of the rank vectors.
  void mask_gradients(Ctx& ctx, TTCalls& calls) const;
};

// The layer's input as backward finds it: restored when it is needed, not before, and given up at once.
struct KeptInput {
  StashSlot slot;
  Kept kept;
  Tensor take(Ctx& ctx) {
    Tensor x = ctx.stash.load(ctx, slot, kept);
    kept = {};
    return x;
  }
};

// Both halves are merged first: L = E_1..E_p (N, r), R = E_{p+1}..E_K (r, M), y = (x L) R. The bias rides in the
// product: T1 = [x L, 1] (T, r+1) and [R; b] (r+1, M), so neither b nor its gradient needs a pass of its own.
//
// The merges depend on the parameters alone, and the gradients of the cores on S and V alone, so both can be made for
// many layers together: begin_merge, then the turns of merge_*, before forward; begin_sweep, the turns of sweep_* and
// end_sweep after a backward that was told so. Turns count from 1; the calls of a turn wait for those of the turn before.
class TTMerged {
 public:
  void begin_merge(Ctx& ctx, const TTMatrix& matrix, TTCalls& calls);
  void merge_left(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls);
  void merge_right(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls);
  Tensor forward(Ctx& ctx, const TTMatrix& matrix, Tensor x);
  // later: the sweeps follow by the calls below.
  Tensor backward(Ctx& ctx, const TTMatrix& matrix, KeptInput input, Tensor dy, Tensor into, TTCalls& calls, bool later);
  void begin_sweep(Ctx& ctx, const TTMatrix& matrix, TTCalls& calls);
  void sweep_right(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls);
  void sweep_left(Ctx& ctx, const TTMatrix& matrix, size_t turn, TTCalls& calls);
  void end_sweep(Ctx& ctx, const TTMatrix& matrix, TTCalls& calls);
  void drop() { *this = {}; }

 private:
  TensorList effective_;  // E_k
  TensorList left_;       // L_k (n_1..n_k, r_k), k = 1..p
  TensorList right_;      // R_k (r_{p+k-1}, m_k..m_q), k = 1..q; the first is the top of with_bias_
  Tensor with_bias_;      // [R; b] (r+1, M)
  Tensor t1_;             // [x L, 1] (T, r+1)
  Tensor s_;              // T1^T dY, then what the sweep to the right has left of it
  Tensor v_;              // X^T dY R^T, and to the left
};

// Core by core, without merged halves: fewer operations when there are few tokens.
class TTSequential {
 public:
  Tensor forward(Ctx& ctx, const TTMatrix& matrix, Tensor x, TTCalls& calls);
  Tensor backward(Ctx& ctx, const TTMatrix& matrix, KeptInput input, Tensor dy, Tensor into, TTCalls& calls);
  void drop() { *this = {}; }

 private:
  TensorList effective_;  // E_k
  TensorList in_;         // Z_k (r_k, n_{k+1}..n_p, T), k = 1..p
  TensorList out_;        // Y_k (T, m_1..m_k, r_{p+k}), k = 1..q-1
};

enum class TTOrder : unsigned char { cheaper, merged, sequential };

class TTLinear final : public Layer {
 public:
  TTLinear(const std::string& name, const TTShape& shape, LinearKind kind, LayerFactory& factory, TTOrder order = TTOrder::cheaper);

  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  friend class TTMerges;
  bool is_sequential(int64_t tokens) const;
  size_t turns() const { return std::max(matrix_.inputs(), matrix_.outputs()); }  // of merges and sweeps

  TTMatrix matrix_;
  const LinearKind kind_;
  const TTOrder order_;
  KeptInput input_;
  TTMerged merged_;
  TTSequential sequential_;
  TTCalls calls_;         // of a layer by itself
  bool grouped_ = false;  // merged before forward, swept after backward, with others (TTMerges)
};

// The merges and sweeps of all layers of a model, each turn one list a kind of call: a handful of kernels instead of
// hundreds. The halves of all layers are there from the start of the step then, which at the turn to backward they are
// anyway, and S and V of all layers until its end.
class TTMerges {
 public:
  explicit TTMerges(std::vector<TTLinear*> layers) : layers_(std::move(layers)) {}
  // Before the layers' forward. A layer sees `tokens` rows, the classifier's `sequences`.
  void forward(Ctx& ctx, int64_t tokens, int64_t sequences);
  void backward(Ctx& ctx);  // after the layers' backward

 private:
  template <class Body>
  void each(const Body& body) const;

  const std::vector<TTLinear*> layers_;
  TTCalls calls_;
};

}  // namespace comera
