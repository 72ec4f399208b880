// Shapes of tensor trains: modes of a size, ranks, and what each contraction order costs (METHODS.md 1.1).
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/fields.h"
#include "core/config/tt.h"

namespace comera {

struct TTShape {
  std::vector<int64_t> in_modes, out_modes;  // n_1..n_p, m_1..m_q (1 to 5 a side); TTM: rows, columns of each core
  std::vector<int64_t> ranks;                // r_0..r_K, K = p + q (TTM: K = cores), r_0 = r_K = 1
  int64_t in = 0, out = 0;                   // true sizes; the modes may multiply to more (padding)

  int64_t padded_in() const;
  int64_t padded_out() const;
  bool padded() const { return padded_in() != in || padded_out() != out; }
};

// Balanced modes for `size` with `count` factors: as equal as possible, larger ones outside as published
// (768 -> 12,8,8 in, 8,8,12 out; 3072 -> 16,16,12 in, 12,16,16 out). A size without good factors (a prime) is padded
// up by the smallest amount that gives them. `ascending` is the order on the output side.
std::vector<int64_t> choose_modes(int64_t size, int64_t count, bool ascending);

// The shape of W (out x in) as a TT / of a table (rows x columns) as a TTM. Problems name the field at fault
// ("in_modes multiply to 760, the size is 768"), with `path` in front.
TTShape linear_shape(int64_t in, int64_t out, const TTOptions& options, const char* path, std::vector<Problem>& problems);
TTShape table_shape(int64_t rows, int64_t columns, const TTOptions& options, const char* path, std::vector<Problem>& problems);

// Multiply-adds of a forward pass over `tokens` rows: both sides merged first, or core by core.
double merged_cost(const TTShape& shape, int64_t tokens);
double sequential_cost(const TTShape& shape, int64_t tokens);
// Entries of the cores: sum_k r_{k-1} l_k r_k.
int64_t tt_entries(const TTShape& shape);

}  // namespace comera
