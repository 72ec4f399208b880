// Attention inside sequences.
#pragma once
#include "core/ops/op.h"

namespace comera {
namespace op {

// out (T, D) = softmax(Q K^T / sqrt(D/heads)) V, heads side by side in D, each sequence by itself. Rows outside
// every sequence are 0. lse (heads, T): log of the softmax sums, kept for backward. probs, when not empty, keeps
// the probabilities before dropout: (S, heads, longest, longest); without it backward recomputes them.
struct AttentionForward {
  static constexpr const char* name = "attention_forward";
  Tensor out, lse, probs, q, k, v;
  Sequences sequences = {};
  int64_t heads = 0;
  Dropout dropout = {};
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.out(a.out, a.lse, a.probs);
    see.in(a.q, a.k, a.v);
    Sequences::tensors(a.sequences, see);
    see.step(a.step);
  }
  void check() const;
  Work work(double bytes) const;
};

struct AttentionBackward {
  static constexpr const char* name = "attention_backward";
  Tensor dq, dk, dv, dout, lse, probs, q, k, v;
  Sequences sequences = {};
  int64_t heads = 0;
  Dropout dropout = {};
  Tensor step;
  static void tensors(auto& a, auto& see) {
    see.out(a.dq, a.dk, a.dv);
    see.in(a.dout, a.lse, a.probs, a.q, a.k, a.v);
    Sequences::tensors(a.sequences, see);
    see.step(a.step);
  }
  void check() const;
  Work work(double bytes) const;
};

}  // namespace op

#define COMERA_ATTENTION_OPS(OP) OP(AttentionForward) OP(AttentionBackward)

}  // namespace comera
