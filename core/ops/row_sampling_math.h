// Which rows are kept, and with which weight (METHODS.md 8 and 11).
#pragma once
#include <cmath>
#include <cstdint>

#include "core/base/hd.h"
#include "core/base/rng.h"
#include "core/ops/row_sampling.h"
#include "core/ops/step_block.h"

namespace comera {

// Of a row with this sum of squares. The floor gives rows of zeros a probability, so that every weight is finite. One that is not a
// number gets the least: the run ends as diverged, and rows can still be ordered.
HD double row_score(double squares, int power = 1) {
  const double norm = (squares == squares ? std::sqrt(squares) : 0) + 1e-8;
  return power == 0 ? 1 : power == 1 ? norm : norm * norm;
}

// Scores in descending order; rest[i] is the sum of those from i on, i <= rows.
struct SampledRows {
  const double *score, *rest;
  int64_t rows, kept;

  // What the variance of the drawn part grows with.
  HD double cost(int64_t certain) const { return rest[certain] / static_cast<double>(kept - certain); }
  HD double weight(int64_t place, int64_t certain) const { return rest[certain] / (static_cast<double>(kept - certain) * score[place]); }
  // The number of certain rows with the least cost; the smallest of several.
  HD int64_t best_certain() const {
    int64_t best = 0;
    for (int64_t certain = 1; certain < kept; ++certain)
      if (cost(certain) < cost(best)) best = certain;
    return best;
  }
  // The place, from `certain` on, where a uniform number in (0, 1) falls: the last whose rest is at least `uniform` of all.
  HD int64_t drawn(double uniform, int64_t certain) const {
    const double mass = uniform * rest[certain];
    int64_t low = certain, high = rows - 1;
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      if (rest[middle] >= mass)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
};

// Uniform number of draw i, in (0, 1). Its word lies behind all words that the codes of the same site use (stash_codes.h).
HD double sampling_uniform(const Philox& stream, uint64_t part, int64_t kept, int64_t i) {
  const uint64_t word = (uint64_t{1} << 60) + part * static_cast<uint64_t>(kept) + static_cast<uint64_t>(i);
  return (static_cast<double>(stream.word(word)) + 0.5) / 4294967296.0;
}
// Draws without replacement in proportion to scores are rows in descending order of this key: a race of exponential times.
HD double race_key(double score, double uniform) { return std::log(uniform) / score; }
HD Philox sampling_stream(const StepScalars& step, uint32_t site) { return {step.seed, static_cast<uint32_t>(step.step), site}; }

}  // namespace comera
