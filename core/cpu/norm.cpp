// Layer norm and RMS norm with the residual branch folded in. A row (3 KiB for 768 floats) stays in L1 between its loops, so
// memory is read once.
#include <cmath>

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/lanes.h"
#include "core/cpu/row_blocks.h"
#include "core/cpu/typed.h"

namespace comera {
namespace {

// sum = x + branch times its mask, for the row that begins at element `first`.
template <class T>
void add_branch(const DropoutSite& site, uint64_t first, int64_t columns, T* sum, const T* x, const T* branch) {
  if (!site.on()) {
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) sum[j] = x[j] + branch[j];
    return;
  }
  site.each_words(first, columns, [&](int64_t offset, int64_t count, const uint32_t* words) {
    const DropoutMask<T> mask = site.mask<T>();
    T* to = sum + offset;
    const T *a = x + offset, *b = branch + offset;
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j) to[j] = a[j] + mask.apply(b[j], words[j]);
  });
}

template <class T>
struct NormRow {
  T mean, rstd;
};

// Not centred: of RMS norm, whose mean counts as 0.
template <class T>
NormRow<T> statistics(const T* x, int64_t columns, T eps, bool centred) {
  const T mean = centred ? row_sum<T>(columns, [&](auto v, int64_t j) { return at<decltype(v)>(x + j); }) / static_cast<T>(columns) : T(0);
  const T squares = row_sum<T>(columns, [&](auto v, int64_t j) {
    const auto d = at<decltype(v)>(x + j) - mean;
    return d * d;
  });
  return {mean, T(1) / std::sqrt(squares / static_cast<T>(columns) + eps)};
}

// dsum of one row, and its share of dgamma and dbeta added.
template <class T>
void row_backward(int64_t columns, T* dsum, T* dgamma, T* dbeta, const T* dy, const T* x, NormRow<T> row, const T* gamma) {
  const T mean = row.mean, rstd = row.rstd;
  const T g_mean = row_sum<T>(columns, [&](auto v, int64_t j) { return at<decltype(v)>(dy + j) * at<decltype(v)>(gamma + j); }) /
                   static_cast<T>(columns);
  const T gx_mean = row_sum<T>(columns,
                               [&](auto v, int64_t j) {
                                 return at<decltype(v)>(dy + j) * at<decltype(v)>(gamma + j) * ((at<decltype(v)>(x + j) - mean) * rstd);
                               }) /
                    static_cast<T>(columns);
#pragma GCC ivdep
  for (int64_t j = 0; j < columns; ++j) {
    const T xhat = (x[j] - mean) * rstd, d = dy[j];
    dgamma[j] += d * xhat;
    dbeta[j] += d;
    dsum[j] = rstd * (d * gamma[j] - g_mean - xhat * gx_mean);
  }
}

template <class T>
void rms_row_backward(int64_t columns, T* dsum, T* dgamma, const T* dy, const T* x, T rstd, const T* gamma) {
  const T gx_mean = row_sum<T>(columns,
                               [&](auto v, int64_t j) {
                                 return at<decltype(v)>(dy + j) * at<decltype(v)>(gamma + j) * (at<decltype(v)>(x + j) * rstd);
                               }) /
                    static_cast<T>(columns);
#pragma GCC ivdep
  for (int64_t j = 0; j < columns; ++j) {
    const T xhat = x[j] * rstd, d = dy[j];
    dgamma[j] += d * xhat;
    dsum[j] = rstd * (d * gamma[j] - xhat * gx_mean);
  }
}

int64_t row_grain(int64_t columns) { return kElementGrain / 2 / std::max<int64_t>(columns, 1) + 1; }

}  // namespace

void CpuOps::body(const op::NormForward& args) {
  const DropoutSite site(args.dropout, args.step, args.x.count());
  const bool centred{args.beta};  // a tensor without entries has no address
  const int64_t columns = args.x.size(1);
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T *from = args.x.data<T>(), *side = args.branch ? args.branch.data<T>() : nullptr, *scale = args.gamma.data<T>(),
            *shift = centred ? args.beta.data<T>() : nullptr;
    T *to = args.y.data<T>(), *total = side ? args.sum.data<T>() : nullptr, *means = centred ? args.mean.data<T>() : nullptr,
      *rstds = args.rstd.data<T>();
    pool_.parallel_for(args.x.size(0), row_grain(columns), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const T* in = from + t * columns;
        if (side) {
          add_branch(site, static_cast<uint64_t>(t * columns), columns, total + t * columns, in, side + t * columns);
          in = total + t * columns;
        }
        const NormRow<T> row = statistics(in, columns, static_cast<T>(args.eps), centred);
        rstds[t] = row.rstd;
        T* out = to + t * columns;
        if (!centred) {
#pragma GCC ivdep
          for (int64_t j = 0; j < columns; ++j) out[j] = in[j] * row.rstd * scale[j];
          continue;
        }
        means[t] = row.mean;
#pragma GCC ivdep
        for (int64_t j = 0; j < columns; ++j) out[j] = (in[j] - row.mean) * row.rstd * scale[j] + shift[j];
      }
    });
  });
}

void CpuOps::body(const op::NormBackward& args) {
  const DropoutSite site(args.dropout, args.step, args.dy.count());
  const bool centred{args.mean};
  const int64_t columns = args.dy.size(1);
  by_float_type(args.dy, [&](auto type) {
    using T = decltype(type);
    const T *from = args.dy.data<T>(), *in = args.sum.data<T>(), *means = centred ? args.mean.data<T>() : nullptr,
            *rstds = args.rstd.data<T>(), *scale = args.gamma.data<T>();
    T *to = args.dsum.data<T>(), *side = args.dbranch ? args.dbranch.data<T>() : nullptr;
    const RowBlocks blocks(args.dy.size(0));
    const int64_t sums = centred ? 2 * columns : columns;  // of dgamma and dbeta
    const T* partials = partial_sums<T>(pool_, blocks, sums, [&](T* partial, int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t at = t * columns;
        if (centred)
          row_backward(columns, to + at, partial, partial + columns, from + at, in + at, {means[t], rstds[t]}, scale);
        else
          rms_row_backward(columns, to + at, partial, from + at, in + at, rstds[t], scale);
        if (!side) continue;
        if (site.on())
          site.apply(side + at, to + at, static_cast<uint64_t>(at), columns);
        else
          std::copy(to + at, to + at + columns, side + at);
      }
    });
    add_partials(pool_, partials, blocks.count, sums, columns, args.dgamma.data<T>());
    if (centred) add_partials(pool_, partials + columns, blocks.count, 2 * columns, columns, args.dbeta.data<T>());
  });
}

}  // namespace comera
