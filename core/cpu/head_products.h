// Products of attention for one sequence and head: n tokens, w columns of keys or of values. In floats by register tiles; rows that several
// heads share are transposed once. Else by BLAS.
#pragma once
#include <type_traits>

#include "core/base/rounding.h"
#include "core/cpu/blas.h"
#include "core/cpu/register_tile.h"

namespace comera {
namespace {

// (w, n) from (n, w), times a factor, for the tokens and the head for which it was made last.
template <class T>
struct TransposedRows {
  T* data = nullptr;
  const T* of = nullptr;
  int64_t tokens = 0;
};
// Of a thread, while it computes one pair after another.
template <class T>
struct HeadMemory {
  TransposedRows<T> transposed;
  T *rows, *sums;  // (n, w padded to whole vectors)
};

template <class T>
class HeadProducts {
 public:
  // `padded`: rows of scores are padded to whole vectors. `causal`: of matrices (n, n) only entries up to the diagonal are made and used;
  // later entries must be 0 or as across() left them.
  HeadProducts(int64_t width, int64_t longest, bool padded, bool causal)
      : width_(width),
        padded_width_(round_up(width, kLanes)),
        transposed_(width * round_up(longest, 16)),
        rows_(longest * padded_width_),
        causal_(causal),
        tiles_(std::is_same_v<T, float> && kUsable && padded && longest >= kShortest && width <= kWidest) {}

  int64_t room() const { return tiles_ ? transposed_ + 2 * rows_ : 0; }  // entries of a thread's memory
  HeadMemory<T> memory(T* at) const {
    if (!tiles_) return {};
    return {{at}, at + transposed_, at + transposed_ + rows_};
  }

  // out (n, n) = factor x rows^T of x (n, w) and rows (n, w).
  void across(T* out, int64_t ldo, int64_t n, T factor, const T* x, int64_t ldx, const T* rows, int64_t ld, HeadMemory<T>& memory) const {
    if constexpr (std::is_same_v<T, float>)
      if (tiles_ && n >= kShortest) {
        const int64_t columns = round_up(n, kLanes);
        TransposedRows<T>& transposed = memory.transposed;
        if (transposed.of != rows || transposed.tokens != n) {
          pack(transposed.data, columns, {rows, 1, ld}, 0, width_, 0, n);
          for (int64_t i = 0; i < width_ * columns; ++i) transposed.data[i] *= factor;
          transposed.of = rows;
          transposed.tokens = n;
        }
        return each_block(n, [&](int64_t first, int64_t end) {
          const int64_t vectors = causal_ ? ceil_div(end, kLanes) : columns / kLanes;
          product({x + first * ldx, ldx, 1, transposed.data, columns, width_}, end - first, vectors, out + first * ldo, ldo, false);
        });
      }
    blas::gemm(false, true, n, n, width_, factor, x, ldx, rows, ld, T(0), out, ldo);
  }
  // out (n, w) = a x of a (n, n), or of its transpose where `transpose`, and x (n, w); or += where `add`.
  void along(T* out, int64_t ldo, int64_t n, const T* a, int64_t lda, bool transpose, const T* x, int64_t ldx, bool add,
             const HeadMemory<T>& memory) const {
    if constexpr (std::is_same_v<T, float>)
      if (tiles_ && n >= kShortest) {
        const bool whole = width_ == padded_width_;
        if (!whole) pack(memory.rows, padded_width_, {x, ldx, 1}, 0, n, 0, width_);
        const T* from = whole ? x : memory.rows;
        T* to = whole ? out : memory.sums;
        const int64_t from_step = whole ? ldx : padded_width_, to_step = whole ? ldo : padded_width_;
        each_block(n, [&](int64_t first, int64_t end) {
          const int64_t begin = causal_ && transpose ? first : 0, last = causal_ && !transpose ? end : n;  // of terms that are not 0
          const T* part = transpose ? a + begin * lda + first : a + first * lda;
          product({part, transpose ? 1 : lda, transpose ? lda : 1, from + begin * from_step, from_step, last - begin}, end - first,
                  padded_width_ / kLanes, to + first * to_step, to_step, whole && add);
        });
        for (int64_t i = 0; i < n && !whole; ++i)
          for (int64_t j = 0; j < width_; ++j) out[i * ldo + j] = to[i * to_step + j] + (add ? out[i * ldo + j] : T(0));
        return;
      }
    blas::gemm(transpose, false, n, width_, n, T(1), a, lda, x, ldx, add ? T(1) : T(0), out, ldo);
  }

 private:
  static constexpr int64_t kShortest = 48;  // tokens from which transposing keys pays
  static constexpr int64_t kWidest = 256;
  // body(first, end) for rows of a causal matrix, a multiple of every register tile's height at once; of another one for all.
  template <class Body>
  void each_block(int64_t n, const Body& body) const {
    constexpr int64_t kRows = 48;
    if (!causal_) return body(0, n);
    for (int64_t first = 0; first < n; first += kRows) body(first, std::min(first + kRows, n));
  }

  const int64_t width_, padded_width_;
  const int64_t transposed_, rows_;  // entries of one of each
  const bool causal_, tiles_;
};

}  // namespace
}  // namespace comera
