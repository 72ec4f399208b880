// The one list of ops. A public call checks shapes, counts the work, does nothing in a dry run, and else calls
// do_*, whose body is in core/cpu (float and double) or gpu. Letters: T tokens, D features, S sequences, C classes.
// "Float" tensors are all of one dtype, f32 or f64; indices are i32. `step` is always the StepScalars block as a
// u8 tensor: random sites and live values are read there, so that a captured step can be replayed.
// Outputs come first. "=" overwrites, "+=" adds. Outputs must not alias inputs unless said.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/ops/profile.h"
#include "core/ops/step_block.h"
#include "core/tensor/tensor.h"

namespace comera {

enum class Activation : int { gelu, tanh, relu };  // gelu is the exact (erf) form

// Which axis of the source each axis of the result is; no heap, so a steady step allocates nothing.
class AxisOrder {
 public:
  AxisOrder(std::initializer_list<int> axes) : AxisOrder(axes.begin(), axes.size()) {}
  AxisOrder(const std::vector<int>& axes) : AxisOrder(axes.data(), axes.size()) {}
  size_t size() const { return size_; }
  int operator[](size_t i) const { return axes_[i]; }
  const int* begin() const { return axes_; }
  const int* end() const { return axes_ + size_; }

 private:
  AxisOrder(const int* axes, size_t size) : size_(size) {
    CHECK(size <= Shape::kMaxRank, size << " axes");
    for (size_t i = 0; i < size; ++i) axes_[i] = axes[i];
  }
  int axes_[Shape::kMaxRank] = {};
  size_t size_ = 0;
};

struct Dropout {
  double probability = 0;  // 0 = off
  uint32_t site = 0;       // Philox site; the mask of element i is word i of (seed, step, site): recomputed, never stored
};

// Sequences in a flat run of tokens (see Batch): starts (S), lengths (S).
struct Sequences {
  Tensor starts, lengths;
  int64_t longest = 0;  // upper bound of a length, for workspace
};

// Adam's three published flavours (METHODS.md 0.2).
enum class AdamFlavour : int { torch, huggingface, bitsandbytes };
struct AdamRule {
  AdamFlavour flavour = AdamFlavour::torch;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};

// What Adam steps: a parameter, its gradient, its moments, all of one count.
struct AdamTensors {
  Tensor w, g, m, v;
  ParamGroup group = ParamGroup::rest;
};
// The same with 8-bit moments in blocks of 256 (METHODS.md 13): m8, v8 u8 of w's count; absmax_m, absmax_v
// (ceil(count/256)) f32.
struct Adam8bitTensors {
  Tensor w, g, m8, v8, absmax_m, absmax_v;
  ParamGroup group = ParamGroup::rest;
};

// The rank structure of all tensorised layers, for the rank objective. Bonds lie one after another in `ranks`.
// All i32: bond_begin (bonds+1) offsets into ranks; layer_bond (layers+1) first bond of each layer;
// mode_sizes: the l_k of all layers one after another (layer with b bonds has b+1 modes).
struct RankTable {
  Tensor ranks;         // (N) float, every rank parameter
  Tensor bond_begin;    // (bonds + 1)
  Tensor layer_bond;    // (layers + 1)
  Tensor mode_sizes;    // (bonds + layers)
  Tensor layer_weight;  // (layers) float: factor on the penalty's gradient; 0 = locked
};

// Calls that can be made together because none waits for another (below).
struct Product {
  Mat c, a;
  bool transpose_a;
  Mat b;
  bool transpose_b;
  double alpha = 1, beta = 0;
};
struct Copying {  // some columns of wide matrices, too
  Mat y, x;
};
struct RankMask {
  Tensor e, u, d;
};
struct RankMaskGradient {
  Tensor du, dd, de, u, d;
};

struct Work {              // what the dry run counts
  double gemm_flops = 0;   // 2 a multiply-add
  double gemm_bytes = 0;   // read + written by products: A, B and C once each, C twice where it is added to
  double other_bytes = 0;  // read + written by everything that is not a GEMM
  Work& operator+=(const Work& more) {
    gemm_flops += more.gemm_flops;
    gemm_bytes += more.gemm_bytes;
    other_bytes += more.other_bytes;
    return *this;
  }
};

class Ops {
 public:
  virtual ~Ops() = default;

  bool dry = false;
  // true: bodies are called in a dry run too, where they note the working memory that they need and do nothing else.
  virtual bool notes_workspace() const { return false; }
  Work work;                     // grows with every call, dry or not; the owner resets it
  OpProfile* profile = nullptr;  // not owned; told of every call that is not dry

  // ---- products -------------------------------------------------------------------------------------------
  // C (m, n) = alpha op(A) op(B) + beta C; op = transpose when the flag is set. beta 0 never reads C.
  void gemm(const Mat& c, const Mat& a, bool transpose_a, const Mat& b, bool transpose_b, double alpha = 1, double beta = 0);

  // y (T, O) = x (T, I) w^T + b, with w (O, I) and b (O); not `transpose_w`: x w + b, with w (I, O).
  void linear(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& b, bool transpose_w = true);
  // Its gradients: dw (O, I) = dy^T x, db (O) = sum over rows of dy (T, O).
  void linear_backward(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x);

  // ---- lists ----------------------------------------------------------------------------------------------
  // The same call for every entry, with the same meaning as one by one; none of them waits for another, and their float
  // tensors are all of one dtype. Where `gathers` says so a list is one kernel, and layers hold calls back to make such
  // lists; products in them are meant to be small.
  virtual bool gathers() const { return false; }
  void gemm(std::span<const Product> all);
  void copy(std::span<const Copying> all);  // float matrices, y and x of the same rows and columns
  void rank_mask(std::span<const RankMask> all, const Tensor& step);
  void rank_mask_backward(std::span<const RankMaskGradient> all, const Tensor& step);

  // ---- pointwise ------------------------------------------------------------------------------------------
  void fill(const Mat& y, double value);                                  // =
  void copy(const Tensor& y, const Tensor& x);                            // =, same count and dtype
  void add(const Tensor& y, const Tensor& a, const Tensor& b);            // y = a + b; y may be a or b
  void scale(const Tensor& y, const Tensor& x, double factor);            // y = factor x; y may be x
  void axpy(const Tensor& y, double factor, const Tensor& x);             // y += factor x
  void permute(const Tensor& y, const Tensor& x, const AxisOrder& axes);  // y's axis i is x's axis axes[i]
  void broadcast_rows(const Tensor& y, const Tensor& row);                // y (T, D) = row (D) in every row
  void column_sum(const Tensor& sum, const Tensor& x);                    // sum (D) = sum over rows of x (T, D)
  void activation_forward(Activation kind, const Tensor& y, const Tensor& x);
  // dx = dy * f'(.). `saved` is x for gelu and relu, y for tanh. dx may be dy.
  void activation_backward(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved);
  // y = x * mask / (1 - p); its own backward (dx from dy). y may be x.
  void dropout(const Tensor& y, const Tensor& x, Dropout dropout, const Tensor& step);

  // ---- layer norm, with the residual branch folded in -----------------------------------------------------
  // sum = x + dropout(branch); y = (sum - mean) * rstd * gamma + beta. x, branch, sum, y (T, D); mean, rstd (T).
  // `branch` empty: plain layer norm, sum is not written and may be empty.
  void norm_forward(const Tensor& y, const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& x, const Tensor& branch,
                    const Tensor& gamma, const Tensor& beta, double eps, Dropout dropout, const Tensor& step);
  // dsum (T, D) = gradient of sum (= of x); dbranch = dropout(dsum), not written when empty; dgamma, dbeta (D) "=".
  void norm_backward(const Tensor& dsum, const Tensor& dbranch, const Tensor& dgamma, const Tensor& dbeta, const Tensor& dy,
                     const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& gamma, Dropout dropout, const Tensor& step);

  // ---- attention ------------------------------------------------------------------------------------------
  // out (T, D) = softmax(Q K^T / sqrt(D/heads)) V, heads side by side in D, each sequence by itself. Rows outside
  // every sequence are 0. lse (heads, T): log of the softmax sums, kept for backward. probs, when not empty, keeps
  // the probabilities before dropout: (S, heads, longest, longest); without it backward recomputes them.
  void attention_forward(const Tensor& out, const Tensor& lse, const Tensor& probs, const Tensor& q, const Tensor& k, const Tensor& v,
                         const Sequences& sequences, int64_t heads, Dropout dropout, const Tensor& step);
  void attention_backward(const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& dout, const Tensor& lse, const Tensor& probs,
                          const Tensor& q, const Tensor& k, const Tensor& v, const Sequences& sequences, int64_t heads, Dropout dropout,
                          const Tensor& step);

  // ---- tables ---------------------------------------------------------------------------------------------
  // y (T, D) = or += table (V, D) at ids (T).
  void gather_rows(const Tensor& y, const Tensor& table, const Tensor& ids, bool accumulate);
  // dtable (V, D) = 0 + sum of dy (T, D) rows by id. Same order of additions whatever the thread count.
  void scatter_rows(const Tensor& dtable, const Tensor& dy, const Tensor& ids);
  // y (S, D) = x (T, D) at rows starts[s]; zero where lengths[s] is 0.
  void first_tokens(const Tensor& y, const Tensor& x, const Sequences& sequences);
  // dx (T, D) = 0, then rows starts[s] = dy (S, D).
  void first_tokens_backward(const Tensor& dx, const Tensor& dy, const Sequences& sequences);
  // TTM lookup by merged halves (METHODS.md 1.2): row id = i * m2 + j; y[t] = P[i_t] (n1 x r) Q[j_t] (r x n2).
  // P (m1, n1, r), Q (m2, r, n2), ids (T), y (T, n1 * n2). Equal ids are computed once.
  void ttm_lookup(const Tensor& y, const Tensor& p, const Tensor& q, const Tensor& ids);
  // dP, dQ "=" (zero where no id points).
  void ttm_lookup_backward(const Tensor& dp, const Tensor& dq, const Tensor& dy, const Tensor& p, const Tensor& q, const Tensor& ids);

  // ---- ranks ----------------------------------------------------------------------------------------------
  // E (a, l, r) = U * thr(D) along the last axis: thr(d) = d if d > threshold else 0; E = U when pruning is off.
  void rank_mask(const Tensor& e, const Tensor& u, const Tensor& d, const Tensor& step);
  // dU = dE * thr(D); dD[b] = [D[b] > threshold] * sum over a, l of dE * U. Both "="; dU may be dE.
  void rank_mask_backward(const Tensor& du, const Tensor& dd, const Tensor& de, const Tensor& u, const Tensor& d, const Tensor& step);
  // From results.ce and the ranks: counts, rho, S (S^ in paper mode), lambda, the loss and the two weights.
  // core_norm2 is read as left there by sum_of_squares. results is the StepResults block as a u8 tensor.
  void rank_objective(const Tensor& results, const RankTable& table, const Tensor& step);
  // dranks (N) += gradient of the penalty times results.rho_weight times layer_weight.
  void rank_objective_backward(const Tensor& dranks, const RankTable& table, const Tensor& results, const Tensor& step);
  // results.core_norm2 += ||x||^2.
  void sum_of_squares(const Tensor& results, const Tensor& x);
  // dw += 2 beta w, beta from the step block (paper mode).
  void core_penalty_backward(const Tensor& dw, const Tensor& w, const Tensor& step);

  // ---- losses ---------------------------------------------------------------------------------------------
  // Mean over rows with label >= 0. Writes results.ce, .examples, .correct, and dlogits (S, C) of the mean (rows
  // without a label: 0). row_loss (S), when not empty, gets each row's loss.
  void cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits, const Tensor& labels);
  // The same for one logit a row (S, 1) and labels 0/1.
  void binary_cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits,
                            const Tensor& labels);
  // y *= results.ce_weight.
  void scale_by_ce_weight(const Tensor& y, const Tensor& results);

  // ---- optimizers -----------------------------------------------------------------------------------------
  // One step of every parameter of a list, whose float tensors are all of one dtype: one kernel for hundreds of small
  // tensors. Learning rates of their groups, decay and bias corrections from the step block.
  void adam(std::span<const AdamTensors> all, AdamRule rule, const Tensor& step);
  void adam(const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v, AdamRule rule, ParamGroup group, const Tensor& step) {
    const AdamTensors one[] = {{w, g, m, v, group}};
    adam(one, rule, step);
  }
  // The same moments, but only the update (added to w it is the step, without decay) goes to u.
  void adam_update(const Tensor& u, const Tensor& g, const Tensor& m, const Tensor& v, AdamRule rule, ParamGroup group, const Tensor& step);
  // w *= 1 - learning rate * decay.
  void weight_decay(const Tensor& w, ParamGroup group, const Tensor& step);
  void adam8bit(std::span<const Adam8bitTensors> all, AdamRule rule, const Tensor& step);
  void adam8bit(const Tensor& w, const Tensor& g, const Tensor& m8, const Tensor& v8, const Tensor& absmax_m, const Tensor& absmax_v,
                AdamRule rule, ParamGroup group, const Tensor& step) {
    const Adam8bitTensors one[] = {{w, g, m8, v8, absmax_m, absmax_v, group}};
    adam8bit(one, rule, step);
  }
  // x = the stored moment in plain numbers and back: when ranks are cut, and in tests. is_signed: m's map, else v's.
  void dequantise8bit(const Tensor& x, const Tensor& codes, const Tensor& absmax, bool is_signed);
  void quantise8bit(const Tensor& codes, const Tensor& absmax, const Tensor& x, bool is_signed);

  // ---- int8 stash (METHODS.md 12) -------------------------------------------------------------------------
  // x (T, D), features in `groups` equal groups. range (groups, 2): running alpha (width) and beta (minimum), updated
  // with decay (first use: range[g,0] < 0); used (groups, 2): the pair this call used. codes u8 (T, D), stochastic rounding.
  void int8_keep(const Tensor& codes, const Tensor& used, const Tensor& range, const Tensor& x, int64_t groups, double decay, uint32_t site,
                 const Tensor& step);
  void int8_load(const Tensor& x, const Tensor& codes, const Tensor& used, int64_t groups);

  // ---- bf16 stash -----------------------------------------------------------------------------------------
  // codes (bf16) = x rounded to nearest, ties to even; and back, exactly. Any shape, both of one.
  void bf16_keep(const Tensor& codes, const Tensor& x);
  void bf16_load(const Tensor& x, const Tensor& codes);

  // ---- linear algebra, between the two programs of a step ---------------------------------------------------
  // The leading `rank` singular directions of g (m, n): left = columns of U as basis (m, rank), else rows of V^T as
  // basis (rank, n). Signs fixed: the largest |entry| of each vector is positive. Host or device, never captured.
  void singular_basis(const Tensor& basis, const Tensor& g, bool left);

 protected:
  virtual void do_gemm(const Mat& c, const Mat& a, bool ta, const Mat& b, bool tb, double alpha, double beta) = 0;
  // As a product and a pass for the bias, where no product does both.
  virtual void do_linear(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& b, bool transpose_w) {
    do_broadcast_rows(y, b);
    do_gemm(y, x, false, w, transpose_w, 1, 1);
  }
  virtual void do_linear_backward(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x) {
    do_gemm(dw, Mat(dy, dy.size(0), dy.size(1)), true, Mat(x, x.size(0), x.size(1)), false, 1, 0);  // also of no rows
    do_column_sum(db, dy);
  }
  // Lists, not empty; one by one where there is nothing better.
  virtual void do_gemms(std::span<const Product> all) {
    for (const Product& p : all) do_gemm(p.c, p.a, p.transpose_a, p.b, p.transpose_b, p.alpha, p.beta);
  }
  virtual void do_copies(std::span<const Copying> all) = 0;
  virtual void do_rank_masks(std::span<const RankMask> all, const Tensor& step) {
    for (const RankMask& p : all) do_rank_mask(p.e, p.u, p.d, step);
  }
  virtual void do_rank_masks_backward(std::span<const RankMaskGradient> all, const Tensor& step) {
    for (const RankMaskGradient& p : all) do_rank_mask_backward(p.du, p.dd, p.de, p.u, p.d, step);
  }
  virtual void do_fill(const Mat& y, double value) = 0;
  virtual void do_copy(const Tensor& y, const Tensor& x) = 0;
  virtual void do_add(const Tensor& y, const Tensor& a, const Tensor& b) = 0;
  virtual void do_scale(const Tensor& y, const Tensor& x, double factor) = 0;
  virtual void do_axpy(const Tensor& y, double factor, const Tensor& x) = 0;
  virtual void do_permute(const Tensor& y, const Tensor& x, const AxisOrder& axes) = 0;
  virtual void do_broadcast_rows(const Tensor& y, const Tensor& row) = 0;
  virtual void do_column_sum(const Tensor& sum, const Tensor& x) = 0;
  virtual void do_activation_forward(Activation kind, const Tensor& y, const Tensor& x) = 0;
  virtual void do_activation_backward(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved) = 0;
  virtual void do_dropout(const Tensor& y, const Tensor& x, Dropout dropout, const Tensor& step) = 0;
  virtual void do_norm_forward(const Tensor& y, const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& x,
                               const Tensor& branch, const Tensor& gamma, const Tensor& beta, double eps, Dropout dropout,
                               const Tensor& step) = 0;
  virtual void do_norm_backward(const Tensor& dsum, const Tensor& dbranch, const Tensor& dgamma, const Tensor& dbeta, const Tensor& dy,
                                const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& gamma, Dropout dropout,
                                const Tensor& step) = 0;
  virtual void do_attention_forward(const Tensor& out, const Tensor& lse, const Tensor& probs, const Tensor& q, const Tensor& k,
                                    const Tensor& v, const Sequences& sequences, int64_t heads, Dropout dropout, const Tensor& step) = 0;
  virtual void do_attention_backward(const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& dout, const Tensor& lse,
                                     const Tensor& probs, const Tensor& q, const Tensor& k, const Tensor& v, const Sequences& sequences,
                                     int64_t heads, Dropout dropout, const Tensor& step) = 0;
  virtual void do_gather_rows(const Tensor& y, const Tensor& table, const Tensor& ids, bool accumulate) = 0;
  virtual void do_scatter_rows(const Tensor& dtable, const Tensor& dy, const Tensor& ids) = 0;
  virtual void do_first_tokens(const Tensor& y, const Tensor& x, const Sequences& sequences) = 0;
  virtual void do_first_tokens_backward(const Tensor& dx, const Tensor& dy, const Sequences& sequences) = 0;
  virtual void do_ttm_lookup(const Tensor& y, const Tensor& p, const Tensor& q, const Tensor& ids) = 0;
  virtual void do_ttm_lookup_backward(const Tensor& dp, const Tensor& dq, const Tensor& dy, const Tensor& p, const Tensor& q,
                                      const Tensor& ids) = 0;
  virtual void do_rank_mask(const Tensor& e, const Tensor& u, const Tensor& d, const Tensor& step) = 0;
  virtual void do_rank_mask_backward(const Tensor& du, const Tensor& dd, const Tensor& de, const Tensor& u, const Tensor& d,
                                     const Tensor& step) = 0;
  virtual void do_rank_objective(const Tensor& results, const RankTable& table, const Tensor& step) = 0;
  virtual void do_rank_objective_backward(const Tensor& dranks, const RankTable& table, const Tensor& results, const Tensor& step) = 0;
  virtual void do_sum_of_squares(const Tensor& results, const Tensor& x) = 0;
  virtual void do_core_penalty_backward(const Tensor& dw, const Tensor& w, const Tensor& step) = 0;
  virtual void do_cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits,
                                const Tensor& labels) = 0;
  virtual void do_binary_cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits,
                                       const Tensor& labels) = 0;
  virtual void do_scale_by_ce_weight(const Tensor& y, const Tensor& results) = 0;
  virtual void do_adam(std::span<const AdamTensors> all, AdamRule rule, const Tensor& step) = 0;
  virtual void do_adam_update(const Tensor& u, const Tensor& g, const Tensor& m, const Tensor& v, AdamRule rule, ParamGroup group,
                              const Tensor& step) = 0;
  virtual void do_weight_decay(const Tensor& w, ParamGroup group, const Tensor& step) = 0;
  virtual void do_adam8bit(std::span<const Adam8bitTensors> all, AdamRule rule, const Tensor& step) = 0;
  virtual void do_dequantise8bit(const Tensor& x, const Tensor& codes, const Tensor& absmax, bool is_signed) = 0;
  virtual void do_quantise8bit(const Tensor& codes, const Tensor& absmax, const Tensor& x, bool is_signed) = 0;
  virtual void do_int8_keep(const Tensor& codes, const Tensor& used, const Tensor& range, const Tensor& x, int64_t groups, double decay,
                            uint32_t site, const Tensor& step) = 0;
  virtual void do_int8_load(const Tensor& x, const Tensor& codes, const Tensor& used, int64_t groups) = 0;
  virtual void do_bf16_keep(const Tensor& codes, const Tensor& x) = 0;
  virtual void do_bf16_load(const Tensor& x, const Tensor& codes) = 0;
  virtual void do_singular_basis(const Tensor& basis, const Tensor& g, bool left) = 0;
};

}  // namespace comera
