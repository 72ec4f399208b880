#include "core/ops/interaction.h"

#include "core/ops/check.h"

namespace comera::op {

using namespace ops_check;

namespace {

void check_interaction(const char* op, const Tensor& y, const Tensor& z, bool itself) {
  check_float(op, "z", z, 3);
  check_shape(op, "y", y, {z.size(0), z.size(2) + DotPairs{z.size(1), itself}.count()}, z.dtype());
}

double flops_of(const Tensor& z, bool itself) {
  return 2.0 * static_cast<double>(z.size(0) * z.size(2)) * static_cast<double>(DotPairs{z.size(1), itself}.count());
}

}  // namespace

void DotInteraction::check() const { check_interaction(name, y, z, itself); }
Work DotInteraction::work(double bytes) const { return {flops_of(z, itself), 0, bytes}; }

void DotInteractionBackward::check() const {
  check_interaction(name, dy, z, itself);
  check_shape(name, "dz", dz, z.shape(), z.dtype());
}
Work DotInteractionBackward::work(double bytes) const { return {2 * flops_of(z, itself), 0, bytes}; }

}  // namespace comera::op
