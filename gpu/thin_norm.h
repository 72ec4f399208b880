// Norms with products of a short inner side A (norm.h: thin, onward), in TF32 on tensor cores: f32 under tf32, bf16 and fp8, for A of up to
// 96 and rows of up to 1024 numbers, a multiple of 32. A block takes 16 rows, and each of its warps computes some chunks of their columns.
// They stay in registers (strip.h), so no product goes through memory.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "core/ops/small_floats.h"
#include "gpu/column_sums.h"
#include "gpu/strip.h"

namespace comera::gpu {

// One warp of a block, as a group that has strips of its own.
template <class Group>
struct WarpOf {
  const Group& g;
  KERNEL int thread() const { return g.thread() % kWarp; }
  KERNEL int threads() const { return kWarp; }
  KERNEL void note_strip() const { g.note_strip(); }
};

// An array of strips, which have no default constructor.
template <class Strip, int kCount>
struct Held {
  Strip strips[kCount];
  template <class Warp, int... i>
  KERNEL Held(const Warp& warp, int rows, std::integer_sequence<int, i...>) : strips{((void)i, Strip(warp, rows))...} {}
  template <class Warp>
  KERNEL Held(const Warp& warp, int rows) : Held(warp, rows, std::make_integer_sequence<int, kCount>{}) {}
};

struct ThinMatrix {
  const float* x = nullptr;
  int64_t ld = 0;
  bool fours = false;  // rows are read by 16 bytes
  ThinMatrix() = default;
  explicit ThinMatrix(const Mat& m) : x(m.data<float>()), ld(m.ld), fours(m.ld % 4 == 0 && of_fours(m.cols, x)) {}
};

// What both directions share: the sizes, and tiles of t (rows, A) and of r. Row i of a tile of r is column i of r, with kAcross row i.
// kThin: A at most. kOut: columns at most of a product of the results, 0 without one.
template <int kThin, int kOut, bool kAcross>
struct ThinNorm {
  static constexpr bool kAsLaunched = true;  // each warp has columns of its own
  static constexpr int kWarps = 8, kThreads = kWarps * kWarp, kRows = 16, kLine = kThin + 4;
  static constexpr int kMostColumns = 1024, kChunk = kThin > 64 ? 16 : 32, kHeld = kMostColumns / kWarps / kChunk;
  static constexpr int kLoaders = kChunk * kThin / 16;  // a thread loads four fours at a time: more would not fit its registers
  static constexpr int kRoom = kChunk * (std::max(kThin, kOut) + 4);  // floats of a warp
  static constexpr int64_t kShared = (kRows * kLine + kWarps * (kRoom + 2 * kRows)) * int64_t{sizeof(float)};
  int64_t rows, columns;
  int terms;
  ThinMatrix t, r;

  HD int64_t tiles() const { return ceil_div(rows, kRows); }
  HD int chunks() const { return static_cast<int>(columns / kChunk); }
  template <class Group>
  KERNEL static float* of_t(Group& g) {
    return g.template shared<float>();
  }
  template <class Group>
  KERNEL static float* of_r(Group& g) {
    return of_t(g) + kRows * kLine + g.thread() / kWarp * kRoom;
  }
  // Two numbers of each row from each warp.
  template <class Group>
  KERNEL static float* shares(Group& g) {
    return of_t(g) + kRows * kLine + kWarps * kRoom;
  }

  // strips[i] = t r for 16 rows from `first` on and chunk warp + i kWarps; calls body(strip, i, first column) for each.
  template <class Group, class Strip, class Body>
  KERNEL void each_chunk(Group& g, Strip (&strips)[kHeld], int64_t first, const Body& body) const {
    const WarpOf<Group> warp{g};
    const int rest = rows - first < kRows ? static_cast<int>(rows - first) : kRows;
    load_operand<kRows, kThin, kRows * kThin / 4>(g, of_t(g), t.x + first * t.ld, t.ld, rest, terms, t.fours);
    UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int chunk = g.thread() / kWarp + i * kWarps;
      if (i * kWarps >= chunks()) continue;
      const int64_t column = int64_t{chunk} * kChunk;
      if (chunk < chunks()) {
        if (kAcross)
          load_operand<kChunk, kThin, kLoaders>(warp, of_r(g), r.x + column * r.ld, r.ld, kChunk, terms, r.fours);
        else
          load_transposed<kChunk, kThin, kLoaders>(warp, of_r(g), r.x + column, r.ld, terms, columns - column, r.fours);
      }
      g.sync();
      if (chunk < chunks()) {
        strips[i].template dots<kThin, kLine>(of_t(g), of_r(g));
        body(strips[i], i, column);
      }
      g.sync();
    }
  }
  // body(strip, i, first column) again, for the chunks that the warp holds.
  template <class Group, class Strip, class Body>
  KERNEL void each_held_chunk(Group& g, Strip (&strips)[kHeld], const Body& body) const {
    UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int chunk = g.thread() / kWarp + i * kWarps;
      if (chunk < chunks()) body(strips[i], i, int64_t{chunk} * kChunk);
    }
  }
};

// sum = x + branch after dropout, with the branch t r, where sum is not null; y its norm.
template <int kThin>
struct ThinNormForward : ThinNorm<kThin, 0, false> {
  using Base = ThinNorm<kThin, 0, false>;
  using Base::kChunk, Base::kHeld, Base::kRows, Base::kWarps, Base::columns, Base::rows;
  static constexpr int kBlocks = 2;
  const float *x, *gamma, *beta;  // beta and mean serve where centred
  float *y, *sum, *mean, *rstd;   // sum may be null
  float eps;
  bool centred;  // false: RMS norm
  struct Before {
    const float *mean, *rstd, *gamma, *beta;  // rstd null: x is what it is; mean null: of RMS norm
  } before;
  DropoutSite<float> site, after;

  KERNEL Four<float> input(int64_t row, int64_t column) const {
    Four<float> a = four_at(x + row * columns + column);
    if (!before.rstd) return a;
    const Four<float> by = four_at(before.gamma + column), to = before.mean ? four_at(before.beta + column) : Four<float>{};
    const float average = before.mean ? before.mean[row] : 0.0f, inverse = before.rstd[row];
    for (int l = 0; l < 4; ++l) a.v[l] = (a.v[l] - average) * inverse * by.v[l] + to.v[l];
    return a;
  }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    using Strip = typename Group::template Strip<kChunk, false>;
    using Rows = typename Group::Rows;
    const WarpOf<Group> warp{g};
    const DropoutDraws<float> draws(site);
    for (int64_t tile = g.block(); tile < this->tiles(); tile += g.blocks()) {
      const int64_t first = tile * kRows;
      Held<Strip, kHeld> held(warp, kRows);
      Strip(&strips)[kHeld] = held.strips;
      // Mean and squared distances from it, of the warp's columns.
      Rows average(warp, kRows, 0), squares(warp, kRows, 0);
      this->each_chunk(g, strips, first, [&](Strip& strip, int i, int64_t column) {
        strip.each_four([&](int row, int at, int, Four<float>& a) {
          if (first + row >= rows) return;
          const int64_t index = (first + row) * columns + column + at;
          const Four<float> from = input(first + row, column + at);
          const uint32_t bits = draws.keeps(index);
          for (int l = 0; l < 4; ++l) a.v[l] = from.v[l] + draws.apply(a.v[l], bits, l);
          if (sum) store_four(sum + index, a);
        });
        Rows own(warp, kRows, 0), apart(warp, kRows, 0);
        if (centred) strip.fold(own, Sum{}, [](float a, int) { return a; });
        strip.fold(apart, Sum{}, [&](float a, int slot) {
          const float d = a - own[slot] / kChunk;
          return d * d;
        });
        strip.each_row([&](int, int slot) { add(average[slot], squares[slot], i, own[slot] / kChunk, apart[slot], 1); });
      });
      float* shares = this->shares(g);
      strips[0].each_row(
          [&](int row, int slot) {
            float* own = shares + 2 * (g.thread() / kWarp * kRows + row);
            own[0] = average[slot];
            own[1] = squares[slot];
          },
          true);
      g.sync();
      Rows inverse(warp, kRows, 0);
      strips[0].each_row([&](int row, int slot) {
        float all = 0, squared = 0;
        for (int w = 0, before = 0; w < kWarps && w < this->chunks(); ++w) {
          const int own = (this->chunks() - w + kWarps - 1) / kWarps;
          add(all, squared, before, shares[2 * (w * kRows + row)], shares[2 * (w * kRows + row) + 1], own);
          before += own;
        }
        average[slot] = all;
        inverse[slot] = 1 / std::sqrt(squared / static_cast<float>(columns) + eps);
      });
      strips[0].each_row(
          [&](int row, int slot) {
            if (g.thread() >= kWarp || first + row >= rows) return;
            if (centred) mean[first + row] = average[slot];
            rstd[first + row] = inverse[slot];
          },
          true);
      this->each_held_chunk(g, strips, [&](Strip& strip, int, int64_t column) {
        strip.each_four([&](int row, int at, int slot, Four<float>& a) {
          if (first + row >= rows) return;
          const Four<float> by = four_at(gamma + column + at), to = centred ? four_at(beta + column + at) : Four<float>{};
          for (int l = 0; l < 4; ++l) a.v[l] = (a.v[l] - average[slot]) * inverse[slot] * by.v[l] + to.v[l];
          if (after.on()) DropoutDraws<float>(after).apply_four(a, (first + row) * columns + column + at);
          store_four(y + (first + row) * columns + column + at, a);
        });
      });
      g.sync();
    }
  }

 private:
  // Mean and squares of `chunks` chunks, with those of `more` other chunks added (Chan, Golub, LeVeque 1979). Without centring both means
  // are 0.
  KERNEL static void add(float& mean, float& squares, int chunks, float other_mean, float other_squares, int more) {
    const float delta = other_mean - mean, all = static_cast<float>(chunks + more);
    squares += other_squares + delta * delta * static_cast<float>(kChunk * chunks) * static_cast<float>(more) / all;
    mean += delta * static_cast<float>(more) / all;
  }
};

// dsum, dbranch and its product u where they are not null, of dy + t r^T; and the sums over pieces of the rows that give dgamma and dbeta.
template <int kThin, int kOut>
struct ThinNormBackward : ThinNorm<kThin, kOut, true> {
  using Base = ThinNorm<kThin, kOut, true>;
  using Base::kChunk, Base::kHeld, Base::kRows, Base::kWarps, Base::columns, Base::rows;
  static constexpr int kBlocks = 1;
  const float *dy, *x, *mean, *rstd, *gamma;  // mean serves where centred
  float *dsum, *dbranch;
  int64_t pieces;  // of the tiles
  float* partial;  // (pieces, 2, columns): dgamma and dbeta; where not centred, (pieces, columns): dgamma
  bool centred;    // false: RMS norm
  struct Onward {
    float* u;  // (rows, terms)
    int64_t ld;
    int terms;
    ThinMatrix r;  // (terms, columns)
  } onward;
  DropoutSite<float> site, after;

  template <class Group>
  KERNEL void operator()(Group& g) const {
    const DropoutDraws<float> draws(site);
    for (int64_t piece = g.block(); piece < pieces; piece += g.blocks()) {
      const Range range = Range{0, this->tiles()}.piece(piece, pieces);
      for (int64_t tile = range.begin; tile < range.end; ++tile) one_tile(g, draws, tile * kRows, piece, tile > range.begin);
    }
  }

 private:
  // Of the rows from `first` on; `more`: others of the piece were done before.
  template <class Group>
  KERNEL void one_tile(Group& g, const DropoutDraws<float>& draws, int64_t first, int64_t piece, bool more) const {
    using Strip = typename Group::template Strip<kChunk, false>;
    using Out = typename Group::template Strip<kOut, false>;
    using Rows = typename Group::Rows;
    const WarpOf<Group> warp{g};
    Held<Strip, kHeld> gradient_held(warp, kRows), normal_held(warp, kRows);
    Strip(&gradient)[kHeld] = gradient_held.strips, (&normal)[kHeld] = normal_held.strips;
    Rows of_gradient(warp, kRows, 0), of_both(warp, kRows, 0);  // sums of dy gamma, and of that times the normalised x
    this->each_chunk(g, gradient, first, [&](Strip& strip, int i, int64_t column) {
      Strip& xhat = normal[i];
      xhat.clear();
      strip.each_four(
          [&](int row, int at, int, Four<float>& d, Four<float>& z) {
            if (first + row >= rows) return;
            const int64_t index = (first + row) * columns + column + at;
            const Four<float> other = four_at(dy + index), a = four_at(x + index);
            const float average = centred ? mean[first + row] : 0.0f, inverse = rstd[first + row];
            for (int l = 0; l < 4; ++l) {
              d.v[l] += other.v[l];
              z.v[l] = (a.v[l] - average) * inverse;
            }
            if (after.on()) DropoutDraws<float>(after).apply_four(d, index);
          },
          xhat);
      Strip scaled(warp, kRows);
      scaled.clear();
      scaled.each_four(
          [&](int, int at, int, Four<float>& p, Four<float>& d) {
            const Four<float> by = four_at(gamma + column + at);
            for (int l = 0; l < 4; ++l) p.v[l] = d.v[l] * by.v[l];
          },
          strip);
      if (centred) scaled.fold(of_gradient, Sum{}, [](float a, int) { return a; });
      scaled.each_four(
          [&](int, int, int, Four<float>& p, Four<float>& z) {
            for (int l = 0; l < 4; ++l) p.v[l] *= z.v[l];
          },
          xhat);
      scaled.fold(of_both, Sum{}, [](float a, int) { return a; });
    });
    add_columns(g, gradient, normal, piece, more);
    float* shares = this->shares(g);
    gradient[0].each_row(
        [&](int row, int slot) {
          float* own = shares + 2 * (g.thread() / kWarp * kRows + row);
          own[0] = of_gradient[slot];
          own[1] = of_both[slot];
        },
        true);
    g.sync();
    gradient[0].each_row([&](int row, int slot) {
      float a = 0, b = 0;
      for (int w = 0; w < kWarps; ++w) {
        a += shares[2 * (w * kRows + row)];
        b += shares[2 * (w * kRows + row) + 1];
      }
      of_gradient[slot] = a / static_cast<float>(columns);
      of_both[slot] = b / static_cast<float>(columns);
    });
    Out u(warp, kRows);
    u.clear();
    UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int chunk = g.thread() / kWarp + i * kWarps;
      if (i * kWarps >= this->chunks()) continue;
      const int64_t column = int64_t{chunk} * kChunk;
      if (onward.u && chunk < this->chunks())
        load_transposed<kChunk, kOut, kChunk * kOut / 16>(warp, this->of_r(g), onward.r.x + column, onward.r.ld, onward.terms,
                                                          columns - column, onward.r.fours);
      g.sync();
      if (chunk < this->chunks()) {
        gradient[i].each_four(
            [&](int row, int at, int slot, Four<float>& d, Four<float>& z) {
              if (first + row >= rows) return;
              const int64_t index = (first + row) * columns + column + at;
              const Four<float> by = four_at(gamma + column + at);
              const float inverse = rstd[first + row];
              for (int l = 0; l < 4; ++l) d.v[l] = inverse * (d.v[l] * by.v[l] - of_gradient[slot] - z.v[l] * of_both[slot]);
              store_four(dsum + index, d);
              if (!dbranch) return;
              draws.apply_four(d, index);
              store_four(dbranch + index, d);
              for (float& e : d.v) e = tf32_of(e);
            },
            normal[i]);
        if (onward.u) u.template add<kOut + 4>(gradient[i], this->of_r(g));
      }
      g.sync();
    }
    if (onward.u) add_warps(g, u, first);
    g.sync();
  }

  // u of the tile: what the warps have of it, in their order.
  template <class Group, class Out>
  KERNEL void add_warps(Group& g, Out& u, int64_t first) const {
    constexpr int kTile = kOut + 4;
    static_assert(kRows * kTile <= Base::kRoom);
    float* own = this->of_r(g);
    u.each_four([&](int row, int at, int, Four<float>& a) { four_at(own + row * kTile + at) = a; });
    g.sync();
    const float* rooms = this->of_t(g) + kRows * Base::kLine;
    for (int e = g.thread(); e < kRows * kOut; e += g.threads()) {
      const int row = e / kOut, term = e % kOut;
      if (first + row >= rows || term >= onward.terms) continue;
      float all = 0;
      for (int w = 0; w < kWarps; ++w) all += rooms[w * Base::kRoom + row * kTile + term];
      onward.u[(first + row) * onward.ld + term] = all;
    }
  }
  // partial: for each column the sums over the piece's rows of dy times the normalised x, and of dy. A thread has a column.
  template <class Group, class Strip>
  KERNEL void add_columns(Group& g, Strip (&gradient)[kHeld], Strip (&normal)[kHeld], int64_t piece, bool more) const {
    constexpr int kTile = kChunk + 4;
    static_assert(2 * kRows * kTile <= Base::kRoom, "products of columns lie where r did");
    float *products = this->of_r(g), *gradients = products + kRows * kTile;
    UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int chunk = g.thread() / kWarp + i * kWarps;
      if (i * kWarps >= this->chunks()) continue;
      if (chunk < this->chunks())
        gradient[i].each_four(
            [&](int row, int at, int, Four<float>& d, Four<float>& z) {
              Four<float> product;
              for (int l = 0; l < 4; ++l) product.v[l] = d.v[l] * z.v[l];
              four_at(products + row * kTile + at) = product;
              four_at(gradients + row * kTile + at) = d;
            },
            normal[i]);
      g.sync();
      const int column = g.thread() % kWarp;
      if (chunk < this->chunks() && column < kChunk) {
        float* to = partial + piece * (centred ? 2 : 1) * columns + chunk * kChunk + column;
        float of_gamma = more ? to[0] : 0, of_beta = more && centred ? to[columns] : 0;
        for (int row = 0; row < kRows; ++row) {
          of_gamma += products[row * kTile + column];
          of_beta += gradients[row * kTile + column];
        }
        to[0] = of_gamma;
        if (centred) to[columns] = of_beta;
      }
      g.sync();
    }
  }
};

inline float* floats_of(const Tensor& t) { return t ? t.data<float>() : nullptr; }

// Whether the kernels above serve: of a product of up to `most` terms, and rows of these tensors.
template <class Machine>
bool thin_in_strips(const Machine& machine, const std::optional<ThinProduct>& thin, int64_t most, const Tensor& like,
                    std::initializer_list<Tensor> all) {
  const int64_t columns = like.size(1);
  return thin && thin->t.cols <= most && like.dtype() == DType::f32 && machine.products() != Products::fp32 && columns % 32 == 0 &&
         columns <= ThinNorm<32, 0, false>::kMostColumns &&
         std::all_of(all.begin(), all.end(), [&](const Tensor& t) { return of_fours(columns, floats_of(t)); });
}

template <int kThin, class Machine>
void thin_norm(Machine& machine, const op::NormForward& args) {
  using Body = ThinNormForward<kThin>;
  typename Body::Before before = {};
  if (args.before)
    before = {args.before->beta ? floats_of(args.before->mean) : nullptr, floats_of(args.before->rstd), floats_of(args.before->gamma),
              floats_of(args.before->beta)};
  const Body body{{args.x.size(0), args.x.size(1), static_cast<int>(args.thin->t.cols), ThinMatrix(args.thin->t), ThinMatrix(args.thin->r)},
                  floats_of(args.x),
                  floats_of(args.gamma),
                  floats_of(args.beta),
                  floats_of(args.y),
                  floats_of(args.sum),
                  floats_of(args.mean),
                  floats_of(args.rstd),
                  static_cast<float>(args.eps),
                  static_cast<bool>(args.beta),
                  before,
                  DropoutSite<float>(args.dropout, args.step, args.x.count()),
                  DropoutSite<float>(args.after, args.step, args.x.count())};
  machine.launch({std::min(body.tiles(), kMostBlocks), Body::kThreads, Body::kShared}, body);
}

template <int kThin, int kOut, class Machine>
void thin_norm(Machine& machine, const op::NormBackward& args) {
  using Body = ThinNormBackward<kThin, kOut>;
  const int64_t rows = args.dy.size(0), columns = args.dy.size(1), pieces = std::min(ceil_div(rows, Body::kRows), kMostRowPieces);
  const bool centred{args.mean};
  float* partial = machine.template scratch<float>(pieces * (centred ? 2 : 1) * columns);
  typename Body::Onward onward = {};
  if (const auto& o = args.onward) onward = {o->u.data<float>(), o->u.ld, static_cast<int>(o->r.rows), ThinMatrix(o->r)};
  const Body body{{rows, columns, static_cast<int>(args.thin->t.cols), ThinMatrix(args.thin->t), ThinMatrix(args.thin->r)},
                  floats_of(args.dy),
                  floats_of(args.sum),
                  floats_of(args.mean),
                  floats_of(args.rstd),
                  floats_of(args.gamma),
                  floats_of(args.dsum),
                  floats_of(args.dbranch),
                  pieces,
                  partial,
                  centred,
                  onward,
                  DropoutSite<float>(args.dropout, args.step, args.dy.count()),
                  DropoutSite<float>(args.after, args.step, args.dy.count())};
  machine.launch({std::min(pieces, kMostBlocks), Body::kThreads, Body::kShared}, body);
  if (centred)
    fold_columns<float>(machine, columns, pieces, partial, {floats_of(args.dgamma), floats_of(args.dbeta)});
  else
    fold_columns<float>(machine, columns, pieces, partial, {floats_of(args.dgamma)});
}

// True: done by the kernels above.
template <class Machine>
bool thin_norm_in_strips(Machine& machine, const op::NormForward& args) {
  const Tensor none, &scale = args.before ? args.before->gamma : none, &shift = args.before ? args.before->beta : none;
  if (args.thin && args.thin->transpose_r) return false;
  if (!thin_in_strips(machine, args.thin, 64, args.x, {args.x, args.y, args.sum, args.gamma, args.beta, scale, shift})) return false;
  if (args.thin->t.cols <= 32)
    thin_norm<32>(machine, args);
  else
    thin_norm<64>(machine, args);
  return true;
}
template <class Machine>
bool thin_norm_in_strips(Machine& machine, const op::NormBackward& args) {
  if ((args.thin && !args.thin->transpose_r) || (args.onward && args.onward->r.rows > 64) ||
      !thin_in_strips(machine, args.thin, 96, args.dy, {args.dy, args.sum, args.dsum, args.dbranch, args.gamma}))
    return false;
  const bool short_out = !args.onward || args.onward->r.rows <= 32;
  if (args.thin->t.cols <= 32 && short_out)
    thin_norm<32, 32>(machine, args);
  else if (short_out)
    thin_norm<96, 32>(machine, args);
  else
    thin_norm<96, 64>(machine, args);
  return true;
}

}  // namespace comera::gpu
