// Image classifier: hidden linear layers (tensorised as ffn_in) with an activation and dropout, then a dense head.
#include "core/layers/blocks.h"
#include "core/models/model.h"

namespace comera {
namespace {

class Mlp final : public Model {
 public:
  Mlp(const ModelConfig& model, LayerFactory& factory) {
    const bool gelu = model.mlp.activation == "gelu";
    int64_t in = model.mlp.inputs;
    std::vector<std::unique_ptr<Layer>> blocks;
    for (size_t i = 0; i < model.mlp.hidden.size(); ++i) {
      const int64_t out = model.mlp.hidden[i];
      const std::string name = "fc" + std::to_string(i);
      auto block = std::make_unique<Chain>();
      block->add(factory.linear(name, in, out, LinearKind::ffn_in));
      block->add(std::make_unique<ActivationLayer>(gelu ? Activation::gelu : Activation::relu, name + ".activation", out, factory));
      block->add(std::make_unique<DropoutLayer>(model.mlp.dropout, factory));
      blocks.push_back(std::move(block));
      in = out;
    }
    add_blocks(layers_, std::move(blocks), factory.checkpoint_every);
    layers_.add(factory.linear("head", in, model.outputs(), LinearKind::head));
  }

  Tensor forward(Ctx& ctx, const DeviceBatch& batch) override { return layers_.forward(ctx, batch.at("pixels")); }
  void backward(Ctx& ctx, Tensor dlogits) override { layers_.backward(ctx, std::move(dlogits)); }

 private:
  Chain layers_;
};

}  // namespace

std::unique_ptr<Model> MlpConfig::make(const ModelConfig& config, LayerFactory& factory) { return std::make_unique<Mlp>(config, factory); }

void MlpConfig::batch_fields(const ModelConfig& config, BatchLayout& layout) {
  layout.add({.name = "pixels", .dtype = DType::f32, .width = config.mlp.inputs, .title = "pixel", .setting = "model.mlp.inputs"});
}

}  // namespace comera
