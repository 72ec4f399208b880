// Layer norm and RMS norm with the residual branch folded in. A row (3 KiB for 768 floats) stays in L1 between its loops, so
// memory is read once.
#include <cmath>

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/lanes.h"
#include "core/cpu/row_blocks.h"
#include "core/cpu/thin_rows.h"
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
  site.each_draws(first, columns, [&](int64_t offset, int64_t count, const uint16_t* draws) {
    const DropoutMask<T> mask = site.mask<T>();
    T* to = sum + offset;
    const T *a = x + offset, *b = branch + offset;
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j) to[j] = a[j] + mask.apply(b[j], draws[j]);
  });
}

template <class T>
struct NormRow {
  T mean, rstd;
};

// Layer norm, or RMS norm if beta is null. y may be x.
template <class T>
void normalise(int64_t columns, T* y, const T* x, NormRow<T> row, const T* gamma, const T* beta) {
  const T mean = row.mean, rstd = row.rstd;
  if (!beta) {
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) y[j] = x[j] * rstd * gamma[j];
    return;
  }
#pragma GCC ivdep
  for (int64_t j = 0; j < columns; ++j) y[j] = (x[j] - mean) * rstd * gamma[j] + beta[j];
}

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

// Calls body(begin, end) for each tile of rows.
template <class Body>
void each_tile(ThreadPool& pool, int64_t rows, const Body& body) {
  constexpr int64_t kRows = ThinRows<float>::kRows;
  pool.parallel_for(ceil_div(rows, kRows), 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) body(tile * kRows, std::min(rows, (tile + 1) * kRows));
  });
}

int64_t row_grain(int64_t columns) { return kElementGrain / 2 / std::max<int64_t>(columns, 1) + 1; }

}  // namespace

void CpuOps::body(const op::NormForward& args) {
  const bool centred{args.beta};  // a tensor without entries has no address
  const int64_t columns = args.x.size(1);
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    Workspace::Call memory(workspace, dry);
    ThinRows<T> thin(args.thin, memory);
    if (dry) return;
    thin.pack(pool_);
    const DropoutSite site(args.dropout, args.step, args.x.count()), after(args.after, args.step, args.x.count());
    const T *from = args.x.data<T>(), *side = args.branch ? args.branch.data<T>() : nullptr, *scale = args.gamma.data<T>(),
            *shift = centred ? args.beta.data<T>() : nullptr;
    T *to = args.y.data<T>(), *total = args.sum ? args.sum.data<T>() : to, *means = centred ? args.mean.data<T>() : nullptr,
      *rstds = args.rstd.data<T>();
    const auto rows_forward = [&](int64_t begin, int64_t end, const T* rows) {
      for (int64_t t = begin; t < end; ++t) {
        const T* in = rows + t * columns;
        if (side) {
          add_branch(site, static_cast<uint64_t>(t * columns), columns, total + t * columns, in, side + t * columns);
          in = total + t * columns;
        }
        const NormRow<T> row = statistics(in, columns, static_cast<T>(args.eps), centred);
        rstds[t] = row.rstd;
        if (centred) means[t] = row.mean;
        T* out = to + t * columns;
        normalise(columns, out, in, row, scale, shift);
        if (after.on()) after.apply(out, out, static_cast<uint64_t>(t * columns), columns);
      }
    };
    if (!args.thin) {
      pool_.parallel_for(args.x.size(0), row_grain(columns), [&](int64_t begin, int64_t end) { rows_forward(begin, end, from); });
      return;
    }
    const std::optional<op::NormForward::Before>& before = args.before;
    const bool was_centred = before && before->beta;
    each_tile(pool_, args.x.size(0), [&](int64_t begin, int64_t end) {
      thin.each_piece(begin, end, [&](int64_t t, int64_t first, int64_t count, const T* branch) {
        const int64_t at = t * columns + first;
        const T* x = from + at;
        if (before) {
          const NormRow<T> row{was_centred ? before->mean.data<T>()[t] : T(0), before->rstd.data<T>()[t]};
          normalise(count, total + at, x, row, before->gamma.data<T>() + first, was_centred ? before->beta.data<T>() + first : nullptr);
          x = total + at;
        }
        add_branch(site, static_cast<uint64_t>(at), count, total + at, x, branch);
      });
      rows_forward(begin, end, total);
    });
  });
}

void CpuOps::body(const op::NormBackward& args) {
  const bool centred{args.mean};
  const int64_t columns = args.dy.size(1);
  by_float_type(args.dy, [&](auto type) {
    using T = decltype(type);
    Workspace::Call memory(workspace, dry);
    ThinRows<T> thin(args.thin, memory);
    std::optional<ThinOfRows<T>> onward;
    if (args.onward) onward.emplace(args.onward->u, args.onward->r, memory);
    if (dry) return;
    thin.pack(pool_);
    if (onward) onward->pack(pool_);
    const DropoutSite site(args.dropout, args.step, args.dy.count()), after(args.after, args.step, args.dy.count());
    const T *from = args.dy.data<T>(), *in = args.sum.data<T>(), *means = centred ? args.mean.data<T>() : nullptr,
            *rstds = args.rstd.data<T>(), *scale = args.gamma.data<T>();
    T *to = args.dsum.data<T>(), *side = args.dbranch ? args.dbranch.data<T>() : nullptr;
    const RowBlocks blocks(args.dy.size(0));
    const int64_t sums = centred ? 2 * columns : columns;  // of dgamma and dbeta
    const auto rows_backward = [&](T* partial, int64_t begin, int64_t end, const T* rows) {
      if (after.on()) {
        after.apply(to + begin * columns, rows + begin * columns, static_cast<uint64_t>(begin * columns), (end - begin) * columns);
        rows = to;
      }
      for (int64_t t = begin; t < end; ++t) {
        const int64_t at = t * columns;
        if (centred)
          row_backward(columns, to + at, partial, partial + columns, rows + at, in + at, {means[t], rstds[t]}, scale);
        else
          rms_row_backward(columns, to + at, partial, rows + at, in + at, rstds[t], scale);
        if (!side) continue;
        if (site.on())
          site.apply(side + at, to + at, static_cast<uint64_t>(at), columns);
        else
          std::copy(to + at, to + at + columns, side + at);
      }
      if (onward) onward->make(begin, end, side);
    };
    const T* partials = partial_sums<T>(pool_, blocks, sums, [&](T* partial, int64_t begin, int64_t end) {
      for (int64_t first = begin; first < end; first += ThinRows<T>::kRows) {
        const int64_t last = std::min(end, first + ThinRows<T>::kRows);
        if (!args.thin) {
          rows_backward(partial, first, last, from);
          continue;
        }
        thin.each_piece(first, last, [&](int64_t t, int64_t column, int64_t count, const T* more) {
          const int64_t at = t * columns + column;
#pragma GCC ivdep
          for (int64_t j = 0; j < count; ++j) to[at + j] = from[at + j] + more[j];
        });
        rows_backward(partial, first, last, to);
      }
    });
    add_partials(pool_, partials, blocks.count, sums, columns, args.dgamma.data<T>());
    if (centred) add_partials(pool_, partials + columns, blocks.count, 2 * columns, columns, args.dbeta.data<T>());
  });
}

}  // namespace comera
