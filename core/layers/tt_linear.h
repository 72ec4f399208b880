// y = x W^T + b with W as a tensor train (METHODS.md 1.1): p input modes and q output modes, 1 to 5 each, K = p + q
// cores U_k (r_{k-1}, l_k, r_k), rank vectors D_k (r_k) on the K - 1 bonds. E_k = U_k * thr(D_k) along the last axis,
// E_K = U_K. Letters: T tokens, I and O the true sizes, N and M what the modes multiply to (>= I, O), r = r_p.
//
// The modes and ranks are read from the parameters at each forward, so a layer goes on after its ranks were cut.
#pragma once
#include <string>
#include <vector>

#include "core/layers/factory.h"
#include "core/layers/tt_shape.h"
#include "core/tensor/tensor_list.h"

namespace comera {

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
  TensorList effective(Ctx& ctx) const;
  // On entry cores[k].grad holds dE_k, on exit dU_k; writes the gradients of the rank vectors.
  void mask_gradients(Ctx& ctx) const;
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
class TTMerged {
 public:
  Tensor forward(Ctx& ctx, const TTMatrix& matrix, Tensor x);
  Tensor backward(Ctx& ctx, const TTMatrix& matrix, KeptInput input, Tensor dy, Tensor into);
  void drop() { *this = {}; }

 private:
  void merge(Ctx& ctx, const TTMatrix& matrix);
  void sweep_right(Ctx& ctx, const TTMatrix& matrix, Tensor s);
  void sweep_left(Ctx& ctx, const TTMatrix& matrix, Tensor v);

  TensorList effective_;  // E_k
  TensorList left_;       // L_k (n_1..n_k, r_k), k = 1..p
  TensorList right_;      // R_k (r_{p+k-1}, m_k..m_q), k = 1..q; the first is the top of with_bias_
  Tensor with_bias_;               // [R; b] (r+1, M)
  Tensor t1_;                      // [x L, 1] (T, r+1)
};

// Core by core, without merged halves: fewer operations when there are few tokens.
class TTSequential {
 public:
  Tensor forward(Ctx& ctx, const TTMatrix& matrix, Tensor x);
  Tensor backward(Ctx& ctx, const TTMatrix& matrix, KeptInput input, Tensor dy, Tensor into);
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
  bool is_sequential(int64_t tokens) const;

  TTMatrix matrix_;
  const TTOrder order_;
  KeptInput input_;
  TTMerged merged_;
  TTSequential sequential_;
};

}  // namespace comera
