// Rank vectors: the masked cores, and the objective that makes ranks shrink (core/ops/rank_math.h).
#pragma once
#include "core/ops/rank_math.h"
#include "gpu/entry_list.h"

namespace comera::gpu {

// thr(d): the factor of an entry of a core.
template <class T>
HD T masked(T d, const StepScalars& step) {
  return step.pruning == 0 ? T(1) : alive(static_cast<double>(d), step) ? d : T(0);
}

template <class T>
struct MaskEntry {
  T* e;
  const T *u, *d;
  int64_t count, r, first;
  bool by_four;
};

// e = u thr(d) along the last axis; e may be u.
template <class T>
struct MaskList {
  const StepScalars* step;
  EntryList<MaskEntry<T>, 512> list;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    each_four_of_list(g, list, [&](const MaskEntry<T>& p, int64_t i) {
      const bool whole = p.by_four && i + 4 <= p.count;
      Four<T> four = read_four(p.u, i, p.count, whole);
      int64_t column = i % p.r;
      T d[4];
      for (int l = 0; l < 4; ++l) {
        d[l] = p.d[column];
        if (++column == p.r) column = 0;
      }
      for (int l = 0; l < 4; ++l) four.v[l] *= masked(d[l], *step);
      write_four(p.e, i, p.count, whole, four);
    });
  }
};

template <class T>
struct MaskGradientEntry {
  T *du, *dd;
  const T *de, *u, *d;
  T* partial;  // (row_pieces, r), where there are several
  int64_t rows, r, first;

  // By the number of rows alone: kRows of them, or more in a core with many.
  static constexpr int64_t kRows = 256, kMostPieces = 32;
  static HD int64_t row_pieces(int64_t rows) {
    const int64_t pieces = ceil_div(rows, kRows);
    return pieces < 1 ? 1 : pieces < kMostPieces ? pieces : kMostPieces;
  }
  HD int64_t strips() const { return ceil_div(r, kWarp); }
};

// The gradient of a rank's entry d; dead ones have none.
template <class T>
HD T of_rank(T d, T total, const StepScalars& step) {
  return step.pruning != 0 && alive(static_cast<double>(d), step) ? total : T(0);
}

// A piece is kWarp columns of some rows of a core. The rows are summed in kParts parts, whatever the launch shape, then the parts are
// added. du may alias de: each entry is read and written by one thread.
template <class T>
struct MaskGradientList {
  static constexpr int kParts = kBlock / kWarp, kAtOnce = 8;  // loads in flight, before a store that they might alias
  const StepScalars* step;
  EntryList<MaskGradientEntry<T>, 384> list;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    T* sums = g.template shared<T>();  // (kParts, kWarp)
    for (int64_t item = g.block(); item < list.pieces; item += g.blocks()) {
      const MaskGradientEntry<T>& p = list.of(item);
      const int64_t piece = (item - p.first) / p.strips(), columns = (item - p.first) % p.strips() * kWarp;
      const Range of_piece = Range{0, p.rows}.piece(piece, p.row_pieces(p.rows));
      for (int i = g.thread(); i < kParts * kWarp; i += g.threads()) {
        const int64_t column = columns + i % kWarp;
        T sum = 0;
        if (column < p.r) {
          const T factor = masked(p.d[column], *step);
          const Range rows = of_piece.piece(i / kWarp, kParts);
          for (int64_t row = rows.begin; row < rows.end; row += kAtOnce) {
            const int64_t at = row * p.r + column;
            const int count = rows.end - row < kAtOnce ? static_cast<int>(rows.end - row) : kAtOnce;
            T de[kAtOnce] = {}, u[kAtOnce] = {};
            for (int l = 0; l < kAtOnce; ++l)
              if (l < count) de[l] = p.de[at + l * p.r], u[l] = p.u[at + l * p.r];
            for (int l = 0; l < kAtOnce; ++l) {
              sum += de[l] * u[l];
              if (l < count) p.du[at + l * p.r] = de[l] * factor;
            }
          }
        }
        sums[i] = sum;
      }
      g.sync();
      for (int i = g.thread(); i < kWarp && columns + i < p.r; i += g.threads()) {
        T total = sums[i];
        for (int part = 1; part < kParts; ++part) total += sums[part * kWarp + i];
        const int64_t column = columns + i;
        if (p.row_pieces(p.rows) == 1)
          p.dd[column] = of_rank(p.d[column], total, *step);
        else
          p.partial[piece * p.r + column] = total;
      }
      g.sync();
    }
  }
};

template <class T>
struct RankGradientEntry {
  T* dd;
  const T *d, *partial;
  int64_t row_pieces, count, first;
};

// dd = the sum of a core's pieces.
template <class T>
struct RankGradientList {
  const StepScalars* step;
  EntryList<RankGradientEntry<T>, 512> list;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    each_piece(g, list, [&](const RankGradientEntry<T>& p, const Range& of) {
      for (int64_t i = of.begin + g.thread(); i < of.end; i += g.threads()) {
        T total = p.partial[i];
        for (int64_t piece = 1; piece < p.row_pieces; ++piece) total += p.partial[piece * p.count + i];
        p.dd[i] = of_rank(p.d[i], total, *step);
      }
    });
  }
};

// Output of RankObjective for the kernels after it.
struct RankSums {
  RankTotals totals;
  double sum, count;
};

// One block: counts and norms of all bonds, their sums over layers, and the step's results unless `results` is null. The bonds' numbers
// pass through shared memory where they fit, since a layer's are read many times over.
template <class T>
struct RankObjective {
  static constexpr int kNear = 1024;  // bonds
  static constexpr int64_t shared_bytes(int bonds) { return bonds <= kNear ? 3 * bonds * static_cast<int64_t>(sizeof(double)) : 0; }
  Bonds bonds;
  int bond_count;
  const T* ranks;
  const StepScalars* step;
  RankSums* sums;
  StepResults* results;  // may be null
  template <class Group>
  KERNEL void operator()(Group& g) const {
    Bonds own = bonds;
    own.sum = own.count = 0;
    const bool near = bond_count <= kNear;
    if (near) {
      own.live = g.template shared<double>();
      own.norm = own.live + bond_count;
      own.weak = own.norm + bond_count;
    }
    for (int bond = g.thread(); bond < bond_count; bond += g.threads()) {
      own.look_at(bond, ranks, *step);
      if (!near) continue;
      bonds.live[bond] = own.live[bond];
      bonds.norm[bond] = own.norm[bond];
      bonds.weak[bond] = own.weak[bond];
    }
    const double sum = g.reduce(own.sum, Sum{}), count = g.reduce(own.count, Sum{});
    g.sync();  // other threads wrote the layer's bonds
    RankTotals totals;
    for (int64_t layer = g.thread(); layer < bonds.layers; layer += g.threads()) totals.add(own, layer);
    totals.entries = g.reduce(totals.entries, Sum{});
    totals.norm_entries = g.reduce(totals.norm_entries, Sum{});
    totals.live_slope = g.reduce(totals.live_slope, Sum{});
    totals.weak_slope = g.reduce(totals.weak_slope, Sum{});
    if (g.thread() != 0) return;
    *sums = {totals, sum, count};
    if (results) set_rank_results(*results, *step, totals, sum, count);
  }
};

// One block a layer.
template <class T>
struct RankGradient {
  Bonds bonds;
  const T *ranks, *layer_weight;
  const StepScalars* step;
  const RankSums* sums;
  const StepResults* results;
  T* grad;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const RankPush push{results->rho_weight, sums->count, sums->totals.live_slope};
    if (!push.any(*step)) return;
    for (int64_t layer = g.block(); layer < bonds.layers; layer += g.blocks()) {
      if (layer_weight[layer] == T(0) || !push.reaches(bonds, layer, *step)) continue;
      const int begin = bonds.bond_begin[bonds.first(layer)], end = bonds.bond_begin[bonds.last(layer)];
      for (int b = begin + g.thread(), bond = bonds.first(layer); b < end; b += g.threads()) {
        while (b >= bonds.bond_begin[bond + 1]) ++bond;
        const double size = push.size(bonds, layer, bond, static_cast<double>(layer_weight[layer]), *step);
        if (const double add = push.of_entry(bonds, bond, static_cast<double>(ranks[b]), size, *step); add != 0)
          grad[b] = static_cast<T>(static_cast<double>(grad[b]) + add);
      }
    }
  }
};

// partial[piece] = sum of squares of a piece, one block each; then one block adds them to the results.
template <class T>
struct SquaresOfPiece {
  int64_t count, pieces;
  const T* x;
  double* partial;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t piece = g.block(); piece < pieces; piece += g.blocks()) {
      const Range range = Range{0, count}.piece(piece, pieces);
      double sum = 0;
      for (int64_t i = range.begin + g.thread(); i < range.end; i += g.threads())
        sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      sum = g.reduce(sum, Sum{});
      if (g.thread() == 0) partial[piece] = sum;
    }
  }
};
struct AddSquares {
  int64_t pieces;
  const double* partial;
  StepResults* results;
  bool of_gradients;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    double sum = 0;
    for (int64_t piece = g.thread(); piece < pieces; piece += g.threads()) sum += partial[piece];
    sum = g.reduce(sum, Sum{});
    if (g.thread() == 0) (of_gradients ? results->grad_norm2 : results->core_norm2) += sum;
  }
};

template <class T>
struct CorePenalty {
  T* dw;
  const T* w;
  const StepScalars* step;
  KERNEL void operator()(int64_t i) const {
    if (step->paper != 0 && step->beta != 0) dw[i] += static_cast<T>(2 * step->beta) * w[i];
  }
};

// ---- the ops --------------------------------------------------------------------------------------------------------

template <class M>
void GpuOps<M>::body(const op::RankMask& args) {
  begin(args, shape_of_list(args.all, [](const RankMaskArgs& p) { return p.u.count(); }));
  by_float_type(args.all[0].u, [&](auto type) {
    using T = decltype(type);
    launch_lists(machine_, MaskList<T>{scalars_in(args.step), {}}, args.all, kBlock, 0, [](const RankMaskArgs& p) {
      return std::pair{
          MaskEntry<T>{p.e.data<T>(), p.u.data<T>(), p.d.data<T>(), p.u.count(), p.d.count(), 0, of_fours(4, p.e.data<T>(), p.u.data<T>())},
          ceil_div(p.u.count(), kListPiece)};
    });
  });
}

template <class M>
void GpuOps<M>::body(const op::RankMaskBackward& args) {
  begin(args, shape_of_list(args.all, [](const RankMaskBackwardArgs& p) { return p.u.count(); }));
  by_float_type(args.all[0].u, [&](auto type) {
    using T = decltype(type);
    using Entry = MaskGradientEntry<T>;
    const auto rows_of = [](const RankMaskBackwardArgs& p) { return p.u.count() / std::max<int64_t>(p.d.count(), 1); };
    int64_t count = 0;
    for (const RankMaskBackwardArgs& p : args.all) count += Entry::row_pieces(rows_of(p)) * p.d.count();
    T *const partial = machine_.template scratch<T>(count), *next = partial;
    launch_lists(
        machine_, MaskGradientList<T>{scalars_in(args.step), {}}, args.all, kBlock, kBlock * sizeof(T), [&](const RankMaskBackwardArgs& p) {
          const Entry entry{p.du.data<T>(), p.dd.data<T>(), p.de.data<T>(), p.u.data<T>(), p.d.data<T>(), next, rows_of(p), p.d.count(), 0};
          const int64_t pieces = Entry::row_pieces(entry.rows);
          next += pieces * entry.r;
          return std::pair{entry, pieces * entry.strips()};
        });
    next = partial;
    launch_lists(machine_, RankGradientList<T>{scalars_in(args.step), {}}, args.all, kWarp, 0, [&](const RankMaskBackwardArgs& p) {
      const RankGradientEntry<T> entry{p.dd.data<T>(), p.d.data<T>(), next, Entry::row_pieces(rows_of(p)), p.d.count(), 0};
      next += entry.row_pieces * entry.count;
      return std::pair{entry, entry.row_pieces > 1 ? ceil_div(entry.count, kListPiece) : 0};
    });
  });
}

// The table's pointers, with counts and norms in scratch; empty for an empty table.
template <class Machine>
Bonds bonds_in(Machine& machine, const RankTable& table) {
  if (!table.ranks) return {};
  const int64_t bonds = table.bond_begin.count() - 1;
  Bonds out{.layers = table.layer_bond.count() - 1,
            .bond_begin = table.bond_begin.data<int>(),
            .layer_bond = table.layer_bond.data<int>(),
            .modes = table.mode_sizes.data<int>(),
            .live = machine.template scratch<double>(3 * bonds)};
  out.norm = out.live + bonds;
  out.weak = out.norm + bonds;
  return out;
}

template <class T, class Machine>
RankSums* look_at_ranks(Machine& machine, const Bonds& bonds, const RankTable& table, const StepScalars* step, StepResults* results) {
  RankSums* sums = machine.template scratch<RankSums>(1);
  const int count = table.ranks ? static_cast<int>(table.bond_begin.count() - 1) : 0;
  machine.launch({1, kBlock, RankObjective<T>::shared_bytes(count)},
                 RankObjective<T>{bonds, count, count > 0 ? table.ranks.data<T>() : nullptr, step, sums, results});
  return sums;
}

template <class M>
void GpuOps<M>::body(const op::RankObjective& args) {
  begin(args, args.table.ranks.shape());
  const Bonds bonds = bonds_in(machine_, args.table);
  by_float_type(args.table.ranks, [&](auto type) {
    look_at_ranks<decltype(type)>(machine_, bonds, args.table, scalars_in(args.step), results_in(args.results));
  });
}

template <class M>
void GpuOps<M>::body(const op::RankObjectiveBackward& args) {
  begin(args, args.table.ranks.shape());
  const Bonds bonds = bonds_in(machine_, args.table);
  by_float_type(args.dranks, [&](auto type) {
    using T = decltype(type);
    const RankSums* sums = look_at_ranks<T>(machine_, bonds, args.table, scalars_in(args.step), nullptr);
    machine_.launch(over_items(bonds.layers, kBlock),
                    RankGradient<T>{bonds, args.table.ranks.data<T>(), args.table.layer_weight.data<T>(), scalars_in(args.step), sums,
                                    results_in(args.results), args.dranks.data<T>()});
  });
}

template <class M>
void GpuOps<M>::body(const op::SumOfSquares& args) {
  begin(args, args.x.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const int64_t pieces = std::clamp<int64_t>(ceil_div(args.x.count(), 8 * kBlock), 1, 1024);
    double* partial = machine_.template scratch<double>(pieces);
    machine_.launch(over_items(pieces, kBlock), SquaresOfPiece<T>{args.x.count(), pieces, args.x.data<T>(), partial});
    machine_.launch({1, kBlock}, AddSquares{pieces, partial, results_in(args.results), args.of_gradients});
  });
}

template <class M>
void GpuOps<M>::body(const op::CorePenaltyBackward& args) {
  begin(args, args.w.shape());
  by_float_type(args.w, [&](auto type) {
    using T = decltype(type);
    each(args.w.count(), CorePenalty<T>{args.dw.data<T>(), args.w.data<T>(), scalars_in(args.step)});
  });
}

}  // namespace comera::gpu
