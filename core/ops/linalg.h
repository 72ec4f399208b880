// Linear algebra, between the two programs of a step.
#pragma once
#include <cmath>

#include "core/ops/op.h"

namespace comera {

// Whether a projection moves little from refresh to refresh (METHODS.md 7): then they become rarer.
struct LazyRefreshMath {
  static constexpr int kMostTimes = 1 << 30;
  double threshold;
  int factor;
  int64_t size;  // of the queue
  // counts: {multiple of the gap, refreshes before}. Squares of the lengths of both directions, and their product.
  template <class T>
  HD void take(double product, double square, double square_before, T* queue, int* counts) const {
    const int before = counts[1]++;
    if (before == 0) {
      counts[0] = 1;
      return;
    }
    for (int64_t i = 0; i + 1 < size; ++i) queue[i] = queue[i + 1];
    const double lengths = std::sqrt(square * square_before);
    queue[size - 1] = static_cast<T>(lengths > 0 ? std::abs(product) / lengths : 0);
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(queue[i]);
    if (before >= size && sum >= threshold * static_cast<double>(size) && counts[0] <= kMostTimes / factor) counts[0] *= factor;
  }
};

namespace op {

// The leading `rank` singular directions of g (m, n): left = columns of U as basis (m, rank), else rows of V^T as
// basis (rank, n). Signs fixed: the largest |entry| of each vector is positive. Where g is not finite the
// basis stays as it is, so no step has to look at g first. Host or device, never captured.
struct SingularBasis {
  static constexpr const char* name = "singular_basis";
  static constexpr bool never_captured = true;
  static constexpr bool large_workspace = true;
  Tensor basis, g;
  bool left = true;
  static void tensors(auto& a, auto& see) {
    see.out(a.basis);
    see.in(a.g);
  }
  void check() const;
};

// q (rank, n), n >= rank, becomes an orthonormal basis of the space of its rows: Q of q = L Q with a positive diagonal of L. A row that
// depends on those before it becomes a direction that is orthogonal to them, or 0. Never captured.
struct Orthonormal {
  static constexpr const char* name = "orthonormal";
  static constexpr bool never_captured = true;
  static constexpr bool large_workspace = true;
  Tensor q;
  static void tensors(auto& a, auto& see) { see.inout(a.q); }
  void check() const;
};

// The two directions of COAP's refinement of convolutions (METHODS.md 3.1), all (m, n). `lost` is E, g projected and back less g; `moment`
// is C, the first moment brought back. They become (1 - mean cos) 2 / (m n) E and ||E||^2 / (m n) H. `normalised`: those of g and C over
// rms(g).
struct CoapDirections {
  static constexpr const char* name = "coap_directions";
  Tensor lost, moment, g;
  bool normalised = false;
  static void tensors(auto& a, auto& see) {
    see.inout(a.lost, a.moment);
    see.in(a.g);
  }
  void check() const;
};

// The same directions from tensors of the rank, where neither E nor C is made (METHODS.md 3). C = U V: u = U, gv = G V^T and uv = U V V^T
// are (m, r); they, of_g and of_moment are none without a first moment. s and q (r, r), the Gram matrices of the projection and of the
// projected gradient, become c (s - 2 I) and c q with c = (1 - mean cos) 2 / (m n). With H = diag(a) G - diag(b) C and
// f = ||E||^2 / (m n), of_g and of_moment (m, r) become f diag(a) U and f diag(b) U; on the `left`, f diag(a) gv and f diag(b) uv.
struct CoapFactors {
  static constexpr const char* name = "coap_factors";
  Tensor s, q, of_g, of_moment, g, u, gv, uv;
  bool left = false, normalised = false;
  static void tensors(auto& a, auto& see) {
    see.inout(a.s, a.q);
    see.out(a.of_g, a.of_moment);
    see.in(a.g, a.u, a.gv, a.uv);
  }
  void check() const;
};

// y -= size x min(1, 1 / (||x|| + 1e-6)). A norm that is not finite leaves y as it is.
struct ClippedStep {
  static constexpr const char* name = "clipped_step";
  Tensor y, x;
  double size = 0;
  static void tensors(auto& a, auto& see) {
    see.inout(a.y);
    see.in(a.x);
  }
  void check() const;
};

// `last` (n) becomes the first direction of `basis`: row 0 of (r, n), or, if it is `left`, column 0 of (n, r). In all calls but the
// first, queue (k), oldest first, takes the |cosine| of both. counts i32 (2): {multiple of the gap between refreshes, calls}; zeros before
// the first. Where the queue is full and its mean is at least `threshold`, the multiple grows by `factor`.
struct LazyRefresh {
  static constexpr const char* name = "lazy_refresh";
  Tensor queue, last, counts, basis;
  bool left = true;
  double threshold = 0.4;
  int factor = 2;
  static void tensors(auto& a, auto& see) {
    see.inout(a.queue, a.last, a.counts);
    see.in(a.basis);
  }
  void check() const;
};

}  // namespace op

#define COMERA_LINALG_OPS(OP) OP(SingularBasis) OP(Orthonormal) OP(CoapDirections) OP(CoapFactors) OP(ClippedStep) OP(LazyRefresh)

}  // namespace comera
