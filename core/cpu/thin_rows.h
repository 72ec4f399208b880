// Products with a short inner side inside a row-wise op (products.h: ThinProduct), in tiles of rows that stay in cache.
#pragma once
#include <algorithm>
#include <optional>
#include <type_traits>

#include "core/base/rounding.h"
#include "core/cpu/register_tile.h"
#include "core/cpu/small_product.h"
#include "core/cpu/thread_pool.h"
#include "core/ops/products.h"
#include "core/ops/workspace.h"

namespace comera {
namespace {

// Rows of t r, used as soon as they are computed.
template <class T>
class ThinRows {
 public:
  static constexpr int64_t kRows = 24, kColumns = 256;  // of a tile: a multiple of the register tile's height, and of its width

  // Without a product nothing is taken.
  ThinRows(const std::optional<ThinProduct>& product, Workspace::Call& memory) : product_(product) {
    if (product) packed_ = memory.take<T>(chunks() * terms() * kColumns);
  }

  // Before the first row; r by chunks of columns, each as (A, kColumns).
  void pack(ThreadPool& pool) {
    if (!product_) return;
    const Mat& r = product_->r;
    const ShortOf<T> from{r.data<T>(), product_->transpose_r ? 1 : r.ld, product_->transpose_r ? r.ld : 1};
    pool.parallel_for(chunks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t first = chunk * kColumns, count = std::min(kColumns, columns() - first);
        comera::pack(packed_ + chunk * terms() * kColumns, kColumns, from, 0, terms(), first, count);
      }
    });
  }

  // body(row, first column, columns, values) for rows [begin, end), in pieces that belong to one row.
  template <class Body>
  void each_piece(int64_t begin, int64_t end, const Body& body) const {
    alignas(64) T tile[kRows * kColumns];
    const Mat& t = product_->t;
    for (int64_t first = 0; first < columns(); first += kColumns) {
      const int64_t count = std::min(kColumns, columns() - first), rows = end - begin;
      multiply(tile, t.data<T>() + begin * t.ld, t.ld, rows, packed_ + first * terms(), count);
      for (int64_t row = 0; row < rows; ++row) body(begin + row, first, count, tile + row * kColumns);
    }
  }

 private:
  int64_t terms() const { return product_->t.cols; }
  int64_t columns() const { return product_->transpose_r ? product_->r.rows : product_->r.cols; }
  int64_t chunks() const { return ceil_div(columns(), kColumns); }

  void multiply(T* tile, const T* t, int64_t ld, int64_t rows, const T* r, int64_t count) const {
    if constexpr (std::is_same_v<T, float> && kUsable) {
      product({t, ld, 1, r, kColumns, terms()}, rows, ceil_div(count, kLanes), tile, kColumns, false);
    } else {
      std::fill(tile, tile + rows * kColumns, T(0));
      SmallProduct<T>{rows, count, terms(), t, ld, 1, r, kColumns, tile, kColumns}.run();
    }
  }

  const std::optional<ThinProduct>& product_;
  T* packed_ = nullptr;
};

// u (T, A) = d r^T of rows d (T, D) that have just been computed.
template <class T>
class ThinOfRows {
 public:
  ThinOfRows(const Mat& u, const Mat& r, Workspace::Call& memory) : u_(u), r_(r), packed_(memory.take<T>(r.cols * width_)) {}
  void pack(ThreadPool& pool) {
    constexpr int64_t kDepth = 256;
    pool.parallel_for(ceil_div(r_.cols, kDepth), 1, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kDepth, last = std::min(r_.cols, end * kDepth);
      comera::pack(packed_ + first * width_, width_, ShortOf<T>{r_.data<T>(), 1, r_.ld}, first, last - first, 0, r_.rows);
    });
  }
  // Rows [begin, end), at most kRows: those of `d`, whose first is row 0.
  void make(int64_t begin, int64_t end, const T* d) const {
    const int64_t columns = r_.cols;
    T* to = u_.data<T>() + begin * u_.ld;
    if constexpr (std::is_same_v<T, float> && kUsable) {
      alignas(64) T tile[ThinRows<T>::kRows * kPanel];
      for (int64_t first = 0; first < width_; first += kPanel) {
        const int64_t count = std::min(kPanel, width_ - first), used = std::min(count, r_.rows - first);
        product({d + begin * columns, columns, 1, packed_ + first, width_, columns}, end - begin, count / kLanes, tile, kPanel, false);
        for (int64_t row = 0; row < end - begin; ++row) std::copy_n(tile + row * kPanel, used, to + row * u_.ld + first);
      }
    } else {
      for (int64_t row = 0; row < end - begin; ++row) std::fill_n(to + row * u_.ld, r_.rows, T(0));
      SmallProduct<T>{end - begin, r_.rows, columns, d + begin * columns, columns, 1, packed_, width_, to, u_.ld}.run();
    }
  }

 private:
  const Mat u_, r_;
  const int64_t width_ = round_up(r_.rows, int64_t{kLanes});  // r^T as (D, width)
  T* const packed_;
};

}  // namespace
}  // namespace comera
