#include "core/models/models.h"

#include "core/base/error.h"
#include "core/layers/tt_linear.h"

namespace comera {
namespace {

struct Row {
  const char* kind;
  std::unique_ptr<Model> (*make)(const ModelConfig&, LayerFactory&);
};
constexpr Row kModels[] = {
    {"encoder", make_encoder},
    {"mlp", make_mlp},
};

// A model, and the core merges of all its layers around it.
class Merging final : public Model {
 public:
  Merging(std::unique_ptr<Model> model, const LayerFactory& factory)
      : model_(std::move(model)), merges_(factory.tt_linears(), factory.tt_fans()) {}
  Tensor forward(Ctx& ctx, const DeviceBatch& batch) override {
    if (batch.ids)
      merges_.forward(ctx, batch.ids.count(), batch.starts.count());
    else
      merges_.forward(ctx, batch.pixels.size(0), batch.pixels.size(0));
    return model_->forward(ctx, batch);
  }
  void backward(Ctx& ctx, Tensor dlogits) override {
    model_->backward(ctx, std::move(dlogits));
    merges_.backward(ctx);
  }

 private:
  const std::unique_ptr<Model> model_;
  TTMerges merges_;
};

}  // namespace

std::unique_ptr<Model> build_model(const ModelConfig& config, LayerFactory& factory) {
  for (const Row& row : kModels)
    if (config.kind == row.kind) {
      auto model = row.make(config, factory);
      if (factory.tt_linears().empty()) return model;
      return std::make_unique<Merging>(std::move(model), factory);
    }
  throw Error(ErrorCode::config, "no model kind '" + config.kind + "'", "", "use encoder or mlp");
}

}  // namespace comera
