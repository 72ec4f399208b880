#include "core/methods/lte.h"

namespace comera {
namespace {

// What a merge rounded would stay in the matrix: it is computed in fp32, whatever the products of the steps (train.matmul).
class Unrounded {
 public:
  Unrounded(Device& device, Products usual) : device_(device), usual_(usual) { device_.set_products(Products::fp32); }
  ~Unrounded() { device_.set_products(usual_); }
  Unrounded(const Unrounded&) = delete;

 private:
  Device& device_;
  const Products usual_;
};

}  // namespace

std::unique_ptr<Method> LteConfig::make_method(const RunConfig&, ParamSet& params) const { return std::make_unique<Lte>(*this, params); }

void Lte::after_step(int64_t step, const StepResults&, const std::vector<double>&) {
  if (!waits_for(step)) return;
  const TrainConfig& train = run_->config().train;
  run_->rewrite([&](Ctx& ctx) {
    const Unrounded products(run_->device(), products_of(train.matmul));
    merge(ctx.ops);
    if (config_.reset) reset(run_->device(), static_cast<uint64_t>(train.seed), step);
  });
}

std::vector<Param*> Lte::blocks_of(int64_t parts) const {
  std::vector<Param*> factors;
  if (config_.heads > 1 && config_.heads % parts == 0)
    for (const LteMatrix& matrix : matrices_) factors.insert(factors.end(), {matrix.a, matrix.b});
  return factors;
}

void Lte::merge(Ops& ops) const {
  for (const LteMatrix& matrix : matrices_) {
    const int64_t heads = matrix.a->shape[0];
    const double scale = config_.scale() / static_cast<double>(heads);
    for (int64_t head = 0; head < heads; ++head) {
      ops.gemm(matrix.w->value, head_of(matrix.b->value, head), false, head_of(matrix.a->value, head), false, scale, 1);
      ops.gemm(matrix.w->value, head_of(matrix.merged_b->value, head), false, head_of(matrix.merged_a->value, head), false, -scale, 1);
    }
    ops.copy(matrix.merged_a->value, matrix.a->value);
    ops.copy(matrix.merged_b->value, matrix.b->value);
  }
}

void Lte::reset(Device& device, uint64_t seed, int64_t step) const {
  Ops& ops = device.ops();
  for (const LteMatrix& matrix : matrices_) {
    for (const Param* zero : {matrix.b, matrix.merged_a, matrix.merged_b}) ops.fill(zero->value, 0);
    from_host(device, matrix.a->value, drawn_values(*matrix.a, seed, static_cast<uint32_t>(step)));
  }
}

}  // namespace comera
