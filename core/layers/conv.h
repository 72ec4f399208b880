// Layers of images (METHODS.md 21). Pixels are rows: x (B P, C), B images of P = height x width pixels line by line, with C channels side
// by side (channels last). So a 1 x 1 convolution is a linear layer as it is, and every other one is a linear layer over the patches of its
// windows. Letters: Q windows of an image, A places in a window.
#pragma once
#include <memory>
#include <string>

#include "core/layers/factory.h"

namespace comera {

struct ConvolutionSpec {
  int64_t in = 0, out = 0;  // channels
  Window window = {};
  bool bias = true;
};

// x (B P, in) -> y (B Q, out) = patches(x) W^T + b. NAME.weight (out, A in), place by place; in which form it is held is the factory's
// business. Kept is x: backward makes the patches again, which would take A times as much. So they are not sampled either
// (METHODS.md 11).
class Convolution final : public Layer, public Remake {
 public:
  Convolution(const std::string& name, const ConvolutionSpec& spec, LayerFactory& factory);
  ~Convolution() override;
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;
  Tensor remake(Ctx& ctx) override;  // of the patches
  int depth() const override { return 0; }

 private:
  class Patches;
  Tensor unfold(Ctx& ctx, const Tensor& x);

  const Window window_;
  std::unique_ptr<Layer> linear_;
  StashSlot slot_;
  std::unique_ptr<Patches> patches_;
};

// What norms over images have in common: gamma and beta (C), and a backward from x, of which y is made again where it is asked for.
class GroupedNorm : public Layer, public Remake {
 public:
  Tensor forward(Ctx& ctx, Tensor x) final;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) final;
  Tensor remake(Ctx& ctx) final;
  int depth() const final { return 1; }

 protected:
  // (E, G) each: of E examples of neighbouring rows and G groups of neighbouring channels.
  struct Statistics {
    Tensor mean, variance;
    bool constant = false;  // they do not depend on x
  };

  GroupedNorm(const std::string& name, int64_t channels, double eps, LayerFactory& factory);
  virtual Statistics statistics(Ctx& ctx, const Tensor& x) = 0;
  Statistics statistics_of(Ctx& ctx, const Tensor& x, int64_t examples, int64_t groups);

 private:
  Tensor normalised(Ctx& ctx, const Tensor& x, const char* tag);

  Param &gamma_, &beta_;
  const double eps_;
  const StashSlot slot_;
  Kept x_;
  Statistics statistics_;  // of the pass
};

struct BatchNormSpec {
  double eps = 1e-5;
  double momentum = 0.1;  // share of a batch in the running statistics
  bool frozen = false;    // training, too, uses the running statistics, and leaves them alone
};

// Every channel by its mean and variance over all rows of a batch; evaluations use running ones, which each training step follows with
// momentum (the variance as an unbiased estimate). States NAME.running_mean, NAME.running_variance (C).
class BatchNorm final : public GroupedNorm {
 public:
  BatchNorm(const std::string& name, int64_t channels, const BatchNormSpec& spec, LayerFactory& factory);

 private:
  Statistics statistics(Ctx& ctx, const Tensor& x) override;

  const BatchNormSpec spec_;
  State &mean_, &variance_;
  bool followed_ = false;  // by the first pass of a block that is computed twice
};

// Groups of neighbouring channels of each image of `pixels` rows by their mean and variance.
class GroupNorm final : public GroupedNorm {
 public:
  GroupNorm(const std::string& name, int64_t channels, int64_t groups, int64_t pixels, double eps, LayerFactory& factory);

 private:
  Statistics statistics(Ctx& ctx, const Tensor& x) override;

  const int64_t groups_, pixels_;
};

// The largest pixel of each window, by channel: x (B P, C) -> (B Q, C). Kept is a byte for each.
class MaxPooling final : public Layer {
 public:
  explicit MaxPooling(const Window& window) : window_(window) {}
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  const Window window_;
  Tensor place_;  // of the step
};

// The mean of each window, where the padding counts as zeros; with Window::whole of each image.
class AveragePooling final : public Layer {
 public:
  explicit AveragePooling(const Window& window) : window_(window) {}
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  const Window window_;
};

// y = body(x) + shortcut(x); without a shortcut x itself.
class ResidualSum final : public Layer {
 public:
  ResidualSum(std::unique_ptr<Layer> body, std::unique_ptr<Layer> shortcut) : body_(std::move(body)), shortcut_(std::move(shortcut)) {}
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  const std::unique_ptr<Layer> body_, shortcut_;
};

}  // namespace comera
