// Image transformer (METHODS.md 23): patches of an image as tokens behind a class token, learned positions, pre-norm blocks, and a norm and
// a head on the class token. Letters: B images, N patches of one, T = B (N + 1) tokens, D d_model.
#include <utility>

#include "core/layers/conv.h"
#include "core/layers/grads.h"
#include "core/layers/weights.h"
#include "core/models/model.h"
#include "core/models/pre_norm.h"

namespace comera {
namespace {

Window patches_of(const VitConfig& c) { return Window::square(c.height, c.width, c.patch, c.patch, 0); }

// Class token and patches + positions, dropout: pixels (B P, C) -> (T, D). An image is one row of N + 1 tokens side by side here, so one
// row of class token and positions is added to all.
class PatchEmbedding {
 public:
  PatchEmbedding(const VitConfig& config, LayerFactory& factory)
      : patches_(patches_of(config).count()),
        features_(config.d_model),
        patch_("emb.patch", {.in = config.channels, .out = config.d_model, .window = patches_of(config)}, factory),
        class_(table("emb.class", 1, config, factory)),
        position_(table("emb.position", patches_ + 1, config, factory)),
        dropout_(config.dropout, factory) {}

  int64_t tokens() const { return patches_ + 1; }

  Tensor forward(Ctx& ctx, Tensor pixels) {
    const Tensor patches = patch_.forward(ctx, std::move(pixels));  // (B N, D)
    const int64_t images = patches.size(0) / patches_;
    Tensor x = ctx.temp({images, row()}, "tokens");
    ctx.ops.fill(Mat(x).columns(0, features_), 0);
    copy(ctx, behind_class(x), of_patches(patches, images));
    {
      const Tensor same = ctx.temp({row()}, "positions");
      ctx.ops.copy(same, numbers_of(ctx, position_).view({row()}));
      const Tensor first = same.rows(0, features_);
      ctx.ops.add(first, first, numbers_of(ctx, class_).view({features_}));
      const Tensor rows = ctx.temp(x.shape(), "positions");
      ctx.ops.broadcast_rows(rows, same);
      ctx.ops.add(x, x, rows);
    }
    return dropout_.forward(ctx, x.view({images * tokens(), features_}));
  }

  void backward(Ctx& ctx, Tensor dy) {
    Tensor dx = dropout_.backward(ctx, std::move(dy));
    const int64_t images = dx.size(0) / tokens();
    dx = dx.view({images, row()});
    if (position_.trainable || class_.trainable) {
      Tensor dposition = grad_room(ctx, position_), dclass = grad_room(ctx, class_);
      ctx.ops.column_sum(dposition.view({row()}), dx);
      ctx.ops.copy(dclass, dposition.rows(0, 1));
      if (class_.trainable) grad_ready(ctx, class_, std::move(dclass));
      if (position_.trainable) grad_ready(ctx, position_, std::move(dposition));
    }
    Tensor dpatches = ctx.temp({images * patches_, features_}, "dpatches");
    copy(ctx, of_patches(dpatches, images), behind_class(dx));
    dx = {};
    patch_.backward(ctx, std::move(dpatches));
  }

 private:
  static Param& table(const char* name, int64_t rows, const VitConfig& config, LayerFactory& factory) {
    return factory.params().add(name, {rows, config.d_model}, ParamKind::table, ParamGroup::rest, {Init::normal, config.embedding_std});
  }
  int64_t row() const { return tokens() * features_; }
  // Of x (B, (N + 1) D) the patches; those of patches (B N, D).
  Mat behind_class(const Tensor& x) const { return Mat(x).columns(features_, patches_ * features_); }
  Mat of_patches(const Tensor& patches, int64_t images) const { return Mat(patches, images, patches_ * features_); }
  static void copy(Ctx& ctx, const Mat& y, const Mat& x) {
    const CopyArgs one[] = {{y, x}};
    ctx.ops.copy(one);
  }

  const int64_t patches_, features_;
  Convolution patch_;
  Param &class_, &position_;
  DropoutLayer dropout_;
};

class Vit final : public Model {
 public:
  Vit(const ModelConfig& model, LayerFactory& factory) : channels_(model.vit.channels), embedding_(model.vit, factory) {
    const VitConfig& c = model.vit;
    const PreNormSpec spec{.attention = {.features = c.d_model,
                                         .heads = c.heads,
                                         .bias = c.qkv_bias,
                                         .dropout = c.attention_dropout,
                                         .keep_probabilities = c.keep_probabilities},
                           .hidden = c.d_ff,
                           .feed_forward = c.activation,
                           .norm_eps = c.norm_eps,
                           .dropout = c.dropout};
    std::vector<std::unique_ptr<Layer>> blocks;
    for (int64_t i = 0; i < c.layers; ++i) blocks.push_back(pre_norm_block("vit" + std::to_string(i), spec, factory));
    add_blocks(blocks_, std::move(blocks), factory.checkpoint_every);
    norm_ = std::make_unique<Norm>("final.norm", c.d_model, c.norm_eps, factory);
    head_ = factory.linear({"head", c.d_model, model.outputs(), LinearKind::head, Rows::sequences});
  }

  PassRows rows(const DeviceBatch& batch) const override { return {batch.examples * embedding_.tokens(), batch.examples}; }

  Tensor forward(Ctx& ctx, const DeviceBatch& batch) override {
    const Tensor& pixels = batch.at("pixels");
    images_ = {ctx.temp({batch.examples}, DType::i32, "starts"), ctx.temp({batch.examples}, DType::i32, "lengths"), embedding_.tokens()};
    ctx.ops.run(op::EqualSequences{images_.starts, images_.lengths, images_.longest});
    Ctx inner = with_images(ctx);
    Tensor x = blocks_.forward(inner, embedding_.forward(inner, pixels.view({pixels.count() / channels_, channels_})));
    Tensor first = ctx.temp({batch.examples, x.size(1)}, "class tokens");
    ctx.ops.first_tokens(first, x, images_);
    x = {};
    if (!ctx.training) images_ = {};
    return head_->forward(ctx, norm_->forward(ctx, std::move(first), {}, {}));
  }

  void backward(Ctx& ctx, Tensor dlogits) override {
    CHECK(images_.starts, "backward of an image transformer without its forward");
    Ctx inner = with_images(ctx);
    Tensor dfirst = norm_->backward(ctx, head_->backward(ctx, std::move(dlogits)), false, {}).first;
    Tensor dx = ctx.temp({dfirst.size(0) * embedding_.tokens(), dfirst.size(1)}, "dclass tokens");
    ctx.ops.first_tokens_backward(dx, dfirst, images_);
    dfirst = {};
    dx = blocks_.backward(inner, std::move(dx));
    inner.sequences = images_ = {};
    embedding_.backward(ctx, std::move(dx));
  }

 private:
  Ctx with_images(Ctx& ctx) const {
    Ctx inner = ctx.over(ctx.stash);
    inner.sequences = images_;
    return inner;
  }

  const int64_t channels_;
  PatchEmbedding embedding_;
  Chain blocks_;
  std::unique_ptr<Norm> norm_;
  std::unique_ptr<Layer> head_;
  Sequences images_;  // of the pass
};

}  // namespace

std::unique_ptr<Model> VitConfig::make(const ModelConfig& config, LayerFactory& factory) { return std::make_unique<Vit>(config, factory); }

void VitConfig::batch_fields(const ModelConfig& config, BatchLayout& layout) {
  const VitConfig& vit = config.vit;
  layout.add({.name = "pixels",
              .dtype = DType::f32,
              .width = vit.height * vit.width * vit.channels,
              .title = "number of pixels (model.vit.height x width x channels)"});
}

}  // namespace comera
