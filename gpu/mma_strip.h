// Strips (strip.h) by mma.m16n8k8. Included by .cu files only.
#pragma once
#include "gpu/strip.h"

namespace comera::gpu {

// A number for each of the thread's two rows.
class MmaRows {
 public:
  template <class Group>
  __device__ MmaRows(const Group&, int, float value) : v_{value, value} {}
  __device__ float& operator[](int slot) { return v_[slot]; }
  __device__ float operator[](int slot) const { return v_[slot]; }

 private:
  float v_[2];
};

template <int kColumns, bool kPaired>
class MmaStrip {
 public:
  static constexpr int kPieces = kColumns / 8;

  template <class Group>
  __device__ MmaStrip(const Group& g, int)
      : eighth_(g.thread() % kWarp / 4), quarter_(g.thread() % 4), first_row_(g.thread() / kWarp * 16) {}

  __device__ void clear() {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece)
#pragma unroll
      for (int c = 0; c < 4; ++c) v_[piece][c] = 0;
  }

  template <int kTerms, int kLine>
  __device__ void dots(const float* a, const float* b) {
    clear();
    const Entries x(a + row(0) * kLine, quarter_, row(0)), below(a + row(1) * kLine, quarter_, row(1)),
        y(b + StripLayout::column(0, eighth_) * kLine, quarter_, StripLayout::column(0, eighth_));
#pragma unroll
    for (int term = 0; term < kTerms; term += 8) {
      const float terms[4] = {x.at(term, 0), below.at(term, 0), x.at(term + 4, 0), below.at(term + 4, 0)};
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        const int line = StripLayout::column(piece, 0) * kLine;
        multiply(v_[piece], terms, y.at(term, line), y.at(term + 4, line));
      }
    }
  }

  // The columns that a lane has of w become its terms: terms t and t + 4 of mma are neighbours of a row of w.
  template <int kLine, int kTerms>
  __device__ void add(const MmaStrip<kTerms, kPaired>& w, const float* b) {
    const int row = 4 * quarter_, flip = StripLayout::flip(row);
    const float* y = b + row * kLine + (4 * (eighth_ / 2) ^ (flip & 8)) + eighth_ % 2;
    const float *even = y + (flip & 2), *odd = y - (flip & 2);  // columns of even and of odd pieces differ in the bit 2
#pragma unroll
    for (int step = 0; step < kTerms / 8; ++step) {
      const float terms[4] = {w.v_[step][0], w.v_[step][2], w.v_[step][1], w.v_[step][3]};
      const int line = StripLayout::column(step, 0) * kLine;
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        const float* of = (piece % 2 ? odd : even) + line + StripLayout::column(piece, 0);
        multiply(v_[piece], terms, of[0], of[kLine]);
      }
    }
  }

  template <class Body, class... Others>
  __device__ void each_four(const Body& body, Others&... others) {
#pragma unroll
    for (int sixteen = 0; sixteen < kPieces / 2; ++sixteen)
#pragma unroll
      for (int slot = 0; slot < 2; ++slot)
        in_fours([&](auto&... fours) { body(row(slot), 16 * sixteen + 4 * quarter_, slot, fours...); }, sixteen, slot, *this, others...);
  }

  template <class Body, class... Others>
  __device__ void each_pair(const Body& body, Others&... others) {
    static_assert(kPaired);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece)
#pragma unroll
      for (int c = 0; c < 2; ++c)
        body(row(0), StripLayout::column(piece, 2 * quarter_ + c), v_[piece][c], v_[piece][2 + c], others.v_[piece][c]...,
             others.v_[piece][2 + c]...);
  }

  template <class Combine, class Term>
  __device__ void fold(MmaRows& into, const Combine& combine, const Term& term) const {
#pragma unroll
    for (int slot = 0; slot < 2; ++slot) {
      float all = term(v_[0][2 * slot], slot);
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece)
#pragma unroll
        for (int c = piece == 0 ? 1 : 0; c < 2; ++c) all = combine(all, term(v_[piece][2 * slot + c], slot));
      for (int distance = 1; distance < 4; distance *= 2) all = combine(all, __shfl_xor_sync(0xffffffffu, all, distance));
      into[slot] = combine(into[slot], all);
    }
  }

  // Calls body(row, slot) in the lanes that share a row, or in one of them.
  template <class Body>
  __device__ void each_row(const Body& body, bool once = false) const {
    if (once && quarter_ != 0) return;
    for (int slot = 0; slot < 2; ++slot) body(row(slot), slot);
  }

 private:
  template <int, bool>
  friend class MmaStrip;

  // Entries `column` + quarter of a row, for columns that are multiples of 4 known to the compiler.
  struct Entries {
    __device__ Entries(const float* line, int quarter, int row) {
      const int flip = StripLayout::flip(row);
      const float* own = line + (quarter ^ (flip & 2));
      even = own + (flip & 8);
      odd = own - (flip & 8);
    }
    __device__ float at(int column, int further) const { return (column & 8 ? odd : even)[column + further]; }
    const float *even, *odd;  // for columns without and with the bit 8
  };
  __device__ int row(int slot) const { return first_row_ + (kPaired ? 2 * eighth_ + slot : eighth_ + 8 * slot); }

  static __device__ void multiply(float (&c)[4], const float (&a)[4], float b0, float b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
          "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
  }

  // Calls body with a Four of each strip, and writes the fours back.
  template <class Body, class... Strips>
  static __device__ void in_fours(const Body& body, int sixteen, int slot, Strips&... strips) {
    with_fours(body, sixteen, slot, strips..., strips.four(sixteen, slot)...);
  }
  __device__ Four<float> four(int sixteen, int slot) const {
    return {{v_[2 * sixteen][2 * slot], v_[2 * sixteen][2 * slot + 1], v_[2 * sixteen + 1][2 * slot], v_[2 * sixteen + 1][2 * slot + 1]}};
  }
  __device__ void put(int sixteen, int slot, const Four<float>& four) {
    v_[2 * sixteen][2 * slot] = four.v[0];
    v_[2 * sixteen][2 * slot + 1] = four.v[1];
    v_[2 * sixteen + 1][2 * slot] = four.v[2];
    v_[2 * sixteen + 1][2 * slot + 1] = four.v[3];
  }
  template <class Body>
  static __device__ void with_fours(const Body& body, int sixteen, int slot, MmaStrip& a, Four<float> of_a) {
    body(of_a);
    a.put(sixteen, slot, of_a);
  }
  template <class Body>
  static __device__ void with_fours(const Body& body, int sixteen, int slot, MmaStrip& a, MmaStrip& b, Four<float> of_a, Four<float> of_b) {
    body(of_a, of_b);
    a.put(sixteen, slot, of_a);
    b.put(sixteen, slot, of_b);
  }
  template <class Body>
  static __device__ void with_fours(const Body& body, int sixteen, int slot, MmaStrip& a, MmaStrip& b, MmaStrip& c, Four<float> of_a,
                                    Four<float> of_b, Four<float> of_c) {
    body(of_a, of_b, of_c);
    a.put(sixteen, slot, of_a);
    b.put(sixteen, slot, of_b);
    c.put(sixteen, slot, of_c);
  }

  int eighth_, quarter_, first_row_;
  float v_[kPieces][4];
};

}  // namespace comera::gpu
