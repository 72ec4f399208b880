// Layer norm and RMS norm with fused residual and dropout (METHODS.md 15.2). A row is read once: its entries stay in registers, those of
// long rows in part.
#pragma once
#include "gpu/column_sums.h"
#include "gpu/thin_norm.h"

namespace comera::gpu {

template <class T>
struct NormForward {
  static constexpr int kHeld = 8;  // fours of a row that a thread keeps, so rows of up to 1024 take one warp, without a barrier
  static constexpr int kBlocks = sizeof(T) == 4 ? 2 : 1;
  int64_t rows, columns;
  const T *x, *branch, *gamma, *beta;  // branch may be null; beta and mean serve where centred
  T *y, *sum, *mean, *rstd;
  T eps;
  bool centred;  // false: RMS norm
  bool whole;    // of_fours()
  DropoutSite<T> site, after;
  // sum = x + branch after dropout, of the row that begins at `first`.
  template <class Group>
  KERNEL void add_branch(Group& g, const DropoutDraws<T>& draws, int64_t first, Four<T> (&kept)[kHeld]) const {
    const int64_t held = whole ? columns : 0;
    Four<T> more[kHeld];
    each_held<kHeld>(g, held, [&](int s, int64_t j) { more[s] = four_at(branch + first + j); });
    uint32_t keeps = 0;  // four bits a four; this loop indexes no array, and is long if unrolled
    if (site.on())
      for (int s = 0; s < kHeld; ++s) {
        const int64_t j = 4 * (g.thread() + int64_t{s} * g.threads());
        if (j < held) keeps |= draws.keeps(first + j) << 4 * s;
      }
    each_held<kHeld>(g, held, [&](int s, int64_t j) {
      for (int l = 0; l < 4; ++l) kept[s].v[l] += draws.apply(more[s].v[l], keeps >> 4 * s, l);
      store_four(sum + first + j, kept[s]);
    });
    each_further(g, whole ? kHeld : 0, columns, [&](int64_t j) {
      Four<T> a = read_four(x + first, j, columns, whole);
      const Four<T> b = read_four(branch + first, j, columns, whole);
      const uint32_t bits = draws.keeps(first + j);
      for (int l = 0; l < 4; ++l) a.v[l] += draws.apply(b.v[l], bits, l);
      write_four(sum + first, j, columns, whole, a);
    });
  }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    const DropoutDraws<T> draws(site);
    const T count = static_cast<T>(columns);
    const int64_t held = whole ? columns : 0;
    const int skipped = whole ? kHeld : 0;
    // Below, `four` is `whole` where the compiler knows it: whatever is kept.
    Four<T> kept[kHeld];
    for (int64_t row = g.block(); row < rows; row += g.blocks()) {
      const int64_t first = row * columns;
      each_held<kHeld>(g, held, [&](int s, int64_t j) { kept[s] = four_at(x + first + j); });
      if (branch) add_branch(g, draws, first, kept);
      // Each thread reads only entries that it wrote.
      const T* in = branch ? sum + first : x + first;
      T part = 0;
      const auto add = [&](const Four<T>& a, int64_t j, bool four) {
        for (int l = 0; l < 4; ++l)
          if (four || j + l < columns) part += a.v[l];
      };
      if (centred) {
        each_held<kHeld>(g, held, [&](int s, int64_t j) { add(kept[s], j, true); });
        each_further(g, skipped, columns, [&](int64_t j) { add(read_four(in, j, columns, whole), j, whole); });
      }
      const T average = centred ? g.reduce(part, Sum{}) / count : T(0);
      part = 0;
      const auto add_square = [&](const Four<T>& a, int64_t j, bool four) {
        for (int l = 0; l < 4; ++l)
          if (four || j + l < columns) part += (a.v[l] - average) * (a.v[l] - average);
      };
      each_held<kHeld>(g, held, [&](int s, int64_t j) { add_square(kept[s], j, true); });
      each_further(g, skipped, columns, [&](int64_t j) { add_square(read_four(in, j, columns, whole), j, whole); });
      const T inverse = T(1) / std::sqrt(g.reduce(part, Sum{}) / count + eps);
      const auto write = [&](Four<T> a, int64_t j, bool four) {
        const Four<T> by = read_four(gamma, j, columns, four), to = centred ? read_four(beta, j, columns, four) : Four<T>{};
        for (int l = 0; l < 4; ++l) a.v[l] = (a.v[l] - average) * inverse * by.v[l] + to.v[l];
        if (after.on()) DropoutDraws<T>(after).apply_four(a, first + j);  // few norms have it, so it holds no registers
        write_four(y + first, j, columns, four, a);
      };
      each_held<kHeld>(g, held, [&](int s, int64_t j) { write(kept[s], j, true); });
      each_further(g, skipped, columns, [&](int64_t j) { write(read_four(in, j, columns, whole), j, whole); });
      if (g.thread() == 0) {
        if (centred) mean[row] = average;
        rstd[row] = inverse;
      }
    }
  }
};

// dsum, and dbranch where it is not null; and the sums over each piece of the rows that give dgamma and dbeta. One block a piece. mean and
// dbeta serve where centred.
template <class T>
struct NormBackward {
  static constexpr int kHeld = 2;  // fours of a row that a thread keeps
  static constexpr int kBlocks = sizeof(T) == 4 ? 3 : 1;
  int64_t rows, columns, pieces;
  const T *dy, *x, *mean, *rstd, *gamma;
  T *dsum, *dbranch;
  T* partial;    // (pieces, 2, columns): dgamma and dbeta; where not centred, (pieces, columns): dgamma
  bool centred;  // false: RMS norm
  bool whole;    // of_fours()
  DropoutSite<T> site;
  // dsum and dbranch of a row, from d = dy gamma and the normalised x of the entries held, and the row's means of d and of d xhat.
  template <class Group>
  KERNEL void write_row(Group& g, const DropoutDraws<T>& draws, int64_t row, const Four<T> (&d)[kHeld], const Four<T> (&xhat)[kHeld],
                        T g_mean, T gx_mean) const {
    const int64_t first = row * columns;
    const T average = centred ? mean[row] : T(0), inverse = rstd[row];
    const auto write = [&](const Four<T>& a, const Four<T>& b, int64_t j, bool four) {
      Four<T> out;
      for (int l = 0; l < 4; ++l) out.v[l] = inverse * (a.v[l] - g_mean - b.v[l] * gx_mean);
      write_four(dsum + first, j, columns, four, out);
      if (!dbranch) return;
      const uint32_t bits = draws.keeps(first + j);
      for (int l = 0; l < 4; ++l) out.v[l] = draws.apply(out.v[l], bits, l);
      write_four(dbranch + first, j, columns, four, out);
    };
    each_held<kHeld>(g, whole ? columns : 0, [&](int s, int64_t j) { write(d[s], xhat[s], j, true); });
    each_further(g, whole ? kHeld : 0, columns, [&](int64_t j) {
      Four<T> a = read_four(dy + first, j, columns, whole), b = read_four(x + first, j, columns, whole);
      const Four<T> by = read_four(gamma, j, columns, whole);
      for (int l = 0; l < 4; ++l) {
        a.v[l] *= by.v[l];
        b.v[l] = (b.v[l] - average) * inverse;
      }
      write(a, b, j, whole);
    });
  }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    const DropoutDraws<T> draws(site);
    const T count = static_cast<T>(columns);
    const int64_t held = whole ? columns : 0;
    const int skipped = whole ? kHeld : 0;
    for (int64_t piece = g.block(); piece < pieces; piece += g.blocks()) {
      T *dgamma = partial + piece * (centred ? 2 : 1) * columns, *dbeta = dgamma + columns;
      Four<T> of_gamma[kHeld] = {}, of_beta[kHeld] = {};
      each_further(g, skipped, columns, [&](int64_t j) {
        write_four(dgamma, j, columns, whole, {});
        if (centred) write_four(dbeta, j, columns, whole, {});
      });
      const Range range = Range{0, rows}.piece(piece, pieces);
      for (int64_t row = range.begin; row < range.end; ++row) {
        const int64_t first = row * columns;
        const T average = centred ? mean[row] : T(0), inverse = rstd[row];
        Four<T> d[kHeld], xhat[kHeld];
        each_held<kHeld>(g, held, [&](int s, int64_t j) { d[s] = four_at(dy + first + j); });
        each_held<kHeld>(g, held, [&](int s, int64_t j) { xhat[s] = four_at(x + first + j); });
        Two<T> part = {};
        // Normalises x, adds to the sums, and multiplies dy by gamma.
        const auto add = [&](Four<T>& a, Four<T>& b, Four<T>& to_gamma, Four<T>& to_beta, int64_t j, bool four) {
          const Four<T> by = read_four(gamma, j, columns, four);
          for (int l = 0; l < 4; ++l) {
            b.v[l] = (b.v[l] - average) * inverse;
            to_gamma.v[l] += a.v[l] * b.v[l];
            to_beta.v[l] += a.v[l];
            a.v[l] *= by.v[l];
            if (four || j + l < columns) {
              part.a += a.v[l];
              part.b += a.v[l] * b.v[l];
            }
          }
        };
        each_held<kHeld>(g, held, [&](int s, int64_t j) { add(d[s], xhat[s], of_gamma[s], of_beta[s], j, true); });
        each_further(g, skipped, columns, [&](int64_t j) {
          Four<T> a = read_four(dy + first, j, columns, whole), b = read_four(x + first, j, columns, whole);
          Four<T> to_gamma = read_four(dgamma, j, columns, whole), to_beta = {};
          if (centred) to_beta = read_four(dbeta, j, columns, whole);
          add(a, b, to_gamma, to_beta, j, whole);
          write_four(dgamma, j, columns, whole, to_gamma);
          if (centred) write_four(dbeta, j, columns, whole, to_beta);
        });
        part = g.reduce(part, Sum{});
        write_row(g, draws, row, d, xhat, centred ? part.a / count : T(0), part.b / count);
      }
      each_held<kHeld>(g, held, [&](int s, int64_t j) {
        store_four(dgamma + j, of_gamma[s]);
        if (centred) store_four(dbeta + j, of_beta[s]);
      });
    }
  }
};

// y = what the norm before makes of its sum x.
template <class T>
struct NormalisedBefore {
  int64_t columns;
  const T *x, *mean, *rstd, *gamma, *beta;  // mean null: of RMS norm
  T* y;
  HD void operator()(int64_t i) const {
    const int64_t row = i / columns, j = i % columns;
    y[i] = (x[i] - (mean ? mean[row] : T(0))) * rstd[row] * gamma[j] + (mean ? beta[j] : T(0));
  }
};

template <class M>
void GpuOps<M>::body(const op::NormForward& args) {
  begin(args, args.x.shape());
  if (thin_norm_in_strips(machine_, args)) return;
  if (args.thin) return norm_of_whole_product(args);
  norm(args);
}

// The library computes the whole product first.
template <class M>
void GpuOps<M>::norm_of_whole_product(op::NormForward args) {
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const int64_t rows = args.x.size(0), columns = args.x.size(1);
    Tensor branch = args.sum ? args.sum : Tensor(machine_.template scratch<T>(args.x.count()), args.x.shape(), args.x.dtype());
    if (const auto& before = args.before) {
      const bool centred{before->beta};
      each(args.x.count(),
           NormalisedBefore<T>{columns, args.x.data<T>(), centred ? before->mean.data<T>() : nullptr, before->rstd.data<T>(),
                               before->gamma.data<T>(), centred ? before->beta.data<T>() : nullptr, args.y.data<T>()});
      args.x = args.y;
    }
    product({Mat(branch, rows, columns), args.thin->t, false, args.thin->r, args.thin->transpose_r});
    args.branch = args.sum = branch;
    args.thin.reset();
    norm(args);
  });
}

template <class M>
void GpuOps<M>::norm(const op::NormForward& args) {
  const int64_t rows = args.x.size(0), columns = args.x.size(1);
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T *in = args.x.data<T>(), *more = args.branch ? args.branch.data<T>() : nullptr, *by = args.gamma.data<T>(),
            *to = args.beta ? args.beta.data<T>() : nullptr;
    T *out = args.y.data<T>(), *total = args.branch ? args.sum.data<T>() : nullptr;
    const NormForward<T> body{rows,
                              columns,
                              in,
                              more,
                              by,
                              to,
                              out,
                              total,
                              args.mean ? args.mean.data<T>() : nullptr,
                              args.rstd.data<T>(),
                              static_cast<T>(args.eps),
                              static_cast<bool>(args.beta),
                              of_fours(columns, in, more, by, to, out, total),
                              DropoutSite<T>(args.dropout, args.step, args.x.count()),
                              DropoutSite<T>(args.after, args.step, args.x.count())};
    machine_.launch(over_items(rows, ceil_div(columns, 4 * NormForward<T>::kHeld)), body);
  });
}

template <class M>
void GpuOps<M>::body(const op::NormBackward& args) {
  begin(args, args.dy.shape());
  if (thin_norm_in_strips(machine_, args)) return;
  op::NormBackward made = args;
  const int64_t rows = args.dy.size(0), columns = args.dy.size(1);
  if (args.thin) {
    if (args.dsum.raw() != args.dy.raw()) machine_.copy(args.dsum.raw(), args.dy.raw(), args.dy.bytes());
    product({Mat(args.dsum, rows, columns), args.thin->t, false, args.thin->r, args.thin->transpose_r, 1, 1});
    made.dy = args.dsum;
    made.thin.reset();
  }
  if (args.after.probability > 0) {
    body(op::ApplyDropout{args.dsum, made.dy, args.after, args.step});
    begin(args, args.dy.shape());
    made.dy = args.dsum;
  }
  norm_back(made);
  if (args.onward) product({args.onward->u, Mat(args.dbranch, rows, columns), false, args.onward->r, true});
}

template <class M>
void GpuOps<M>::norm_back(const op::NormBackward& args) {
  const int64_t rows = args.dy.size(0), columns = args.dy.size(1);
  by_float_type(args.dy, [&](auto type) {
    using T = decltype(type);
    const T *d = args.dy.data<T>(), *x = args.sum.data<T>(), *means = args.mean ? args.mean.data<T>() : nullptr,
            *rstds = args.rstd.data<T>();
    const T* by = args.gamma.data<T>();
    T *out = args.dsum.data<T>(), *branch = args.dbranch ? args.dbranch.data<T>() : nullptr;
    const int64_t pieces = row_pieces(rows);
    T* partial = machine_.template scratch<T>(pieces * (args.mean ? 2 : 1) * columns);
    const NormBackward<T> body{rows,
                               columns,
                               pieces,
                               d,
                               x,
                               means,
                               rstds,
                               by,
                               out,
                               branch,
                               partial,
                               static_cast<bool>(args.mean),
                               of_fours(columns, d, x, by, out, branch, partial),
                               DropoutSite<T>(args.dropout, args.step, args.dy.count())};
    machine_.launch(over_items(pieces, ceil_div(columns, 4 * NormBackward<T>::kHeld)), body);
    if (args.mean)
      fold_columns<T>(machine_, columns, pieces, partial, {args.dgamma.data<T>(), args.dbeta.data<T>()});
    else
      fold_columns<T>(machine_, columns, pieces, partial, {args.dgamma.data<T>()});
  });
}

}  // namespace comera::gpu
