// Three loops around one register tile (register_tile.h), sum[r][v] += a(r, p) * b(p, v) over p:
//   short_depth   k is short: a = rows of A in place, b = panels of columns of B
//   wide_rows     one short side; the wide operand has k fast: a = its rows in place, b = the short operand, packed
//   wide_columns  one short side; the wide operand has k slow: b = its columns, a panel packed at a time,
//                 a = the short operand in place
// Every entry of C is summed over p in one order by one thread, so it does not depend on the number of threads.
#include "core/cpu/skinny_gemm.h"

#include <algorithm>
#include <utility>

#include "core/base/rounding.h"
#include "core/cpu/register_tile.h"

namespace comera {
namespace {

constexpr double kGrainFlops = 250e3;  // a piece for a thread: a few microseconds

// With AVX-512 n up to kLongestShort is short, too, where m is longer and the product is long enough to pack it: measured against OpenBLAS
// on an Intel Xeon. Longer ones gain as much while their operands are in a cache, and lose in a training step.
constexpr int64_t kLongestShort = kMaxVectors < 4 ? kSkinny : 128, kLeastTerms = 16'000'000;  // m n k

bool is_short(int64_t m, int64_t n, int64_t k) {
  return std::min(m, n) <= kSkinny || (n <= std::min(m, kLongestShort) && m * n * k >= kLeastTerms);
}

int64_t grain_of(double flops) { return std::max<int64_t>(1, static_cast<int64_t>(kGrainFlops / std::max(flops, 1.0))); }

// ---- what becomes of a finished tile ------------------------------------------------------------------------------
struct Sink {
  float* c;
  int64_t ldc;
  float alpha, beta;
  bool transposed;  // tile (i, j) goes to C (j, i)

  bool direct() const { return !transposed && alpha == 1 && (beta == 0 || beta == 1); }

  // tile (rows x columns, row step ldt) lies at (row, column) of the untransposed result.
  void put(const float* tile, int64_t ldt, int64_t rows, int64_t columns, int64_t row, int64_t column) const {
    const int64_t outer = transposed ? columns : rows, inner = transposed ? rows : columns;
    const int64_t tile_outer = transposed ? 1 : ldt, tile_inner = transposed ? ldt : 1;
    float* to = transposed ? c + column * ldc + row : c + row * ldc + column;
    for (int64_t i = 0; i < outer; ++i, to += ldc, tile += tile_outer)
      for (int64_t j = 0; j < inner; ++j) {
        const float value = alpha * tile[j * tile_inner];
        to[j] = beta == 0 ? value : value + beta * to[j];  // beta 0 never reads C
      }
  }
};

// ---- k is short ---------------------------------------------------------------------------------------------------
void short_depth(ThreadPool& pool, const SkinnyGemm& g) {
  const int64_t panels = ceil_div(g.n, kPanel);
  const Short b{g.b, g.tb ? 1 : g.ldb, g.tb ? g.ldb : 1};
  // Whole panels of an untransposed B are read in place.
  const int64_t first_packed = g.tb ? 0 : g.n / kPanel;
  float* packed = nullptr;
  if (first_packed < panels) {
    packed = pool.scratch_of<float>((panels - first_packed) * g.k * kPanel);
    pool.parallel_for(panels - first_packed, grain_of(16.0 * static_cast<double>(kPanel * g.k)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = (first_packed + i) * kPanel;
        pack(packed + i * g.k * kPanel, kPanel, b, 0, g.k, column, std::min(kPanel, g.n - column));
      }
    });
  }
  const Sink sink{g.c, g.ldc, g.alpha, g.beta, false};
  const int64_t a_row = g.ta ? 1 : g.lda, a_step = g.ta ? g.lda : 1;
  const auto block = [&](int64_t panel, int64_t row_begin, int64_t row_end) {
    const int64_t column = panel * kPanel, columns = std::min(kPanel, g.n - column);
    const int vectors = static_cast<int>(ceil_div(columns, kLanes)), step = rows_of(vectors);
    const bool in_place = panel < first_packed;
    const float* from = in_place ? g.b + column : packed + (panel - first_packed) * g.k * kPanel;
    const bool direct = sink.direct() && columns % kLanes == 0;
    alignas(64) float tile[kMaxRows * kPanel];
    for (int64_t row = row_begin; row < row_end; row += step) {
      const int64_t rows = std::min<int64_t>(step, row_end - row);
      const Tile work{g.a + row * a_row, a_row, a_step, from, in_place ? g.ldb : kPanel, g.k};
      const Multiply run = kTable.at[vectors][rows];
      if (direct) {
        // Where the tile goes is fetched while it is computed: a large C would else make the stores wait for memory.
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t v = 0; v < columns; v += kLanes) __builtin_prefetch(g.c + (row + r) * g.ldc + column + v, 1);
        run(work, g.c + row * g.ldc + column, g.ldc, g.beta == 1);
      } else {
        run(work, tile, kPanel, false);
        sink.put(tile, kPanel, rows, columns, row, column);
      }
    }
  };
  // A stripe of rows stays in L1 while the panels pass, and C is written nearly in order.
  constexpr int64_t kStripe = 48;  // multiple of every tile height
  if (g.m >= g.n) {
    const int64_t stripes = ceil_div(g.m, kStripe);
    const double flops = 2.0 * static_cast<double>(kStripe) * static_cast<double>(g.n) * static_cast<double>(g.k);
    pool.parallel_for(stripes, grain_of(flops), [&](int64_t begin, int64_t end) {
      for (int64_t stripe = begin; stripe < end; ++stripe)
        for (int64_t panel = 0; panel < panels; ++panel) block(panel, stripe * kStripe, std::min(g.m, (stripe + 1) * kStripe));
    });
  } else {
    const double flops = 2.0 * static_cast<double>(g.m) * static_cast<double>(kPanel) * static_cast<double>(g.k);
    pool.parallel_for(panels, grain_of(flops), [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) block(panel, 0, g.m);
    });
  }
}

// ---- one short side -----------------------------------------------------------------------------------------------
// wide (rows x k, row step ld) times the short operand (k x side).
void wide_rows(ThreadPool& pool, const float* wide, int64_t ld, int64_t rows, int64_t k, const Short& s, int64_t side, Sink sink) {
  // As few panels as there can be, of nearly equal width: no register of a tile is empty but in the last vector.
  const int64_t panel_width = round_up(ceil_div(side, ceil_div(side, kPanel)), kLanes), panels = ceil_div(side, panel_width);
  // The packed operand stays in the second-level cache: 256 KiB of a panel at a time.
  const int64_t max_depth = (int64_t{64} << 10) / panel_width, passes = ceil_div(k, max_depth), depth = ceil_div(k, passes);
  float* packed = pool.scratch_of<float>(panels * panel_width * k);
  constexpr int64_t kPackRows = 256;
  for (int64_t panel = 0; panel < panels; ++panel) {
    const int64_t j0 = panel * panel_width, count = std::min(panel_width, side - j0);
    float* to = packed + panel * panel_width * k;
    pool.parallel_for(ceil_div(k, kPackRows), grain_of(16.0 * static_cast<double>(kPackRows * count)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        pack(to + i * kPackRows * panel_width, panel_width, s, i * kPackRows, std::min(kPackRows, k - i * kPackRows), j0, count);
    });
  }
  const int64_t step = rows_of(static_cast<int>(panel_width / kLanes)), blocks = ceil_div(rows, step);
  const double flops = 2.0 * static_cast<double>(step * side) * static_cast<double>(k);
  pool.parallel_for(blocks, grain_of(flops), [&](int64_t begin, int64_t end) {
    alignas(64) float tile[kMaxRows * kPanel];
    for (int64_t p0 = 0; p0 < k; p0 += depth) {
      Sink to = sink;
      if (p0 > 0) to.beta = 1;
      for (int64_t block = begin; block < end; ++block)
        for (int64_t panel = 0; panel < panels; ++panel) {
          const int64_t row = block * step, count = std::min(step, rows - row), j0 = panel * panel_width;
          const int64_t columns = std::min(panel_width, side - j0);
          const Tile work{wide + row * ld + p0, ld, 1, packed + (panel * k + p0) * panel_width, panel_width, std::min(depth, k - p0)};
          kTable.at[ceil_div(columns, kLanes)][count](work, tile, kPanel, false);
          to.put(tile, kPanel, count, columns, row, j0);
        }
    }
  });
}

// wide (k x columns, row step ld), transposed, times the short operand (k x side); tile rows are the short side.
template <int kVectors>
void wide_columns(ThreadPool& pool, const float* wide, int64_t ld, int64_t columns, int64_t k, const Short& s, int64_t side, Sink sink) {
  constexpr int64_t kWidth = kVectors * kLanes;
  // A packed panel of at most 16 KiB leaves L1 room for the rest. The same for all widths: it decides the order of sums.
  constexpr int64_t kDepth = kMaxVectors < 4 ? 128 : 64;
  const int64_t panels = ceil_div(columns, kWidth);
  const double flops = 2.0 * static_cast<double>(kWidth * side) * static_cast<double>(k);
  float* sums = pool.scratch_of<float>(pool.workers_for(panels, grain_of(flops)) * side * kWidth);
  pool.parallel_for_workers(panels, grain_of(flops), [&](int64_t worker, int64_t begin, int64_t end) {
    alignas(64) float panel[kDepth * kWidth];
    float* const sum = sums + worker * side * kWidth;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i * kWidth, width = std::min(kWidth, columns - column);
      for (int64_t p0 = 0; p0 < k; p0 += kDepth) {
        const int64_t depth = std::min(kDepth, k - p0);
        const float* from = wide + p0 * ld + column;
        if (width == kWidth) {
          for (int64_t p = 0; p < depth; ++p, from += ld)
            for (int v = 0; v < kVectors; ++v) store(panel + p * kWidth + v * kLanes, load(from + v * kLanes));
        } else {
          pack(panel, kWidth, {wide, ld, 1}, p0, depth, column, width);
        }
        // What is packed next is fetched meanwhile, a share before each tile: its rows are on different pages, which
        // no hardware prefetcher follows.
        const bool turn = p0 + kDepth >= k;
        const float* next = turn ? wide + column + kWidth : wide + (p0 + kDepth) * ld + column;
        const int64_t next_depth = turn ? (i + 1 < panels ? std::min(kDepth, k) : 0) : std::min(kDepth, k - p0 - kDepth);
        for (int64_t j = 0; j < side; j += rows_of(kVectors)) {
          const int64_t rows = std::min<int64_t>(rows_of(kVectors), side - j);
          for (int64_t p = next_depth * j / side; p < next_depth * (j + rows) / side; ++p)
            for (int v = 0; v < kVectors; ++v) __builtin_prefetch(next + p * ld + v * kLanes);
          const Tile work{s.data + p0 * s.p_step + j * s.j_step, s.j_step, s.p_step, panel, kWidth, depth};
          kTable.at[kVectors][rows](work, sum + j * kWidth, kWidth, p0 > 0);
        }
      }
      sink.put(sum, kWidth, side, width, 0, column);
    }
  });
}

// With panels of the width that leaves the slowest thread the least to do.
void wide_columns(ThreadPool& pool, const float* wide, int64_t ld, int64_t columns, int64_t k, const Short& s, int64_t side, Sink sink) {
  const int64_t vectors = ceil_div(columns, kLanes), threads = pool.threads();
  const auto slowest = [&](int64_t width) { return ceil_div(ceil_div(vectors, width), threads) * width; };
  if constexpr (kMaxVectors == 4) {
    if (slowest(4) <= std::min(slowest(3), slowest(2))) return wide_columns<4>(pool, wide, ld, columns, k, s, side, sink);
    if (slowest(3) <= slowest(2)) return wide_columns<3>(pool, wide, ld, columns, k, s, side, sink);
  }
  wide_columns<2>(pool, wide, ld, columns, k, s, side, sink);
}

}  // namespace

bool skinny_gemm(ThreadPool& pool, const SkinnyGemm& g) {
  if (!kUsable || g.alpha == 0 || std::min({g.m, g.n, g.k}) <= 0) return false;
  if (g.m * g.n * g.k <= kLibrarySmall) return false;
  if (g.k <= kSkinny) {
    short_depth(pool, g);
    return true;
  }
  if (!is_short(g.m, g.n, g.k)) return false;
  if (g.n <= g.m) {  // C = wide op(A) times short op(B)
    const Short s{g.b, g.tb ? 1 : g.ldb, g.tb ? g.ldb : 1};
    if (g.ta)
      wide_columns(pool, g.a, g.lda, g.m, g.k, s, g.n, {g.c, g.ldc, g.alpha, g.beta, true});
    else
      wide_rows(pool, g.a, g.lda, g.m, g.k, s, g.n, {g.c, g.ldc, g.alpha, g.beta, false});
  } else {  // C^T = wide op(B)^T times short op(A)^T
    const Short s{g.a, g.ta ? g.lda : 1, g.ta ? 1 : g.lda};
    if (g.tb)
      wide_rows(pool, g.b, g.ldb, g.n, g.k, s, g.m, {g.c, g.ldc, g.alpha, g.beta, true});
    else
      wide_columns(pool, g.b, g.ldb, g.n, g.k, s, g.m, {g.c, g.ldc, g.alpha, g.beta, false});
  }
  return true;
}

}  // namespace comera
