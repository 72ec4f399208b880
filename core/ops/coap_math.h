// COAP's refinement of a projection (METHODS.md 3), as both devices compute it.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/base/hd.h"

namespace comera {

struct CoapRow {  // of one row of E, G and C: E E, G G, C C, C G
  double lost, g, moment, both;
};
struct CoapSums {  // over all rows
  double lost = 0, g = 0, cosines = 0;
};

// One term of ||E||^2 - ||G||^2 = <S - 2 I, Q>; S and Q are the Gram matrices of the projection and of the projected gradient.
HD double coap_lost_term(double s, double q, bool diagonal) { return (diagonal ? s - 2 : s) * q; }
// A square that was computed from products, which rounding can make negative.
HD double coap_square(double value) { return value < 0 ? 0 : value; }

// The rows of the two directions: of_lost E and of_g G - of_moment C. Cosines need no sum but that of G.
struct CoapMath {
  double rows, entries, square, least, lost, cosine_mean;

  HD CoapMath(const CoapSums& sums, int64_t m, int64_t n, bool normalised)
      : rows(static_cast<double>(m)),
        entries(static_cast<double>(m) * static_cast<double>(n)),
        square(normalised ? sums.g / entries : 1),
        least(1e-8 * std::sqrt(square)),
        lost(sums.lost / entries / square),
        cosine_mean(sums.cosines / rows) {}
  HD double length(double squares) const { return std::sqrt(squares) > least ? std::sqrt(squares) : least; }
  HD double cosine(const CoapRow& row) const { return row.both / (length(row.moment) * length(row.g)); }

  HD double of_lost() const { return (1 - cosine_mean) * 2 / entries / square; }
  HD double of_g(const CoapRow& row) const { return lost / rows / (length(row.moment) * length(row.g)); }
  // A length that is held at the least one does not change with C.
  HD double of_moment(const CoapRow& row) const { return std::sqrt(row.moment) > least ? lost / rows * cosine(row) / row.moment : 0; }
};

// The factor on a gradient that is clipped to norm 1; 0 where the norm is not finite.
HD double clipped_step(double size, double square) {
  if (!(square < 1.7976931348623157e308)) return 0;
  const double clip = 1 / (std::sqrt(square) + 1e-6);
  return clip < 1 ? size * clip : size;
}

}  // namespace comera
