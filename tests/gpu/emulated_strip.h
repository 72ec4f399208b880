// Strips of gpu/strip.h in memory: a thread has pairs of rows, in turn. Included by emulated_machine.h.
#pragma once
#include <vector>

#include "core/base/error.h"
#include "core/ops/small_floats.h"
#include "gpu/strip.h"

namespace comera::test {

class EmulatedRows {
 public:
  template <class Group>
  EmulatedRows(const Group&, int rows, float value) : v_(static_cast<size_t>(rows), value) {}
  float& operator[](int row) { return v_[static_cast<size_t>(row)]; }
  float operator[](int row) const { return v_[static_cast<size_t>(row)]; }

 private:
  std::vector<float> v_;
};

// A slot is the row.
template <int kColumns, bool kPaired>
class EmulatedStrip {
 public:
  template <class Group>
  EmulatedStrip(const Group& g, int rows)
      : thread_(g.thread()), threads_(g.threads()), rows_(rows), v_(static_cast<size_t>(rows * kColumns)) {
    g.note_strip();
  }
  void clear() { std::fill(v_.begin(), v_.end(), 0.0f); }
  template <int kTerms, int kLine>
  void dots(const float* a, const float* b) {
    each_entry([&](int row, int column) {
      float sum = 0;
      for (int term = 0; term < kTerms; ++term) sum += operand(entry(a, kLine, row, term)) * operand(entry(b, kLine, column, term));
      at(row, column) = sum;
    });
  }
  template <int kLine, int kTerms>
  void add(EmulatedStrip<kTerms, kPaired>& w, const float* b) {
    each_entry([&](int row, int column) {
      for (int term = 0; term < kTerms; ++term) at(row, column) += operand(w.at(row, term)) * operand(entry(b, kLine, term, column));
    });
  }
  template <class Body, class... Others>
  void each_four(const Body& body, Others&... others) {
    each_row([&](int row, int slot) {
      for (int column = 0; column < kColumns; column += 4)
        body(row, column, slot, gpu::four_at(&at(row, column)), gpu::four_at(&others.at(row, column))...);
    });
  }
  template <class Body, class... Others>
  void each_pair(const Body& body, Others&... others) {
    static_assert(kPaired);
    each_row([&](int row, int) {
      for (int column = 0; row % 2 == 0 && column < kColumns; ++column)
        body(row, column, at(row, column), at(row + 1, column), others.at(row, column)..., others.at(row + 1, column)...);
    });
  }
  template <class Combine, class Term>
  void fold(EmulatedRows& into, const Combine& combine, const Term& term) {
    each_entry([&](int row, int column) { into[row] = combine(into[row], term(at(row, column), row)); });
  }
  template <class Body>
  void each_row(const Body& body, bool = false) const {
    for (int row = 0; row < rows_; ++row)
      if (row / 2 % threads_ == thread_) body(row, row);
  }
  float& at(int row, int column) { return v_[static_cast<size_t>(row * kColumns + column)]; }

 private:
  template <class Body>
  void each_entry(const Body& body) {
    each_row([&](int row, int) {
      for (int column = 0; column < kColumns; ++column) body(row, column);
    });
  }
  static float entry(const float* tile, int line, int row, int column) { return tile[row * line + gpu::StripLayout::place(row, column)]; }
  static float operand(float x) {
    CHECK(x != x || tf32_of(x) == x, x << " has more bits than the unit reads");
    return x;
  }

  int thread_, threads_, rows_;
  std::vector<float> v_;
};

}  // namespace comera::test
