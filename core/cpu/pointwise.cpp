// Element-wise ops, sums over rows, and permutations.
#include <cstring>

#include "core/base/pieces.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/row_blocks.h"
#include "core/cpu/typed.h"
#include "core/ops/pointwise.h"

namespace comera {

void CpuOps::do_fill(const Mat& y, double value) {
  by_float_type(y.tensor, [&](auto type) {
    using T = decltype(type);
    T* to = y.data<T>();
    const T number = static_cast<T>(value);
    if (y.ld == y.cols || y.rows <= 1) {
      for_chunks(pool_, y.rows * y.cols, [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, number); });
      return;
    }
    pool_.parallel_for(y.rows, kElementGrain / std::max<int64_t>(y.cols, 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) std::fill(to + row * y.ld, to + row * y.ld + y.cols, number);
    });
  });
}

void CpuOps::do_copy(const Tensor& y, const Tensor& x) {
  char* to = static_cast<char*>(y.raw());
  const char* from = static_cast<const char*>(x.raw());
  if (to == from) return;
  pool_.parallel_for(pieces_of(y.bytes(), kChunk), 16, [&](int64_t first, int64_t last) {
    const int64_t begin = first * kChunk, end = std::min(y.bytes(), last * kChunk);
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

void CpuOps::do_copies(std::span<const Copying> all) {
  for (const Copying& p : all) {
    const size_t size = size_of(p.y.tensor.dtype()), row = static_cast<size_t>(p.y.cols) * size;
    const auto line = [&](const Mat& m, int64_t i) {
      return static_cast<char*>(m.tensor.raw()) + static_cast<size_t>(m.offset + i * m.ld) * size;
    };
    if (p.y.rows == 0 || row == 0) continue;
    const int64_t grain = static_cast<int64_t>(size_t{16} * kChunk / row) + 1;
    pool_.parallel_for(p.y.rows, grain, [&](int64_t begin, int64_t end) {
      if (p.y.ld == p.y.cols && p.x.ld == p.x.cols)
        std::memcpy(line(p.y, begin), line(p.x, begin), static_cast<size_t>(end - begin) * row);
      else
        for (int64_t i = begin; i < end; ++i) std::memcpy(line(p.y, i), line(p.x, i), row);
    });
  }
}

void CpuOps::do_add(const Tensor& y, const Tensor& a, const Tensor& b) {
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    T* to = y.data<T>();
    const T *from_a = a.data<T>(), *from_b = b.data<T>();
    for_chunks(pool_, y.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) to[i] = from_a[i] + from_b[i];
    });
  });
}

void CpuOps::do_scale(const Tensor& y, const Tensor& x, double factor) {
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    T* to = y.data<T>();
    const T *from = x.data<T>(), f = static_cast<T>(factor);
    for_chunks(pool_, y.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) to[i] = f * from[i];
    });
  });
}

void CpuOps::do_axpy(const Tensor& y, double factor, const Tensor& x) {
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    T* to = y.data<T>();
    const T *from = x.data<T>(), f = static_cast<T>(factor);
    for_chunks(pool_, y.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) to[i] += f * from[i];
    });
  });
}

void CpuOps::do_broadcast_rows(const Tensor& y, const Tensor& row) {
  const int64_t columns = y.size(1), bytes = row.bytes();
  char* to = static_cast<char*>(y.raw());
  pool_.parallel_for(y.size(0), kElementGrain / std::max<int64_t>(columns, 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) std::memcpy(to + t * bytes, row.raw(), static_cast<size_t>(bytes));
  });
}

void CpuOps::do_column_sum(const Tensor& sum, const Tensor& x) {
  by_float_type(x, [&](auto type) {
    using T = decltype(type);
    const T* from = x.data<T>();
    const int64_t columns = x.size(1);
    const RowBlocks blocks(x.size(0));
    const T* partials = partial_sums<T>(pool_, blocks, columns, [&](T* partial, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* line = from + row * columns;
#pragma GCC ivdep
        for (int64_t j = 0; j < columns; ++j) partial[j] += line[j];
      }
    });
    add_partials(pool_, partials, blocks.count, columns, columns, sum.data<T>());
  });
}

// ---- activations --------------------------------------------------------------------------------------------------
namespace {

// Calls body(functor) for the kind: the loop is compiled once for each.
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

}  // namespace

void CpuOps::do_activation_forward(Activation kind, const Tensor& y, const Tensor& x) {
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    T* to = y.data<T>();
    const T* from = x.data<T>();
    by_kind(kind, [&](auto f) {
      for_chunks(pool_, y.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) to[i] = decltype(f)::forward(from[i]);
      });
    });
  });
}

void CpuOps::do_activation_backward(Activation kind, const Tensor& dx, const Tensor& dy, const Tensor& saved) {
  by_float_type(dx, [&](auto type) {
    using T = decltype(type);
    T* to = dx.data<T>();
    const T *from = dy.data<T>(), *at = saved.data<T>();
    by_kind(kind, [&](auto f) {
      for_chunks(pool_, dx.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) to[i] = decltype(f)::backward(from[i], at[i]);
      });
    });
  });
}

void CpuOps::do_dropout(const Tensor& y, const Tensor& x, Dropout dropout, const Tensor& step) {
  const DropoutSite site(dropout, step);
  if (!site.on()) return do_copy(y, x);
  by_float_type(y, [&](auto type) {
    using T = decltype(type);
    T* to = y.data<T>();
    const T* from = x.data<T>();
    for_chunks(pool_, y.count(),
               [&](int64_t begin, int64_t end) { site.apply(to + begin, from + begin, static_cast<uint64_t>(begin), end - begin); });
  });
}

}  // namespace comera
