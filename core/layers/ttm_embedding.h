// A table (rows, columns) as a tensor-train matrix (METHODS.md 1.2): K cores F_k (r_{k-1}, m_k, n_k, r_k), rank vectors
// on the K - 1 bonds. Each step merges the cores left of one bond to P (m_1..m_s, n_1..n_s, r_s) and the others to
// Q (m_{s+1}..m_K, r_s, n_{s+1}..n_K); a row is then one small product. Kept for backward: ids and what does not
// depend on the number of tokens. Rows past the vocabulary are never looked up.
#pragma once
#include <string>
#include <vector>

#include "core/config/tt_shape.h"
#include "core/layers/factory.h"
#include "core/layers/tt_calls.h"
#include "core/tensor/tensor_list.h"

namespace comera {

class TTMEmbedding final : public Layer, public Remake {
 public:
  // `std`: initial standard deviation of an entry of the table.
  TTMEmbedding(const std::string& name, const TTShape& shape, LayerFactory& factory, double std = 1);

  Tensor forward(Ctx& ctx, Tensor ids) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;
  Tensor remake(Ctx& ctx) override;
  int depth() const override { return 0; }  // a lookup from merged halves costs less than any product of the model's width

 private:
  friend class TTForm;
  void mask(Ctx& ctx, TTCalls& calls);            // before forward: E_k
  void mask_gradients(Ctx& ctx, TTCalls& calls);  // after backward: of E_k to those of the cores and rank vectors
  void hand_over(Ctx& ctx);                       // once those calls are made
  void merge_left(Ctx& ctx, size_t split);        // cores 1..split
  void merge_right(Ctx& ctx, size_t split);       // cores split+1..K
  void unmerge_left(Ctx& ctx, Tensor dp);
  void unmerge_right(Ctx& ctx, Tensor dq, size_t split);
  Shape core_shape(size_t k) const;

  TTShape shape_;  // ranks: as the cores are now
  std::vector<Param*> cores_, ranks_;
  // Of the step: E_k; merged halves of cores 1..k (m.., n.., r_k) and of k..K (r_{k-1}, m.., n..), as index k - 1.
  TensorList effective_, left_, right_;
  TensorList core_grads_, rank_grads_;  // room for the gradients of cores and rank vectors, from backward to hand_over
  Tensor p_, q_, ids_;
  bool grouped_ = false;  // masked before forward and after backward, with other layers (tt_form.cpp)
  TTCalls calls_;         // where it is not
};

// Bond s at which the halves meet: the one that costs the fewest multiply-adds for `tokens` lookups.
size_t ttm_split(const TTShape& shape, int64_t tokens);
// Those multiply-adds: both merges and the products of the lookup.
double ttm_cost(const TTShape& shape, size_t split, int64_t tokens);

}  // namespace comera
