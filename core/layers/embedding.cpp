// y (T, D) = rows of a dense table (V, D) at ids (T).
#include <utility>

#include "core/layers/dense.h"
#include "core/layers/grads.h"
#include "core/layers/weights.h"

namespace comera {
namespace {

class DenseEmbedding final : public Layer {
 public:
  DenseEmbedding(const MatrixSpec& spec, LayerFactory& factory)
      : table_(&factory.params().add(spec.name + ".weight", {spec.in, spec.out}, ParamKind::table, ParamGroup::rest,
                                     {Init::normal, spec.std})) {
    table_->trainable = spec.trainable;
    table_->by_rows = true;
  }

  Tensor forward(Ctx& ctx, Tensor ids) override {
    Tensor y = ctx.temp({ids.size(0), table_->shape[1]}, "embedding y");
    ctx.ops.gather_rows(y, numbers_of(ctx, *table_), ids, false);
    if (ctx.keeps() && table_->trainable) ids_ = std::move(ids);
    return y;
  }

  Tensor backward(Ctx& ctx, Tensor dy, Tensor) override {
    if (!table_->trainable) return {};
    CHECK(ids_, "backward of an embedding without its forward");
    grad_of_rows(ctx, *table_, dy, std::exchange(ids_, {}));
    return {};
  }

 private:
  Param* const table_;
  Tensor ids_;  // (T)
};

}  // namespace

std::unique_ptr<Layer> make_dense_embedding(const MatrixSpec& spec, LayerFactory& factory) {
  return std::make_unique<DenseEmbedding>(spec, factory);
}

}  // namespace comera
