// The calls of all ops. Their structs (list.h) say what they do and which tensors they use; run() is the one place that checks arguments
// and counts work. A dry run ends there, else the body follows, which is in core/cpu (float and double) or gpu.
#pragma once
#include <span>

#include "core/ops/list.h"
#include "core/ops/profile.h"
#include "core/ops/rounded_products.h"
#include "core/ops/workspace.h"

namespace comera {

class Ops {
 public:
  virtual ~Ops() = default;

  bool dry = false;
  // true: bodies are called in a dry run too, where they note the working memory that they need and do nothing else. `large`: of ops
  // with a large workspace.
  virtual bool notes_workspace(bool large) const { return false; }
  // true: the call of a list is one kernel, so one list holds the calls of all layers. A list means the same as its items one by one; no
  // item waits for another, and their float tensors are all of one dtype.
  virtual bool batches_small_calls() const { return false; }
  Work work;                                 // grows with every call, dry or not; the owner resets it
  OpProfile* profile = nullptr;              // not owned; told of every call that is not dry
  Workspace workspace;                       // of the CPU's bodies with a large workspace; a GPU's machine has its own
  const RoundedProducts* rounded = nullptr;  // the CPU's products in bf16; null: they are in f32
  bool plans_rounded = false;                // bf16 in dry calls, which need no library

  // An empty list is no call.
  template <class Op>
  void run(const Op& op);  // run.cpp instantiates it for the list

  // run() under the names of the ops, for the ops that have one ----------------------------------------------------------
  void gemm(const Mat& c, const Mat& a, bool transpose_a, const Mat& b, bool transpose_b, double alpha = 1, double beta = 0) {
    run(op::Gemm{{c, a, transpose_a, b, transpose_b, alpha, beta}});
  }
  void gemm(std::span<const GemmArgs> all) { run(op::Gemms{all}); }
  void linear(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& b, bool transpose_w = true) {
    run(op::Linear{y, x, w, b, transpose_w});
  }
  void linear_backward(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x) { run(op::LinearBackward{dw, db, dy, x}); }

  void fill(const Mat& y, double value) { run(op::Fill{y, value}); }
  void copy(const Tensor& y, const Tensor& x) { run(op::Copy{y, x}); }
  void copy(std::span<const CopyArgs> all) { run(op::Copies{all}); }
  void add(const Tensor& y, const Tensor& a, const Tensor& b) { run(op::Add{y, a, b}); }
  void scale(const Tensor& y, const Tensor& x, double factor) { run(op::Scale{y, x, factor}); }
  void axpy(const Tensor& y, double factor, const Tensor& x) { run(op::Axpy{y, factor, x}); }
  void permute(const Tensor& y, const Tensor& x, const AxisOrder& axes) { run(op::Permute{y, x, axes}); }
  void broadcast_rows(const Tensor& y, const Tensor& row) { run(op::BroadcastRows{y, row}); }
  void column_sum(const Tensor& sum, const Tensor& x) { run(op::ColumnSum{sum, x}); }
  void activation_forward(Activation kind, const Tensor& y, const Tensor& x) { run(op::ActivationForward{kind, y, x}); }
  void activation_backward(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved) {
    run(op::ActivationBackward{kind, dx, dy, saved});
  }
  void dropout(const Tensor& y, const Tensor& x, Dropout dropout, const Tensor& step) { run(op::ApplyDropout{y, x, dropout, step}); }

  void norm_forward(const Tensor& y, const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& x, const Tensor& branch,
                    const Tensor& gamma, const Tensor& beta, double eps, Dropout dropout, const Tensor& step) {
    run(op::NormForward{y, sum, mean, rstd, x, branch, gamma, beta, eps, dropout, step});
  }
  void norm_backward(const Tensor& dsum, const Tensor& dbranch, const Tensor& dgamma, const Tensor& dbeta, const Tensor& dy,
                     const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& gamma, Dropout dropout, const Tensor& step) {
    run(op::NormBackward{dsum, dbranch, dgamma, dbeta, dy, sum, mean, rstd, gamma, dropout, step});
  }

  void attention_forward(const Tensor& out, const Tensor& lse, const Tensor& probs, const Tensor& q, const Mat& k, const Mat& v,
                         const Sequences& sequences, const AttentionHeads& heads, Dropout dropout, const Tensor& step) {
    run(op::AttentionForward{out, lse, probs, q, k, v, sequences, heads, dropout, step});
  }
  void attention_backward(const Tensor& dq, const Mat& dk, const Mat& dv, const Tensor& dout, const Tensor& lse, const Tensor& probs,
                          const Tensor& q, const Mat& k, const Mat& v, const Sequences& sequences, const AttentionHeads& heads,
                          Dropout dropout, const Tensor& step) {
    run(op::AttentionBackward{dq, dk, dv, dout, lse, probs, q, k, v, sequences, heads, dropout, step});
  }

  void gather_rows(const Tensor& y, const Tensor& table, const Tensor& ids, bool accumulate) {
    run(op::GatherRows{y, table, ids, accumulate});
  }
  void scatter_rows(const Tensor& dtable, const Tensor& dy, const Tensor& ids) { run(op::ScatterRows{dtable, dy, ids}); }
  void first_tokens(const Tensor& y, const Tensor& x, const Sequences& sequences) { run(op::FirstTokens{y, x, sequences}); }
  void first_tokens_backward(const Tensor& dx, const Tensor& dy, const Sequences& sequences) {
    run(op::FirstTokensBackward{dx, dy, sequences});
  }
  void ttm_lookup(const Tensor& y, const Tensor& p, const Tensor& q, const Tensor& ids) { run(op::TtmLookup{y, p, q, ids}); }
  void ttm_lookup_backward(const Tensor& dp, const Tensor& dq, const Tensor& dy, const Tensor& p, const Tensor& q, const Tensor& ids) {
    run(op::TtmLookupBackward{dp, dq, dy, p, q, ids});
  }

  void rank_mask(std::span<const RankMaskArgs> all, const Tensor& step) { run(op::RankMask{all, step}); }
  void rank_mask(const Tensor& e, const Tensor& u, const Tensor& d, const Tensor& step) {
    const RankMaskArgs one[] = {{e, u, d}};
    rank_mask(one, step);
  }
  void rank_mask_backward(std::span<const RankMaskBackwardArgs> all, const Tensor& step) { run(op::RankMaskBackward{all, step}); }
  void rank_mask_backward(const Tensor& du, const Tensor& dd, const Tensor& de, const Tensor& u, const Tensor& d, const Tensor& step) {
    const RankMaskBackwardArgs one[] = {{du, dd, de, u, d}};
    rank_mask_backward(one, step);
  }
  void rank_objective(const Tensor& results, const RankTable& table, const Tensor& step) { run(op::RankObjective{results, table, step}); }
  void rank_objective_backward(const Tensor& dranks, const RankTable& table, const Tensor& results, const Tensor& step) {
    run(op::RankObjectiveBackward{dranks, table, results, step});
  }
  void sum_of_squares(const Tensor& results, const Tensor& x) { run(op::SumOfSquares{results, x}); }
  void core_penalty_backward(const Tensor& dw, const Tensor& w, const Tensor& step) { run(op::CorePenaltyBackward{dw, w, step}); }

  void cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits, const Tensor& labels) {
    run(op::CrossEntropy{results, dlogits, row_loss, logits, labels});
  }
  void binary_cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits,
                            const Tensor& labels) {
    run(op::BinaryCrossEntropy{results, dlogits, row_loss, logits, labels});
  }
  void scale_by_ce_weight(const Tensor& y, const Tensor& results) { run(op::ScaleByCeWeight{y, results}); }

  void adam(std::span<const AdamTensors> all, AdamRule rule, const Tensor& step) { run(op::Adam{all, rule, step}); }
  void adam(const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v, AdamRule rule, ParamGroup group, const Tensor& step) {
    const AdamTensors one[] = {{w, g, m, v, group}};
    adam(one, rule, step);
  }
  void adam_update(const Tensor& u, const Tensor& g, const Tensor& m, const Tensor& v, AdamRule rule, ParamGroup group,
                   const Tensor& step) {
    run(op::AdamUpdate{u, g, m, v, rule, group, step});
  }
  void weight_decay(const Tensor& w, ParamGroup group, const Tensor& step) { run(op::WeightDecay{w, group, step}); }
  void adam8bit(std::span<const Adam8bitTensors> all, AdamRule rule, const Tensor& step, NeverZero second = NeverZero::none) {
    run(op::Adam8bit{all, rule, step, second});
  }
  void adam8bit(const Tensor& w, const Tensor& g, const Tensor& m8, const Tensor& v8, const Tensor& absmax_m, const Tensor& absmax_v,
                AdamRule rule, ParamGroup group, const Tensor& step, NeverZero second = NeverZero::none) {
    const Adam8bitTensors one[] = {{w, g, m8, v8, absmax_m, absmax_v, group}};
    adam8bit(one, rule, step, second);
  }
  void factored_moments(const Tensor& row, const Tensor& column, const Tensor& g, double exponent, double eps, const Tensor& step) {
    run(op::FactoredMoments{row, column, g, {.exponent = exponent}, eps, step});
  }
  void factored_update(const Tensor& u, const Tensor& g, const Tensor& row, const Tensor& column) {
    run(op::FactoredUpdate{u, g, row, column});
  }
  void adafactor_update(const Tensor& u, const Tensor& w, const Tensor& m, AdafactorRule rule, ParamGroup group, const Tensor& step) {
    run(op::AdafactorUpdate{u, w, m, rule, group, step});
  }
  void dequantise8bit(const Tensor& x, const Tensor& codes, const Tensor& absmax, bool is_signed) {
    run(op::Dequantise8bit{x, codes, absmax, is_signed});
  }
  void quantise8bit(const Tensor& codes, const Tensor& absmax, const Tensor& x, bool is_signed, NeverZero never = NeverZero::none) {
    run(op::Quantise8bit{codes, absmax, x, is_signed, never});
  }

  void int8_keep(const Tensor& codes, const Tensor& used, const Tensor& range, const Tensor& x, int64_t groups, double decay, uint32_t site,
                 const Tensor& step) {
    run(op::Int8Keep{codes, used, range, x, groups, decay, site, step});
  }
  void int8_load(const Tensor& x, const Tensor& codes, const Tensor& used, int64_t groups) { run(op::Int8Load{x, codes, used, groups}); }
  void bf16_keep(const Tensor& codes, const Tensor& x) { run(op::Bf16Keep{codes, x}); }
  void bf16_keep(const Tensor& codes, const Tensor& x, uint32_t site, const Tensor& step) { run(op::Bf16Keep{codes, x, site, step}); }
  void bf16_load(const Tensor& x, const Tensor& codes) { run(op::Bf16Load{x, codes}); }

  void singular_basis(const Tensor& basis, const Tensor& g, bool left) { run(op::SingularBasis{basis, g, left}); }

 protected:
  // Lists that arrive here are not empty.
#define COMERA_BODY(Op) virtual void body(const op::Op& args) = 0;
  COMERA_OPS(COMERA_BODY)
#undef COMERA_BODY
  // A linear layer as a product and a pass over the bias, where no product does both.
  static op::Gemm product_of(const op::Linear& args);
  static op::Gemm product_of(const op::LinearBackward& args);
  void linear_in_two(const op::Linear& args);
  void linear_backward_in_two(const op::LinearBackward& args);
};

}  // namespace comera
