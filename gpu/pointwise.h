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

// Element i of the tensors y from that of the tensors x: f(x, y). Four elements a thread.
template <class T, int kY, int kX, class F>
struct Fours {
  int64_t count;
  T* y[kY];
  const T* x[kX];
  bool aligned;  // to 16 bytes
  F f;
  KERNEL void operator()(int64_t four) const {
    const int64_t first = 4 * four;
    const bool whole = aligned && first + 4 <= count;
    Four<T> from[kX], to[kY];
    for (int i = 0; i < kX; ++i) from[i] = read_four(x[i], first, count, whole);
    for (int l = 0; l < 4; ++l) {
      T in[kX], out[kY];
      for (int i = 0; i < kX; ++i) in[i] = from[i].v[l];
      f(in, out);
      for (int i = 0; i < kY; ++i) to[i].v[l] = out[i];
    }
    for (int i = 0; i < kY; ++i) write_four(y[i], first, count, whole, to[i]);
  }
};

template <class T, class Machine, int kY, int kX, class F>
void by_fours(Machine& machine, int64_t count, T* const (&y)[kY], const T* const (&x)[kX], const F& f) {
  Fours<T, kY, kX, F> body{count, {}, {}, true, f};
  std::copy(std::begin(y), std::end(y), body.y);
  std::copy(std::begin(x), std::end(x), body.x);
  for (const T* at : y) body.aligned &= of_fours(0, at);
  for (const T* at : x) body.aligned &= of_fours(0, at);
  const int64_t fours = ceil_div(count, 4);
  machine.launch(over_elements(fours), Elements<Fours<T, kY, kX, F>>{fours, body});
}

struct Add {
  template <class T>
  KERNEL void operator()(const T (&x)[2], T (&y)[1]) const {
    y[0] = x[0] + x[1];
  }
};

template <class T>
struct Scale {
  T factor;
  KERNEL void operator()(const T (&x)[1], T (&y)[1]) const { y[0] = factor * x[0]; }
};

template <class T>
struct Axpy {
  T factor;
  KERNEL void operator()(const T (&x)[2], T (&y)[1]) const { y[0] = x[0] + factor * x[1]; }
};

struct Square {
  bool root;
  template <class T>
  KERNEL void operator()(const T (&x)[1], T (&y)[1]) const {
    y[0] = root ? std::sqrt(x[0]) : x[0] * x[0];
  }
};

template <class F>
struct ActivationForward {
  template <class T>
  KERNEL void operator()(const T (&x)[1], T (&y)[1]) const {
    y[0] = F::forward(x[0]);
  }
};

// Of dy and what forward saved.
template <class F>
struct ActivationBackward {
  template <class T>
  KERNEL void operator()(const T (&x)[2], T (&dx)[1]) const {
    dx[0] = F::backward(x[0], x[1]);
  }
};

// Of x and its gate.
template <class F>
struct GatedForward {
  template <class T>
  KERNEL void operator()(const T (&x)[2], T (&y)[1]) const {
    y[0] = F::forward(x[0]) * x[1];
  }
};

// dx and dgate of dy, x and the gate.
template <class F>
struct GatedBackward {
  template <class T>
  KERNEL void operator()(const T (&x)[3], T (&y)[2]) const {
    y[0] = F::backward(x[0] * x[2], x[1]);
    y[1] = x[0] * F::forward(x[1]);
  }
};

template <class T>
struct BroadcastRows {
  T* y;
  const T* row;
  int64_t columns;
  KERNEL void operator()(int64_t i) const { y[i] = row[i % columns]; }
};

template <class T>
struct DropoutFours {
  int64_t count;
  T* y;
  const T* x;
  bool whole;  // of_fours()
  DropoutSite<T> site;
  KERNEL void operator()(int64_t four) const {
    DropoutDraws<T> draws(site);
    Four<T> a = read_four(x, 4 * four, count, whole);
    for (int l = 0; l < 4; ++l) a.v[l] = draws.apply(a.v[l], 4 * four + l);
    write_four(y, 4 * four, count, whole, a);
  }
};

template <class T>
struct Normal {
  T* y;
  const StepScalars* step;
  uint32_t site;
  double scale;
  int64_t gap, ahead;
  KERNEL void operator()(int64_t i) const {
    y[i] = static_cast<T>(scale * normal_at(normal_stream(*step, site, gap, ahead), static_cast<uint64_t>(i)));
  }
};

template <class T>
struct ColumnOf {
  static constexpr int kSums = 1;
  const T* x;
  int64_t columns;
  KERNEL void operator()(int64_t row, int64_t column, T (&sums)[kSums]) const { sums[0] += x[row * columns + column]; }
};

template <class M>
void GpuOps<M>::product(const GemmArgs& args) {
  const Mat& c = args.c;
  by_float_type(c.tensor, [&](auto type) {
    using T = decltype(type);
    if (c.rows == 0 || c.cols == 0) return;
    if (args.terms() > 0)
      machine_.gemm(ColumnGemm<T>::of_rows(args));
    else if (args.beta == 0)  // libraries refuse an empty sum
      each(c.rows * c.cols, FillMat<T>{c.data<T>(), {c.cols, c.ld}, T(0)});
    else
      each(c.rows * c.cols, ScaleMat<T>{c.data<T>(), {c.cols, c.ld}, static_cast<T>(args.beta)});
  });
}

template <class M>
void GpuOps<M>::body(const op::Gemm& args) {
  const Mat& c = args.c;
  if (c.rows == 0 || c.cols == 0) return;
  begin(args, {c.rows, c.cols, args.terms()});
  by_float_type(c.tensor, [&](auto type) {
    using T = decltype(type);
    const bool aligned = (reinterpret_cast<uintptr_t>(c.tensor.raw()) + sizeof(T) * static_cast<size_t>(c.offset)) % 16 == 0;
    if (!in_fp8(ColumnGemm<T>::of_rows(args), aligned)) product(args);
  });
}

// y row-major is y^T column-major, whose rows are features: the epilogue adds the bias to rows.
template <class M>
void GpuOps<M>::body(const op::Linear& args) {
  begin(args, {args.x.size(0), args.b.count(), args.x.size(1)});
  bool done = false;
  if (may_fuse() && args.y.count() > 0 && args.w.count() > 0)
    by_float_type(args.y, [&](auto type) {
      using T = decltype(type);
      ColumnGemm<T> product = ColumnGemm<T>::of_rows({args.y, args.x, false, args.w, args.transpose_w});
      product.bias = dry ? static_cast<const T*>(Scratch::nowhere()) : args.b.data<T>();
      done = machine_.gemm_and(product);
    });
  if (!done) linear_in_two(args);
}

// dW^T column-major = X^T dY: db, the sum of dY over tokens, is the sum of the second factor over k.
template <class M>
void GpuOps<M>::body(const op::LinearBackward& args) {
  begin(args, {args.dy.size(0), args.dy.size(1), args.x.size(1)});
  bool done = false;
  if (may_fuse() && args.dw.count() > 0 && args.dy.count() > 0)
    by_float_type(args.dw, [&](auto type) {
      using T = decltype(type);
      ColumnGemm<T> product = ColumnGemm<T>::of_rows({args.dw, args.dy, true, args.x, false});
      product.sums = dry ? static_cast<T*>(Scratch::nowhere()) : args.db.data<T>();
      done = machine_.gemm_and(product);
    });
  if (!done) linear_backward_in_two(args);
}

template <class M>
void GpuOps<M>::body(const op::Fill& args) {
  if (dry) return;
  begin(args, {args.y.rows, args.y.cols});
  by_float_type(args.y.tensor, [&](auto type) {
    using T = decltype(type);
    each(args.y.rows * args.y.cols, FillMat<T>{args.y.data<T>(), {args.y.cols, args.y.ld}, static_cast<T>(args.value)});
  });
}

template <class M>
void GpuOps<M>::body(const op::Copy& args) {
  begin(args, args.y.shape());
  if (args.y.raw() != args.x.raw()) machine_.copy(args.y.raw(), args.x.raw(), args.y.bytes());
}

template <class M>
void GpuOps<M>::body(const op::Add& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    by_fours<T>(machine_, args.y.count(), {args.y.data<T>()}, {args.a.data<T>(), args.b.data<T>()}, Add{});
  });
}

template <class M>
void GpuOps<M>::body(const op::Scale& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    by_fours<T>(machine_, args.y.count(), {args.y.data<T>()}, {args.x.data<T>()}, Scale<T>{static_cast<T>(args.factor)});
  });
}

template <class M>
void GpuOps<M>::body(const op::Axpy& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    by_fours<T>(machine_, args.y.count(), {args.y.data<T>()}, {args.y.data<T>(), args.x.data<T>()}, Axpy<T>{static_cast<T>(args.factor)});
  });
}

template <class M>
void GpuOps<M>::broadcast(const Tensor& y, const Tensor& row) {
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    each(y.count(), BroadcastRows<T>{y.data<T>(), row.data<T>(), y.size(1)});
  });
}

template <class M>
void GpuOps<M>::body(const op::BroadcastRows& args) {
  begin(args, args.y.shape());
  broadcast(args.y, args.row);
}

template <class M>
void GpuOps<M>::activate(Activation kind, const Tensor& y, const Tensor& x) {
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    by_kind(kind, [&](auto f) { by_fours<T>(machine_, y.count(), {y.data<T>()}, {x.data<T>()}, ActivationForward<decltype(f)>{}); });
  });
}

template <class M>
void GpuOps<M>::body(const op::ActivationForward& args) {
  begin(args, args.y.shape());
  activate(args.kind, args.y, args.x);
}

template <class M>
void GpuOps<M>::activate_back(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved) {
  by_float_type(dx, [&](auto type) {
    using T = decltype(type);
    by_kind(kind, [&](auto f) {
      by_fours<T>(machine_, dx.count(), {dx.data<T>()}, {dy.data<T>(), saved.data<T>()}, ActivationBackward<decltype(f)>{});
    });
  });
}

template <class M>
void GpuOps<M>::body(const op::ActivationBackward& args) {
  begin(args, args.dx.shape());
  activate_back(args.kind, args.dx, args.dy, args.saved);
}

template <class M>
void GpuOps<M>::gate(Activation kind, const Tensor& y, const Tensor& x, const Tensor& gate) {
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    by_kind(kind, [&](auto f) {
      by_fours<T>(machine_, y.count(), {y.data<T>()}, {x.data<T>(), gate.data<T>()}, GatedForward<decltype(f)>{});
    });
  });
}

template <class M>
void GpuOps<M>::gate_back(Activation kind, const Tensor& dx, const Tensor& dgate, const Tensor& dy, const Tensor& x, const Tensor& gate) {
  by_float_type(dx, [&](auto type) {
    using T = decltype(type);
    by_kind(kind, [&](auto f) {
      by_fours<T>(machine_, dx.count(), {dx.data<T>(), dgate.data<T>()}, {dy.data<T>(), x.data<T>(), gate.data<T>()},
                  GatedBackward<decltype(f)>{});
    });
  });
}

template <class M>
void GpuOps<M>::body(const op::GatedForward& args) {
  begin(args, args.y.shape());
  gate(args.kind, args.y, args.x, args.gate);
}

template <class M>
void GpuOps<M>::body(const op::GatedBackward& args) {
  begin(args, args.dx.shape());
  gate_back(args.kind, args.dx, args.dgate, args.dy, args.x, args.gate);
}

template <class M>
void GpuOps<M>::body(const op::ApplyDropout& args) {
  if (!(args.dropout.probability > 0)) return body(op::Copy{args.y, args.x});
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    const T* in = args.x.data<T>();
    T* out = args.y.data<T>();
    each(ceil_div(args.y.count(), 4), DropoutFours<T>{args.y.count(), out, in, of_fours(args.y.count(), in, out),
                                                      DropoutSite<T>(args.dropout, args.step, args.y.count())});
  });
}

template <class M>
void GpuOps<M>::body(const op::ColumnSum& args) {
  begin(args, args.x.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    column_sums<T>(machine_, args.x.size(0), args.x.size(1), ColumnOf<T>{args.x.data<T>(), args.x.size(1)}, {args.sum.data<T>()});
  });
}

template <class M>
void GpuOps<M>::body(const op::Square& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    by_fours<T>(machine_, args.y.count(), {args.y.data<T>()}, {args.x.data<T>()}, Square{args.root});
  });
}

template <class M>
void GpuOps<M>::body(const op::Normal& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    each(args.y.count(), Normal<T>{args.y.data<T>(), scalars_in(args.step), args.site, args.scale, args.gap, args.ahead});
  });
}

}  // namespace comera::gpu
