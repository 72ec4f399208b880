// Products with E4M3 operands and one scale an operand (METHODS.md 17). A kernel finds the largest entry of each operand;
// another scales, rounds and lays it out as cuBLASLt's 8-bit GEMM needs it: k contiguous, sides padded with zeros to a multiple
// of 16. All of it stays on the device, in scratch.
#pragma once
#include "core/ops/small_floats.h"
#include "gpu/gpu_ops.h"

namespace comera::gpu {

// op(X): `rows` of `k` terms, entry (row, term) at row * row_step + term * term_step; one of the steps is 1.
struct Fp8Operand {
  const float* x;
  int64_t rows, k, row_step, term_step;
  bool whole;  // of_fours() of what lies side by side

  Fp8Operand(const float* x, int64_t rows, int64_t k, int64_t row_step, int64_t term_step)
      : x(x),
        rows(rows),
        k(k),
        row_step(row_step),
        term_step(term_step),
        whole(of_fours(term_step == 1 ? k : rows, x) && (term_step == 1 ? row_step : term_step) % 4 == 0) {}
};

// largest (pieces) = largest |entry| of each piece of the operand; NaN is skipped.
struct Fp8Largest {
  Fp8Operand of;
  int64_t pieces;
  float* largest;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const bool terms_inside = of.term_step == 1;
    const int64_t inside = terms_inside ? of.k : of.rows, step = terms_inside ? of.row_step : of.term_step;
    const int64_t fours = ceil_div(inside, 4), lines = terms_inside ? of.rows : of.k;
    for (int64_t piece = g.block(); piece < pieces; piece += g.blocks()) {
      const Range range = Range{0, lines * fours}.piece(piece, pieces);
      float most = 0;
      for (int64_t i = range.begin + g.thread(); i < range.end; i += g.threads()) {
        const Four<float> values = read_four(of.x + i / fours * step, i % fours * 4, inside, of.whole);
        for (const float value : values.v) most = Largest{}(most, value < 0 ? -value : value);
      }
      most = g.reduce(most, Largest{});
      if (g.thread() == 0) largest[piece] = most;
    }
  }
};

// scales[0] = factor of the entries, scales[kInverse] = its inverse.
struct Fp8Scales {
  static constexpr int kInverse = 4, kCount = 5;  // cuBLASLt refuses products whose scales are not aligned to 16 bytes
  int64_t pieces;
  const float* largest;
  float* scales;  // (kCount)
  template <class Group>
  KERNEL void operator()(Group& g) const {
    float most = 0;
    for (int64_t i = g.thread(); i < pieces; i += g.threads()) most = Largest{}(most, largest[i]);
    most = g.reduce(most, Largest{});
    if (g.thread() == 0) {
      scales[0] = e4m3_scale(most);
      scales[kInverse] = 1 / scales[0];
    }
  }
};

// codes (padded rows, padded k) = the scaled operand, zeros in the padding. An operand whose rows lie side by side is turned in square
// tiles of shared memory, so that both reads and writes are coalesced.
struct Fp8Codes {
  static constexpr int kSide = 32, kLine = kSide + 1;
  static constexpr int64_t kSharedBytes = kSide * kLine * static_cast<int64_t>(sizeof(float));
  Fp8Operand of;
  int64_t padded_rows, padded_k;  // multiples of 4
  const float* scale;
  uint8_t* codes;

  int64_t tiles() const { return ceil_div(padded_rows, kSide) * ceil_div(padded_k, kSide); }
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const float factor = *scale;
    const auto write = [&](int64_t row, int64_t term, const Four<float>& values) {
      Four<uint8_t> out;
      for (int l = 0; l < 4; ++l) out.v[l] = e4m3_of(values.v[l] * factor);
      store_four(codes + row * padded_k + term, out);
    };
    if (of.term_step == 1) {
      const int64_t fours = padded_k / 4;
      for (int64_t i = first_element(g); i < padded_rows * fours; i += all_threads(g)) {
        const int64_t row = i / fours, term = i % fours * 4;
        write(row, term, row < of.rows && term < of.k ? read_four(of.x + row * of.row_step, term, of.k, of.whole) : Four<float>{});
      }
      return;
    }
    float* tile = g.template shared<float>();
    const int64_t across = ceil_div(padded_k, kSide), all = ceil_div(padded_rows, kSide) * across;
    constexpr int kFours = kSide / 4;
    for (int64_t item = g.block(); item < all; item += g.blocks()) {
      const int64_t first_row = item / across * kSide, first_term = item % across * kSide;
      for (int i = g.thread(); i < kSide * kFours; i += g.threads()) {
        const int t = i / kFours, r = i % kFours * 4;
        const int64_t row = first_row + r, term = first_term + t;
        Four<float> values = {};
        if (row < of.rows && term < of.k) values = read_four(of.x + term * of.term_step, row, of.rows, of.whole);
        for (int l = 0; l < 4; ++l) tile[(r + l) * kLine + t] = values.v[l];
      }
      g.sync();
      for (int i = g.thread(); i < kSide * kFours; i += g.threads()) {
        const int r = i / kFours, t = i % kFours * 4;
        Four<float> values;
        for (int l = 0; l < 4; ++l) values.v[l] = tile[r * kLine + t + l];
        if (first_row + r < padded_rows && first_term + t < padded_k) write(first_row + r, first_term + t, values);
      }
      g.sync();
    }
  }
};

// c = product + beta c, where the product has a leading dimension of its own.
struct Fp8Result {
  float* c;
  const float* product;
  int64_t m, ldc, padded_m;
  float beta;
  KERNEL void operator()(int64_t i) const {
    const int64_t row = i % m, column = i / m;
    float& out = c[column * ldc + row];
    out = product[column * padded_m + row] + (beta == 0 ? 0 : beta * out);
  }
};

// An operand converted in scratch.
template <class Machine>
struct Fp8Converted {
  static constexpr int64_t kMostPieces = 1024, kPiece = 16 * kBlock;
  static int64_t padded(int64_t size) { return round_up(size, Fp8Gemm::kMultiple); }

  Fp8Converted(Machine& machine, const Fp8Operand& of) : rows(padded(of.rows)), k(padded(of.k)) {
    const int64_t pieces = std::clamp<int64_t>(ceil_div(of.rows * of.k, kPiece), 1, kMostPieces);
    float* largest = machine.template scratch<float>(pieces);
    scales = machine.template scratch<float>(Fp8Scales::kCount);
    codes = machine.template scratch<uint8_t>(rows * k);
    machine.launch(over_items(pieces, kBlock), Fp8Largest{of, pieces, largest});
    machine.launch({1, kBlock}, Fp8Scales{pieces, largest, scales});
    const Fp8Codes body{of, rows, k, scales, codes};
    machine.launch({std::min(body.tiles(), kMostBlocks), kBlock, Fp8Codes::kSharedBytes}, body);
  }
  int64_t rows, k;
  float* scales;
  uint8_t* codes;
};

// With a side below this the product takes TF32: the conversions would cost more than they save. On an H200 a step of six encoders, whose
// products are skinny, took 23.6 ms in FP8 and 10.6 in TF32.
inline constexpr int64_t kLeastFp8Side = 512;

template <class M>
bool GpuOps<M>::in_fp8(const ColumnGemm<float>& p, bool aligned) {
  if (machine_.products() != Products::fp8 || std::min({p.m, p.n, p.k}) < kLeastFp8Side) return false;
  // Column-major: entry (row, term) of op(A) is at row + term * lda, or transposed; of op(B)^T at term + row * ldb.
  const Fp8Converted<M> a(machine_, {p.a, p.m, p.k, p.ta ? p.lda : 1, p.ta ? 1 : p.lda});
  const Fp8Converted<M> b(machine_, {p.b, p.n, p.k, p.tb ? 1 : p.ldb, p.tb ? p.ldb : 1});
  const bool direct = a.rows == p.m && b.rows == p.n && p.ldc % 4 == 0 && aligned;
  float* c = direct ? p.c : machine_.template scratch<float>(a.rows * b.rows);
  // Where the library has no E4M3 kernel for the shape, the product is a tf32 one.
  if (!machine_.gemm(Fp8Gemm{a.rows, b.rows, a.k, p.alpha, a.codes, a.scales + Fp8Scales::kInverse, b.codes, b.scales + Fp8Scales::kInverse,
                             direct ? p.beta : 0.0f, c, direct ? p.ldc : a.rows}))
    return false;
  if (!direct) each(p.m * p.n, Fp8Result{p.c, c, p.m, p.ldc, a.rows, p.beta});
  return true;
}

}  // namespace comera::gpu
