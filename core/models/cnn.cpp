// Image classifier of convolutions (METHODS.md 21): stages of convolutions, each with a norm and an activation, the mean of every channel,
// and a dense head. With `residual` a first convolution and then blocks of two around a shortcut, as in He et al. 2016.
#include "core/layers/blocks.h"
#include "core/layers/conv.h"
#include "core/models/model.h"

namespace comera {
namespace {

// Adds layers behind each other, and knows what images they give.
class Builder {
 public:
  Builder(const CnnConfig& config, LayerFactory& factory)
      : config_(config), factory_(factory), height_(config.height), width_(config.width), channels_(config.channels) {}

  int64_t channels() const { return channels_; }
  Window image() const { return Window::whole(height_, width_); }

  // A convolution, its norm and, where it is `active`, the activation.
  void add_unit(Chain& chain, const std::string& name, int64_t out, int64_t kernel, int64_t stride, bool active = true) {
    const Window window = Window::square(height_, width_, kernel, stride, kernel / 2);
    const ConvolutionSpec spec{.in = channels_, .out = out, .window = window, .bias = config_.norm == "none"};
    chain.add(std::make_unique<Convolution>(name, spec, factory_));
    height_ = window.rows();
    width_ = window.columns();
    channels_ = out;
    if (config_.norm == "batch")
      chain.add(std::make_unique<BatchNorm>(name + ".norm", out, BatchNormSpec{config_.norm_eps, config_.norm_momentum}, factory_));
    else if (config_.norm == "group")
      chain.add(std::make_unique<GroupNorm>(name + ".norm", out, config_.groups, height_ * width_, config_.norm_eps, factory_));
    if (active) add_activation(chain, name);
  }
  void add_activation(Chain& chain, const std::string& name) {
    chain.add(std::make_unique<ActivationLayer>(activation_of(config_.activation), name + ".activation", channels_, factory_));
  }
  // Pooling where that makes the step; returns the stride that is left to the convolution.
  int64_t add_pooling(Chain& chain, int64_t stride) {
    if (stride == 1 || config_.pooling == "stride") return stride;
    const Window window = Window::square(height_, width_, stride, stride, 0);
    if (config_.pooling == "max")
      chain.add(std::make_unique<MaxPooling>(window));
    else
      chain.add(std::make_unique<AveragePooling>(window));
    height_ = window.rows();
    width_ = window.columns();
    return 1;
  }
  // Two convolutions around a shortcut, which is one of 1 x 1 where the image changes.
  void add_residual(Chain& chain, const std::string& name, int64_t out, int64_t step) {
    const int64_t stride = add_pooling(chain, step);
    const Builder before = *this;
    auto body = std::make_unique<Chain>();
    add_unit(*body, name + ".conv0", out, config_.kernel, stride);
    add_unit(*body, name + ".conv1", out, config_.kernel, 1, false);
    std::unique_ptr<Chain> shortcut;
    if (stride != 1 || before.channels_ != out) {
      shortcut = std::make_unique<Chain>();
      Builder(before).add_unit(*shortcut, name + ".shortcut", out, 1, stride, false);
    }
    chain.add(std::make_unique<ResidualSum>(std::move(body), std::move(shortcut)));
    add_activation(chain, name);
  }

 private:
  const CnnConfig& config_;
  LayerFactory& factory_;
  int64_t height_, width_, channels_;
};

class Cnn final : public Model {
 public:
  Cnn(const ModelConfig& model, LayerFactory& factory) : channels_(model.cnn.channels) {
    const CnnConfig& config = model.cnn;
    Builder build(config, factory);
    std::vector<std::unique_ptr<Layer>> blocks;
    const auto block = [&](const auto& fill) {
      auto chain = std::make_unique<Chain>();
      fill(*chain);
      blocks.push_back(std::move(chain));
    };
    if (config.residual) block([&](Chain& chain) { build.add_unit(chain, "first", config.widths.front(), config.kernel, 1); });
    for (size_t stage = 0; stage < config.widths.size(); ++stage) {
      const int64_t width = config.widths[stage], depth = config.residual ? config.convolutions / 2 : config.convolutions;
      for (int64_t i = 0; i < depth; ++i)
        block([&](Chain& chain) {
          const std::string name = "stage" + std::to_string(stage) + (config.residual ? ".block" : ".conv") + std::to_string(i);
          const int64_t step = i == 0 ? config.strides[stage] : 1;
          if (config.residual) return build.add_residual(chain, name, width, step);
          const int64_t stride = build.add_pooling(chain, step);
          build.add_unit(chain, name, width, config.kernel, stride);
        });
    }
    add_blocks(layers_, std::move(blocks), factory.checkpoint_every);
    layers_.add(std::make_unique<AveragePooling>(build.image()));
    layers_.add(std::make_unique<DropoutLayer>(config.dropout, factory));
    layers_.add(factory.linear("head", build.channels(), model.outputs(), LinearKind::head));
  }

  Tensor forward(Ctx& ctx, const DeviceBatch& batch) override {
    const Tensor& pixels = batch.at("pixels");
    return layers_.forward(ctx, pixels.view({pixels.count() / channels_, channels_}));
  }
  void backward(Ctx& ctx, Tensor dlogits) override { layers_.backward(ctx, std::move(dlogits)); }

 private:
  const int64_t channels_;
  Chain layers_;
};

}  // namespace

std::unique_ptr<Model> CnnConfig::make(const ModelConfig& config, LayerFactory& factory) { return std::make_unique<Cnn>(config, factory); }

void CnnConfig::batch_fields(const ModelConfig& config, BatchLayout& layout) {
  const CnnConfig& cnn = config.cnn;
  layout.add({.name = "pixels",
              .dtype = DType::f32,
              .width = cnn.height * cnn.width * cnn.channels,
              .title = "number of pixels (model.cnn.height x width x channels)"});
}

}  // namespace comera
