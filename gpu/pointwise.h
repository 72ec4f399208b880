// Element-wise ops, sums over rows, and the product.
#pragma once
#include "gpu/column_sums.h"

namespace comera::gpu {

template <class T>
struct FillMat {
  T* y;
  MatIndex at;
  T value;
  KERNEL void operator()(int64_t i) const { y[at(i)] = value; }
};

template <class T>
struct ScaleMat {
  T* y;
  MatIndex at;
  T factor;
  KERNEL void operator()(int64_t i) const { y[at(i)] *= factor; }
};

template <class T>
struct Add {
  T* y;
  const T *a, *b;
  KERNEL void operator()(int64_t i) const { y[i] = a[i] + b[i]; }
};

template <class T>
struct Scale {
  T* y;
  const T* x;
  T factor;
  KERNEL void operator()(int64_t i) const { y[i] = factor * x[i]; }
};

template <class T>
struct Axpy {
  T* y;
  T factor;
  const T* x;
  KERNEL void operator()(int64_t i) const { y[i] += factor * x[i]; }
};

template <class T>
struct BroadcastRows {
  T* y;
  const T* row;
  int64_t columns;
  KERNEL void operator()(int64_t i) const { y[i] = row[i % columns]; }
};

template <class T, class F>
struct ActivationForward {
  T* y;
  const T* x;
  KERNEL void operator()(int64_t i) const { y[i] = F::forward(x[i]); }
};

template <class T, class F>
struct ActivationBackward {
  T* dx;
  const T *dy, *saved;
  KERNEL void operator()(int64_t i) const { dx[i] = F::backward(dy[i], saved[i]); }
};

template <class T>
struct DropoutFours {
  int64_t count;
  T* y;
  const T* x;
  bool whole;  // of_fours()
  DropoutSite<T> site;
  KERNEL void operator()(int64_t four) const {
    DropoutWords<T> words(site);
    Four<T> a = read_four(x, 4 * four, count, whole);
    for (int l = 0; l < 4; ++l) a.v[l] = words.apply(a.v[l], 4 * four + l);
    write_four(y, 4 * four, count, whole, a);
  }
};

template <class T>
struct ColumnOf {
  static constexpr int kSums = 1;
  const T* x;
  int64_t columns;
  KERNEL void operator()(int64_t row, int64_t column, T (&sums)[kSums]) const { sums[0] += x[row * columns + column]; }
};

// Calls body(functor) for the kind: one kernel a kind.
template <class Body>
void by_kind(Activation kind, const Body& body) {
  switch (kind) {
    case Activation::gelu:
      return body(Gelu{});
    case Activation::tanh:
      return body(Tanh{});
    case Activation::relu:
      return body(Relu{});
  }
}

template <class M>
void GpuOps<M>::do_gemm(const Mat& c, const Mat& a, bool ta, const Mat& b, bool tb, double alpha, double beta) {
  if (c.rows == 0 || c.cols == 0) return;
  begin("gemm", {c.rows, c.cols, ta ? a.rows : a.cols});
  by_float_type(c.tensor, [&](auto type) {
    using T = decltype(type);
    const ColumnGemm<T> product = ColumnGemm<T>::of_rows(c, a, ta, b, tb, alpha, beta);
    if (in_fp8(product, (reinterpret_cast<uintptr_t>(c.tensor.raw()) + sizeof(T) * static_cast<size_t>(c.offset)) % 16 == 0)) return;
    if (product.k > 0) return machine_.gemm(product);
    // k = 0: libraries refuse an empty sum.
    if (beta == 0)
      each(c.rows * c.cols, FillMat<T>{c.data<T>(), {c.cols, c.ld}, T(0)});
    else
      each(c.rows * c.cols, ScaleMat<T>{c.data<T>(), {c.cols, c.ld}, static_cast<T>(beta)});
  });
}

// y row-major is y^T column-major, whose rows are features: the epilogue adds the bias to rows.
template <class M>
void GpuOps<M>::do_linear(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& b, bool transpose_w) {
  begin("linear", {x.size(0), b.count(), x.size(1)});
  bool done = false;
  if (hangs() && y.count() > 0 && w.count() > 0)
    by_float_type(y, [&](auto type) {
      using T = decltype(type);
      ColumnGemm<T> product = ColumnGemm<T>::of_rows(y, x, false, w, transpose_w, 1, 0);
      product.bias = dry ? static_cast<const T*>(Scratch::nowhere()) : b.data<T>();
      done = machine_.gemm_and(product);
    });
  if (!done) Ops::do_linear(y, x, w, b, transpose_w);
}

// dW^T column-major = X^T dY: db, the sum of dY over tokens, is the sum of the second factor over k.
template <class M>
void GpuOps<M>::do_linear_backward(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x) {
  begin("linear_backward", {dy.size(0), dy.size(1), x.size(1)});
  bool done = false;
  if (hangs() && dw.count() > 0 && dy.count() > 0)
    by_float_type(dw, [&](auto type) {
      using T = decltype(type);
      ColumnGemm<T> product = ColumnGemm<T>::of_rows(dw, dy, true, x, false, 1, 0);
      product.sums = dry ? static_cast<T*>(Scratch::nowhere()) : db.data<T>();
      done = machine_.gemm_and(product);
    });
  if (!done) Ops::do_linear_backward(dw, db, dy, x);
}

template <class M>
void GpuOps<M>::do_fill(const Mat& y, double value) {
  if (dry) return;
  begin("fill", {y.rows, y.cols});
  by_float_type(y.tensor, [&](auto type) {
    using T = decltype(type);
    each(y.rows * y.cols, FillMat<T>{y.data<T>(), {y.cols, y.ld}, static_cast<T>(value)});
  });
}

template <class M>
void GpuOps<M>::do_copy(const Tensor& y, const Tensor& x) {
  begin("copy", y.shape());
  if (y.raw() != x.raw()) machine_.copy(y.raw(), x.raw(), y.bytes());
}

template <class M>
void GpuOps<M>::do_add(const Tensor& y, const Tensor& a, const Tensor& b) {
  begin("add", y.shape());
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    each(y.count(), Add<T>{y.data<T>(), a.data<T>(), b.data<T>()});
  });
}

template <class M>
void GpuOps<M>::do_scale(const Tensor& y, const Tensor& x, double factor) {
  begin("scale", y.shape());
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    each(y.count(), Scale<T>{y.data<T>(), x.data<T>(), static_cast<T>(factor)});
  });
}

template <class M>
void GpuOps<M>::do_axpy(const Tensor& y, double factor, const Tensor& x) {
  begin("axpy", y.shape());
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    each(y.count(), Axpy<T>{y.data<T>(), static_cast<T>(factor), x.data<T>()});
  });
}

template <class M>
void GpuOps<M>::do_broadcast_rows(const Tensor& y, const Tensor& row) {
  begin("broadcast_rows", y.shape());
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    each(y.count(), BroadcastRows<T>{y.data<T>(), row.data<T>(), y.size(1)});
  });
}

template <class M>
void GpuOps<M>::do_activation_forward(Activation kind, const Tensor& y, const Tensor& x) {
  begin("activation_forward", y.shape());
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    by_kind(kind, [&](auto f) { each(y.count(), ActivationForward<T, decltype(f)>{y.data<T>(), x.data<T>()}); });
  });
}

template <class M>
void GpuOps<M>::do_activation_backward(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved) {
  begin("activation_backward", dx.shape());
  by_float_type(dx, [&](auto type) {
    using T = decltype(type);
    by_kind(kind, [&](auto f) { each(dx.count(), ActivationBackward<T, decltype(f)>{dx.data<T>(), dy.data<T>(), saved.data<T>()}); });
  });
}

template <class M>
void GpuOps<M>::do_dropout(const Tensor& y, const Tensor& x, Dropout dropout, const Tensor& step) {
  if (!(dropout.probability > 0)) return do_copy(y, x);
  begin("dropout", y.shape());
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    const T* in = x.data<T>();
    T* out = y.data<T>();
    each(pieces_of(y.count(), 4), DropoutFours<T>{y.count(), out, in, of_fours(y.count(), in, out), DropoutSite<T>(dropout, step)});
  });
}

template <class M>
void GpuOps<M>::do_column_sum(const Tensor& sum, const Tensor& x) {
  begin("column_sum", x.shape());
  by_float_type(x, [&](auto type) {
    using T = decltype(type);
    column_sums<T>(machine_, x.size(0), x.size(1), ColumnOf<T>{x.data<T>(), x.size(1)}, {sum.data<T>()});
  });
}

}  // namespace comera::gpu
