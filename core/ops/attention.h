// Attention inside sequences.
#pragma once
#include "core/ops/op.h"

namespace comera {

// Which rows see which: Q has `heads` heads side by side, K has key_heads, each of which serves as many query heads in their order
// (grouped-query attention), and V has value_heads, each of which serves as many heads of keys. Causal: a token sees itself and those
// before it.
struct AttentionHeads {
  int64_t heads = 0, key_heads = 0, value_heads = 0;  // 0: as many as of the one before
  bool causal = false;

  AttentionHeads() = default;
  AttentionHeads(int64_t heads, int64_t key_heads = 0, bool causal = false, int64_t value_heads = 0)
      : heads(heads),
        key_heads(key_heads > 0 ? key_heads : heads),
        value_heads(value_heads > 0 ? value_heads : this->key_heads),
        causal(causal) {}
};

namespace op {

// out (T, heads u) = softmax(Q K^T / sqrt(w)) V of Q (T, heads w), K (T, key_heads w) and V (T, value_heads u), each sequence by itself.
// Rows outside every sequence are 0. lse (heads, T): log of the softmax sums, kept for backward. probs, when not empty, keeps the
// probabilities before dropout: (S, heads, longest, longest), 0 where a token does not see another; without it backward recomputes them.
// k and v may be columns of wider matrices; their gradients, too, with the row steps of k and v.
struct AttentionForward {
  static constexpr const char* name = "attention_forward";
  Tensor out, lse, probs, q;
  Mat k, v;
  Sequences sequences = {};
  AttentionHeads heads = {};
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
  Tensor dq;
  Mat dk, dv;
  Tensor dout, lse, probs, q;
  Mat k, v;
  Sequences sequences = {};
  AttentionHeads heads = {};
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

// Rotary positions (METHODS.md 19.2). table (T, w): of each token cosines, then sines, of positions[t] theta^(-2 i / w), i < w / 2.
struct RotaryTable {
  static constexpr const char* name = "rotary_table";
  Tensor table, positions;
  double theta = 10000;
  static void tensors(auto& a, auto& see) {
    see.out(a.table);
    see.in(a.positions);
  }
  void check() const;
};
// y (T, D) = x with features i and i + w / 2 of each head of w turned by their angle in table (T, w); `back`: by the negative angle,
// which is its own backward. y may be x.
struct Rotate {
  static constexpr const char* name = "rotate";
  Tensor y, x, table;
  bool back = false;
  static void tensors(auto& a, auto& see) {
    see.in_place(a.y);
    see.in(a.x, a.table);
  }
  void check() const;
};

}  // namespace op

#define COMERA_ATTENTION_OPS(OP) OP(AttentionForward) OP(AttentionBackward) OP(RotaryTable) OP(Rotate)

}  // namespace comera
