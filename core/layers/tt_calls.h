// The small calls of tensor trains take longer to start than to compute: they are collected, and make() makes one list of each kind.
#pragma once
#include <vector>

#include "core/layers/layer.h"

namespace comera {

// Calls keep their temporaries until they are made.
class TTCalls {
 public:
  void gemm(const Mat& c, const Mat& a, bool transpose_a, const Mat& b, bool transpose_b, double alpha = 1, double beta = 0) {
    products_.push_back({c, a, transpose_a, b, transpose_b, alpha, beta});
  }
  void copy(const Mat& y, const Mat& x) { copies_.push_back({y, x}); }
  void rank_mask(const Tensor& e, const Tensor& u, const Tensor& d) { masks_.push_back({e, u, d}); }
  void rank_mask_backward(const Tensor& du, const Tensor& dd, const Tensor& de, const Tensor& u, const Tensor& d) {
    mask_gradients_.push_back({du, dd, de, u, d});
  }
  void make(Ctx& ctx);  // masks, copies, products, gradients of masks, in this order; no call may wait for another of its kind
  void forget();

  // Forgets calls at its end that an error kept from being made.
  class Scope {
   public:
    explicit Scope(TTCalls& calls) : calls_(calls) {}
    ~Scope() { calls_.forget(); }
    Scope(const Scope&) = delete;

   private:
    TTCalls& calls_;
  };

 private:
  std::vector<GemmArgs> products_;
  std::vector<CopyArgs> copies_;
  std::vector<RankMaskArgs> masks_;
  std::vector<RankMaskBackwardArgs> mask_gradients_;
};

}  // namespace comera
