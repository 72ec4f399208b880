// A decoder for language models (METHODS.md 19): token embedding, rotary or learned positions, pre-norm blocks of causal attention and a
// feed-forward layer, a norm, and the logits of the next token for every token. LLaMA is rotary, RMS norm and SwiGLU without biases; GPT-2
// is learned positions, layer norm and GELU (tanh) with biases and a tied head. Letters: T tokens, D d_model, V vocabulary.
#include "core/base/error.h"
#include "core/layers/dense.h"
#include "core/layers/grads.h"
#include "core/layers/weights.h"
#include "core/models/model.h"
#include "core/models/pre_norm.h"

namespace comera {
namespace {

MatrixSpec token_spec(const DecoderConfig& config) {
  return {.name = "emb.token", .in = config.vocab, .out = config.d_model, .std = config.embedding_std, .tied = config.tied, .bias = false};
}

class Decoder final : public Model {
 public:
  Decoder(const DecoderConfig& config, LayerFactory& factory)
      : config_(config),
        kind_(config.norm == "rms" ? NormKind::rms : NormKind::layer),
        rotary_(config.rope_theta, config.width_of_head()),
        token_(factory.embedding(token_spec(config))),
        position_(config.positions == "learned"
                      ? &factory.params().add("emb.position", {config.position_rows, config.d_model}, ParamKind::table, ParamGroup::rest,
                                              {Init::normal, config.embedding_std})
                      : nullptr),
        dropout_(config.dropout, factory) {
    std::vector<std::unique_ptr<Layer>> blocks;
    for (int64_t i = 0; i < config.layers; ++i) blocks.push_back(block("dec" + std::to_string(i), factory));
    add_blocks(blocks_, std::move(blocks), factory.checkpoint_every);
    norm_ = std::make_unique<Norm>("final.norm", config.d_model, config.norm_eps, factory, kind_);
    head_ = config.tied
                ? factory.tied_head(token_spec(config), *token_)
                : factory.linear({.name = "head", .in = config.d_model, .out = config.vocab, .kind = LinearKind::head, .bias = false});
  }

  Tensor forward(Ctx& ctx, const DeviceBatch& batch) override {
    positions_ = batch.at("positions");
    if (!position_) rotary_.begin(ctx, positions_);
    Tensor x = token_->forward(ctx, batch.at("ids"));
    if (position_) {
      ctx.stash.overwritten(x);
      ctx.ops.gather_rows(x, numbers_of(ctx, *position_), positions_, true);
    }
    x = blocks_.forward(ctx, dropout_.forward(ctx, std::move(x)));
    if (!ctx.training) rotary_.end();
    return head_->forward(ctx, norm_->forward(ctx, std::move(x), {}, {}));
  }

  void backward(Ctx& ctx, Tensor dlogits) override {
    Tensor dx = norm_->backward(ctx, head_->backward(ctx, std::move(dlogits)), false, {}).first;
    dx = dropout_.backward(ctx, blocks_.backward(ctx, std::move(dx)));
    rotary_.end();
    if (position_ && position_->trainable) {
      Tensor dtable = grad_room(ctx, *position_);
      ctx.ops.scatter_rows(dtable, dx, positions_);
      grad_ready(ctx, *position_, std::move(dtable));
    }
    token_->backward(ctx, std::move(dx));
  }

 private:
  std::unique_ptr<Layer> block(const std::string& name, LayerFactory& factory) {
    const DecoderConfig& c = config_;
    return pre_norm_block(name,
                          {.attention = {.features = c.d_model,
                                         .heads = c.heads,
                                         .key_heads = c.key_heads,
                                         .head_width = c.head_width,
                                         .causal = true,
                                         .bias = c.bias,
                                         .output_bias = c.bias,
                                         .dropout = c.attention_dropout,
                                         .keep_probabilities = c.keep_probabilities,
                                         .rotary = position_ ? nullptr : &rotary_},
                           .hidden = c.d_ff,
                           .feed_forward = c.feed_forward,
                           .feed_forward_bias = c.bias,
                           .norm = kind_,
                           .norm_eps = c.norm_eps,
                           .dropout = c.dropout},
                          factory);
  }

  const DecoderConfig config_;
  const NormKind kind_;
  Rotary rotary_;
  std::unique_ptr<Layer> token_;
  Param* const position_;  // null: rotary positions
  DropoutLayer dropout_;
  Chain blocks_;
  std::unique_ptr<Norm> norm_;
  std::unique_ptr<Layer> head_;
  Tensor positions_;  // of the pass
};

}  // namespace

std::unique_ptr<Model> DecoderConfig::make(const ModelConfig& config, LayerFactory& factory) {
  return std::make_unique<Decoder>(config.decoder, factory);
}

void DecoderConfig::batch_fields(const ModelConfig& config, BatchLayout& layout) {
  const DecoderConfig& decoder = config.decoder;
  layout.add({.name = "ids",
              .per = Per::token,
              .high = decoder.vocab,
              .title = "token id",
              .setting = "model.decoder.vocab",
              .why = "a token would be out of range",
              .hint = "the data set needs a model with a larger vocabulary"});
  layout.add({.name = "positions",
              .per = Per::token,
              .high = decoder.positions == "learned" ? decoder.position_rows : std::numeric_limits<int32_t>::max(),
              .collated = true,
              .title = "position",
              .hint = "the model needs more positions"});
}

}  // namespace comera
