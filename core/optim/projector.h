// How a gradient gets smaller and an update comes back (METHODS.md 0.1). R has rank * max(m, n) entries.
#pragma once
#include "core/config/optimizers.h"
#include "core/layers/layer.h"
#include "core/optim/state.h"

namespace comera {

struct Projection {
  Shape gradient;  // (m, n)
  int64_t rank = 0;
  bool right = true;  // R = G P^T (m, r), else R = P^T G (r, n); decided by W's shape or a setting, as R's is ambiguous
  uint32_t site = 0;  // of its random draws
  // Of a convolution (O, A I): A. `asked` is the rank before it was cut, `ratio` above 0 what ranks follow from instead.
  int64_t places = 1, asked = 0;
  double ratio = 0;
};

// Whether a low-rank optimizer projects the parameter (METHODS.md 0.5), and how: `rank` is cut to its shorter side.
bool is_projected(const Param& param);
Projection projection_of(const Param& param, int64_t rank);

// A basis that is kept: (r, n) on the right, (m, r) on the left. Directions that a larger rank adds are at right angles to the others.
StateSpec stored_projection(const Projection& projection, const char* name = "projection");

class Projector {
 public:
  virtual ~Projector() = default;
  virtual std::vector<StateSpec> declare(const Projection& projection) const { return {}; }
  // A new basis from the gradient; as Rule::refresh. `states` include the inner rule's.
  virtual void refresh(Ctx& ctx, const Projection& projection, const States& states, const Tensor& g, int64_t number) {}
  // P: (r, n) on the right, (m, r) on the left; a state, or made into a temporary. For the products of down and up below.
  virtual Tensor basis(Ctx& ctx, const Projection& projection, const States& states);

  virtual Shape projected(const Projection& projection) const;
  unsigned rank_axes(const Projection& projection) const;  // of a projected gradient: bits of the axes that are as long as the rank
  virtual void down(Ctx& ctx, const Projection& projection, const States& states, const Tensor& r, const Tensor& g);  // "="
  // w += alpha back(u)
  virtual void up(Ctx& ctx, const Projection& projection, const States& states, const Tensor& w, const Tensor& u, double alpha);
};

// GaLore's: the leading singular vectors of the gradient. `passes` above 0: of subspace iteration, from the basis before.
std::unique_ptr<Projector> make_svd_projector(int64_t passes = 0);
// Those of both sides: R = P_left^T G P_right^T (r, r). For projections that are `right`.
std::unique_ptr<Projector> make_two_sided_svd_projector(int64_t passes = 0);
// Q-GaLore's: GaLore's in 4 bits. The gap to the next refresh doubles when the mean cosine of the last `queue` first directions with those
// before them is at least `threshold`.
struct QGaloreOptions {
  static constexpr double kNever = 2;
  double threshold = kNever;
  int64_t queue = 5, group = 256;  // entries that share a scale and a zero
  int64_t passes = 0;              // as GaLore's
};
std::unique_ptr<Projector> make_qgalore_projector(const QGaloreOptions& options);
// COAP's: refined in between by a gradient step, which reads the inner rule's first moment "m" where it has one.
std::unique_ptr<Projector> make_coap_projector(const CoapConfig& config);
// The same of convolutions, along their outputs and inputs: R (r_O, A, r_I). For projections of several places.
std::unique_ptr<Projector> make_tucker_projector(const CoapConfig& config);
// Grass's: some rows or columns of the gradient. A refresh sets the inner rule's moments "m" and "v" to 0.
std::unique_ptr<Projector> make_grass_projector(const GrassConfig& config);
// Normal draws of variance 1 / rank, others every `gap` steps; made in each step, never kept. `ahead`: those of so many steps later.
std::unique_ptr<Projector> make_random_projector(int64_t gap, int64_t ahead = 0);

}  // namespace comera
