// Element-wise ops, sums over rows, and permutations.
#include <cstring>

#include "core/base/rounding.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/parts.h"
#include "core/cpu/row_blocks.h"
#include "core/cpu/typed.h"
#include "core/ops/pointwise_math.h"

namespace comera {

void CpuOps::body(const op::Fill& args) {
  by_float_type(args.y.tensor, [&](auto type) {
    using T = decltype(type);
    T* to = args.y.data<T>();
    const T number = static_cast<T>(args.value);
    if (args.y.ld == args.y.cols || args.y.rows <= 1) {
      for_chunks(pool_, args.y.rows * args.y.cols, [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, number); });
      return;
    }
    pool_.parallel_for(args.y.rows, kElementGrain / std::max<int64_t>(args.y.cols, 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) std::fill(to + row * args.y.ld, to + row * args.y.ld + args.y.cols, number);
    });
  });
}

void CpuOps::body(const op::Copy& args) {
  char* to = static_cast<char*>(args.y.raw());
  const char* from = static_cast<const char*>(args.x.raw());
  if (to == from) return;
  pool_.parallel_for(ceil_div(args.y.bytes(), kChunk), 16, [&](int64_t first, int64_t last) {
    const int64_t begin = first * kChunk, end = std::min(args.y.bytes(), last * kChunk);
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

void CpuOps::body(const op::Copies& args) {
  const auto bytes_of_row = [](const CopyArgs& p) { return p.y.cols * static_cast<int64_t>(size_of(p.y.tensor.dtype())); };
  for_units(
      pool_, args.all.view(), 16 * kChunk,
      [&](const CopyArgs& p) {
        return Units{bytes_of_row(p) == 0 ? 0 : p.y.rows, std::max<int64_t>(1, bytes_of_row(p))};
      },
      [&](const CopyArgs& p, int64_t begin, int64_t end) {
        const size_t size = size_of(p.y.tensor.dtype()), row = static_cast<size_t>(bytes_of_row(p));
        const auto line = [&](const Mat& m, int64_t i) {
          return static_cast<char*>(m.tensor.raw()) + static_cast<size_t>(m.offset + i * m.ld) * size;
        };
        if (p.y.ld == p.y.cols && p.x.ld == p.x.cols)
          std::memcpy(line(p.y, begin), line(p.x, begin), static_cast<size_t>(end - begin) * row);
        else
          for (int64_t i = begin; i < end; ++i) std::memcpy(line(p.y, i), line(p.x, i), row);
      });
}

void CpuOps::body(const op::Add& args) {
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    T* to = args.y.data<T>();
    const T *from_a = args.a.data<T>(), *from_b = args.b.data<T>();
    for_chunks(pool_, args.y.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) to[i] = from_a[i] + from_b[i];
    });
  });
}

void CpuOps::body(const op::Scale& args) {
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    T* to = args.y.data<T>();
    const T *from = args.x.data<T>(), f = static_cast<T>(args.factor);
    for_chunks(pool_, args.y.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) to[i] = f * from[i];
    });
  });
}

void CpuOps::body(const op::Axpy& args) {
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    T* to = args.y.data<T>();
    const T *from = args.x.data<T>(), f = static_cast<T>(args.factor);
    for_chunks(pool_, args.y.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) to[i] += f * from[i];
    });
  });
}

void CpuOps::body(const op::BroadcastRows& args) {
  const int64_t columns = args.y.size(1), bytes = args.row.bytes();
  if (args.y.count() == 0) return;  // it may have no address
  char* to = static_cast<char*>(args.y.raw());
  pool_.parallel_for(args.y.size(0), kElementGrain / std::max<int64_t>(columns, 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) std::memcpy(to + t * bytes, args.row.raw(), static_cast<size_t>(bytes));
  });
}

void CpuOps::body(const op::ColumnSum& args) {
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T* from = args.x.data<T>();
    const int64_t columns = args.x.size(1);
    const RowBlocks blocks(args.x.size(0));
    const T* partials = partial_sums<T>(pool_, blocks, columns, [&](T* partial, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* line = from + row * columns;
#pragma GCC ivdep
        for (int64_t j = 0; j < columns; ++j) partial[j] += line[j];
      }
    });
    add_partials(pool_, partials, blocks.count, columns, columns, args.sum.data<T>());
  });
}

// ---- activations --------------------------------------------------------------------------------------------------
void CpuOps::body(const op::ActivationForward& args) {
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    T* to = args.y.data<T>();
    const T* from = args.x.data<T>();
    by_kind(args.kind, [&](auto f) {
      for_chunks(pool_, args.y.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) to[i] = decltype(f)::forward(from[i]);
      });
    });
  });
}

void CpuOps::body(const op::ActivationBackward& args) {
  by_float_type(args.dx, [&](auto type) {
    using T = decltype(type);
    T* to = args.dx.data<T>();
    const T *from = args.dy.data<T>(), *at = args.saved.data<T>();
    by_kind(args.kind, [&](auto f) {
      for_chunks(pool_, args.dx.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) to[i] = decltype(f)::backward(from[i], at[i]);
      });
    });
  });
}

void CpuOps::body(const op::GatedForward& args) {
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    T* to = args.y.data<T>();
    const T *from = args.x.data<T>(), *gate = args.gate.data<T>();
    by_kind(args.kind, [&](auto f) {
      for_chunks(pool_, args.y.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) to[i] = decltype(f)::forward(from[i]) * gate[i];
      });
    });
  });
}

void CpuOps::body(const op::GatedBackward& args) {
  by_float_type(args.dx, [&](auto type) {
    using T = decltype(type);
    T *to = args.dx.data<T>(), *to_gate = args.dgate.data<T>();
    const T *dy = args.dy.data<T>(), *x = args.x.data<T>(), *gate = args.gate.data<T>();
    by_kind(args.kind, [&](auto f) {
      for_chunks(pool_, args.dx.count(), [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) {
          const T up = dy[i], at = x[i], by = gate[i];
          to[i] = decltype(f)::backward(up * by, at);
          to_gate[i] = up * decltype(f)::forward(at);
        }
      });
    });
  });
}

void CpuOps::body(const op::ApplyDropout& args) {
  const DropoutSite site(args.dropout, args.step, args.y.count());
  if (!site.on()) return body(op::Copy{args.y, args.x});
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    T* to = args.y.data<T>();
    const T* from = args.x.data<T>();
    for_chunks(pool_, args.y.count(),
               [&](int64_t begin, int64_t end) { site.apply(to + begin, from + begin, static_cast<uint64_t>(begin), end - begin); });
  });
}

void CpuOps::body(const op::Square& args) {
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    T* to = args.y.data<T>();
    const T* from = args.x.data<T>();
    for_chunks(pool_, args.y.count(), [=, root = args.root](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = root ? std::sqrt(from[i]) : from[i] * from[i];
    });
  });
}

void CpuOps::body(const op::Normal& args) {
  const Philox stream = normal_stream(scalars_in(args.step), args.site, args.gap, args.ahead);
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    T* to = args.y.data<T>();
    for_chunks(pool_, args.y.count(), [=, scale = args.scale](int64_t begin, int64_t end) {
      int64_t i = begin;  // a multiple of 4: one block of words gives four draws
      for (; i + 4 <= end; i += 4) {
        const Philox::Block words = stream.draw(static_cast<uint64_t>(i) / 4);
        const NormalPair one(words.v[0], words.v[1]), two(words.v[2], words.v[3]);
        to[i] = static_cast<T>(scale * one.even);
        to[i + 1] = static_cast<T>(scale * one.odd);
        to[i + 2] = static_cast<T>(scale * two.even);
        to[i + 3] = static_cast<T>(scale * two.odd);
      }
      for (; i < end; ++i) to[i] = static_cast<T>(scale * normal_at(stream, static_cast<uint64_t>(i)));
    });
  });
}

}  // namespace comera
