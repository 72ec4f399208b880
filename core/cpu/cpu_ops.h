// The CPU bodies of the ops, for f32 and f64 (double is the reference that gradient checks use). One .cpp a family.
#pragma once
#include "core/cpu/thread_pool.h"
#include "core/ops/ops.h"

namespace comera {

class CpuOps final : public Ops {
 public:
  explicit CpuOps(int threads);
  ThreadPool& pool() { return pool_; }

 private:
  void do_gemm(const Mat& c, const Mat& a, bool ta, const Mat& b, bool tb, double alpha, double beta) override;
  void do_fill(const Mat& y, double value) override;
  void do_copy(const Tensor& y, const Tensor& x) override;
  void do_copies(std::span<const Copying> all) override;
  void do_add(const Tensor& y, const Tensor& a, const Tensor& b) override;
  void do_scale(const Tensor& y, const Tensor& x, double factor) override;
  void do_axpy(const Tensor& y, double factor, const Tensor& x) override;
  void do_permute(const Tensor& y, const Tensor& x, const AxisOrder& axes) override;
  void do_broadcast_rows(const Tensor& y, const Tensor& row) override;
  void do_column_sum(const Tensor& sum, const Tensor& x) override;
  void do_activation_forward(Activation kind, const Tensor& y, const Tensor& x) override;
  void do_activation_backward(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved) override;
  void do_dropout(const Tensor& y, const Tensor& x, Dropout dropout, const Tensor& step) override;
  void do_norm_forward(const Tensor& y, const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& x, const Tensor& branch,
                       const Tensor& gamma, const Tensor& beta, double eps, Dropout dropout, const Tensor& step) override;
  void do_norm_backward(const Tensor& dsum, const Tensor& dbranch, const Tensor& dgamma, const Tensor& dbeta, const Tensor& dy,
                        const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& gamma, Dropout dropout,
                        const Tensor& step) override;
  void do_attention_forward(const Tensor& out, const Tensor& lse, const Tensor& probs, const Tensor& q, const Tensor& k, const Tensor& v,
                            const Sequences& sequences, int64_t heads, Dropout dropout, const Tensor& step) override;
  void do_attention_backward(const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& dout, const Tensor& lse,
                             const Tensor& probs, const Tensor& q, const Tensor& k, const Tensor& v, const Sequences& sequences,
                             int64_t heads, Dropout dropout, const Tensor& step) override;
  void do_gather_rows(const Tensor& y, const Tensor& table, const Tensor& ids, bool accumulate) override;
  void do_scatter_rows(const Tensor& dtable, const Tensor& dy, const Tensor& ids) override;
  void do_first_tokens(const Tensor& y, const Tensor& x, const Sequences& sequences) override;
  void do_first_tokens_backward(const Tensor& dx, const Tensor& dy, const Sequences& sequences) override;
  void do_ttm_lookup(const Tensor& y, const Tensor& p, const Tensor& q, const Tensor& ids) override;
  void do_ttm_lookup_backward(const Tensor& dp, const Tensor& dq, const Tensor& dy, const Tensor& p, const Tensor& q,
                              const Tensor& ids) override;
  void do_rank_mask(const Tensor& e, const Tensor& u, const Tensor& d, const Tensor& step) override;
  void do_rank_mask_backward(const Tensor& du, const Tensor& dd, const Tensor& de, const Tensor& u, const Tensor& d,
                             const Tensor& step) override;
  void do_rank_objective(const Tensor& results, const RankTable& table, const Tensor& step) override;
  void do_rank_objective_backward(const Tensor& dranks, const RankTable& table, const Tensor& results, const Tensor& step) override;
  void do_sum_of_squares(const Tensor& results, const Tensor& x) override;
  void do_core_penalty_backward(const Tensor& dw, const Tensor& w, const Tensor& step) override;
  void do_cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits,
                        const Tensor& labels) override;
  void do_binary_cross_entropy(const Tensor& results, const Tensor& dlogits, const Tensor& row_loss, const Tensor& logits,
                               const Tensor& labels) override;
  void do_scale_by_ce_weight(const Tensor& y, const Tensor& results) override;
  void do_adam(std::span<const AdamTensors> all, AdamRule rule, const Tensor& step) override;
  void do_adam_update(const Tensor& u, const Tensor& g, const Tensor& m, const Tensor& v, AdamRule rule, ParamGroup group,
                      const Tensor& step) override;
  void do_weight_decay(const Tensor& w, ParamGroup group, const Tensor& step) override;
  void do_adam8bit(std::span<const Adam8bitTensors> all, AdamRule rule, const Tensor& step) override;
  void do_dequantise8bit(const Tensor& x, const Tensor& codes, const Tensor& absmax, bool is_signed) override;
  void do_quantise8bit(const Tensor& codes, const Tensor& absmax, const Tensor& x, bool is_signed) override;
  void do_bf16_keep(const Tensor& codes, const Tensor& x) override;
  void do_bf16_load(const Tensor& x, const Tensor& codes) override;
  void do_int8_keep(const Tensor& codes, const Tensor& used, const Tensor& range, const Tensor& x, int64_t groups, double decay,
                    uint32_t site, const Tensor& step) override;
  void do_int8_load(const Tensor& x, const Tensor& codes, const Tensor& used, int64_t groups) override;
  void do_singular_basis(const Tensor& basis, const Tensor& g, bool left) override;

  ThreadPool pool_;
};

}  // namespace comera
