// Random directions of a matrix (METHODS.md 5 and 6): a function of seed, step and matrix, so nothing of them is kept.
#include <cmath>

#include "core/optim/projector.h"

namespace comera {
namespace {

class RandomProjector final : public Projector {
 public:
  RandomProjector(int64_t gap, int64_t ahead) : gap_(gap), ahead_(ahead) {}

  Tensor basis(Ctx& ctx, const Projection& p, const States&) override {
    const Tensor drawn = ctx.temp(p.right ? Shape{p.rank, p.gradient[1]} : Shape{p.gradient[0], p.rank}, "random projection");
    ctx.ops.run(op::Normal{drawn, p.site, ctx.step, 1 / std::sqrt(static_cast<double>(p.rank)), gap_, ahead_});
    return drawn;
  }

 private:
  const int64_t gap_, ahead_;
};

}  // namespace

std::unique_ptr<Projector> make_random_projector(int64_t gap, int64_t ahead) { return std::make_unique<RandomProjector>(gap, ahead); }

}  // namespace comera
