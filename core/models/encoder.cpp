// Text encoders (METHODS.md 1.3): token (TTM), position and segment embeddings or rotary positions, and post-norm blocks. For classes a
// linear layer, tanh and a head on the first token follow; for masked tokens a head on each (METHODS.md 22). Letters: T tokens, S
// sequences, D d_model.
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/layers/blocks.h"
#include "core/layers/dense.h"
#include "core/layers/grads.h"
#include "core/layers/weights.h"
#include "core/models/model.h"

namespace comera {
namespace {

NormKind norm_of(const EncoderConfig& config) { return config.norm == "rms" ? NormKind::rms : NormKind::layer; }

// A table that is the head too begins with logits of about 1.
double table_std(const EncoderConfig& config, bool tied) {
  if (config.embedding_std > 0) return config.embedding_std;
  return tied ? 1 / std::sqrt(static_cast<double>(config.d_model)) : 1;
}

// Of the token table.
MatrixSpec token_spec(const EncoderConfig& config, bool tied) {
  return {.name = "emb.token", .in = config.vocab, .out = config.d_model, .std = table_std(config, tied), .tied = tied};
}

// Token + position + segment, norm, dropout. The std of tokens scales the initial values of all tables alike, so the norm takes it away.
class Embeddings final : public Remake {
 public:
  Embeddings(const EncoderConfig& config, LayerFactory& factory, const MatrixSpec& tokens)
      : token_(factory.embedding(tokens)),
        position_(config.rotary ? nullptr
                                : &factory.params().add("emb.position", {config.positions, config.d_model}, ParamKind::table,
                                                        ParamGroup::rest, {Init::normal, tokens.std * config.position_std})),
        first_position_(config.first_position),
        segment_(config.segments > 0 ? &factory.params().add("emb.segment", {config.segments, config.d_model}, ParamKind::table,
                                                             ParamGroup::rest, {Init::normal, tokens.std * config.position_std})
                                     : nullptr),
        norm_("emb.norm", config.d_model, config.norm_eps, factory, norm_of(config)) {
    norm_.add_dropout({config.dropout, factory.next_site()});
  }

  Tensor forward(Ctx& ctx, const DeviceBatch& batch) {
    positions_ = batch.at("positions");
    if (by_field()) segments_ = batch.at("segments");
    Tensor sum = token_->forward(ctx, batch.at("ids"));
    if (position_ || segment_) {
      token_maker_ = ctx.stash.maker(sum);
      ctx.stash.overwritten(sum);
      add_others(ctx, sum);
      if (token_maker_) ctx.stash.offer(sum, *this);
    }
    return norm_.forward(ctx, std::move(sum), {}, {});
  }

  Tensor remake(Ctx& ctx) override {
    Tensor sum = token_maker_->remake(ctx);
    add_others(ctx, sum);
    return sum;
  }
  int depth() const override { return token_maker_->depth(); }
  Layer& tokens() { return *token_; }

  void backward(Ctx& ctx, InParts dy) {
    Tensor dsum = norm_.backward(ctx, std::move(dy), false, {}).first;
    if (position_ && position_->trainable) {
      Tensor dtable = grad_room(ctx, *position_);
      if (first_position_ > 0) ctx.ops.fill(dtable.rows(0, first_position_), 0);
      ctx.ops.scatter_rows(used(dtable), dsum, positions_);
      grad_ready(ctx, *position_, std::move(dtable));
    }
    if (segment_ && segment_->trainable) {
      Tensor dtable = grad_room(ctx, *segment_);
      if (by_field())
        ctx.ops.scatter_rows(dtable, dsum, segments_);
      else
        ctx.ops.column_sum(dtable.view({dsum.size(1)}), dsum);
      grad_ready(ctx, *segment_, std::move(dtable));
    }
    token_->backward(ctx, std::move(dsum));
  }

 private:
  bool by_field() const { return segment_ && segment_->shape[0] > 1; }
  void add_others(Ctx& ctx, const Tensor& sum) const {
    if (position_) {
      op::GatherRows call{sum, used(numbers_of(ctx, *position_)), positions_, true};
      if (by_field()) call.more = {numbers_of(ctx, *segment_), segments_};
      ctx.ops.run(call);
    } else if (by_field()) {
      ctx.ops.gather_rows(sum, numbers_of(ctx, *segment_), segments_, true);
    }
    if (segment_ && !by_field()) {  // one row for all
      const Tensor rows = ctx.temp(sum.shape(), "segment");
      ctx.ops.broadcast_rows(rows, numbers_of(ctx, *segment_).view({sum.size(1)}));
      ctx.ops.add(sum, sum, rows);
    }
  }
  // The rows of the position table from the first one on that a token has.
  Tensor used(const Tensor& table) const { return table.rows(first_position_, table.size(0) - first_position_); }

  std::unique_ptr<Layer> token_;
  Param* const position_;  // null: rotary positions
  const int64_t first_position_;
  Param* const segment_;  // null: none
  Norm norm_;
  Tensor positions_, segments_;
  Remake* token_maker_ = nullptr;  // of the rows of the token table
};

std::unique_ptr<Layer> feed_forward(const std::string& name, const EncoderConfig& config, LayerFactory& factory) {
  return factory.feed_forward({.name = name + ".in", .in = config.d_model, .out = config.d_ff, .kind = LinearKind::ffn_in},
                              activation_of(config.activation), name + ".gelu",
                              {.name = name + ".out", .in = config.d_ff, .out = config.d_model, .kind = LinearKind::ffn_out});
}

std::unique_ptr<Layer> encoder_block(const std::string& name, const EncoderConfig& config, Rotary* rotary, LayerFactory& factory) {
  const AttentionSpec attention{.features = config.d_model,
                                .heads = config.heads,
                                .dropout = config.attention_dropout,
                                .keep_probabilities = config.keep_probabilities,
                                .rotary = rotary};
  const auto residual = [&](const char* part, std::unique_ptr<Layer> inner) {
    return std::make_unique<ResidualNorm>(name + part, std::move(inner), config.d_model, config.norm_eps, config.dropout, factory,
                                          norm_of(config));
  };
  auto block = std::make_unique<Chain>();
  block->add(residual(".attn", std::make_unique<SelfAttention>(name + ".attn", attention, factory)));
  block->add(residual(".ffn", feed_forward(name + ".ffn", config, factory)));
  return block;
}

// Embeddings and blocks: (T, D) of a batch.
class EncoderBody {
 public:
  EncoderBody(const EncoderConfig& config, LayerFactory& factory, bool tied = false)
      : embeddings_(config, factory, token_spec(config, tied)),
        rotary_(config.rotary ? std::optional<Rotary>(std::in_place, kRotaryBase, config.d_model / config.heads) : std::nullopt) {
    std::vector<std::unique_ptr<Layer>> blocks;
    for (int64_t i = 0; i < config.layers; ++i)
      blocks.push_back(encoder_block("enc" + std::to_string(i), config, rotary_ ? &*rotary_ : nullptr, factory));
    add_blocks(blocks_, std::move(blocks), factory.checkpoint_every);
  }
  Tensor forward(Ctx& ctx, const DeviceBatch& batch) {
    if (rotary_) rotary_->begin(ctx, batch.at("positions"));
    Tensor x = blocks_.forward(ctx, embeddings_.forward(ctx, batch));
    if (rotary_ && !ctx.training) rotary_->end();
    return x;
  }
  void backward(Ctx& ctx, Tensor dx) {
    InParts of_embeddings = blocks_.backward_in_parts(ctx, std::move(dx));
    if (rotary_) rotary_->end();
    embeddings_.backward(ctx, std::move(of_embeddings));
  }
  Layer& tokens() { return embeddings_.tokens(); }

 private:
  static constexpr double kRotaryBase = 10000;
  Embeddings embeddings_;
  std::optional<Rotary> rotary_;
  Chain blocks_;
};

class EncoderClassifier final : public Model {
 public:
  EncoderClassifier(const ModelConfig& model, LayerFactory& factory) : body_(model.encoder, factory) {
    const EncoderConfig& config = model.encoder;
    head_.add(factory.linear({"classifier.fc", config.d_model, config.d_model, LinearKind::classifier, Rows::sequences}));
    head_.add(std::make_unique<ActivationLayer>(activation_of(config.classifier_activation), "classifier.tanh", config.d_model, factory));
    head_.add(std::make_unique<DropoutLayer>(config.dropout, factory));
    head_.add(factory.linear("head", config.d_model, model.outputs(), LinearKind::head));
  }

  Tensor forward(Ctx& ctx, const DeviceBatch& batch) override {
    Tensor x = body_.forward(ctx, batch);  // (T, D)
    tokens_ = x.size(0);
    Tensor first = ctx.temp({batch.examples, x.size(1)}, "first tokens");  // (S, D)
    ctx.ops.first_tokens(first, x, ctx.sequences);
    x = {};
    return head_.forward(ctx, std::move(first));
  }

  void backward(Ctx& ctx, Tensor dlogits) override {
    Tensor dfirst = head_.backward(ctx, std::move(dlogits));
    Tensor dx = ctx.temp({tokens_, dfirst.size(1)}, "dfirst tokens");
    ctx.ops.first_tokens_backward(dx, dfirst, ctx.sequences);
    dfirst = {};
    body_.backward(ctx, std::move(dx));
  }

 private:
  EncoderBody body_;
  Chain head_;
  int64_t tokens_ = 0;
};

// A masked language model (METHODS.md 22): a linear layer, its activation, a norm and the logits of each token that counts (C, V).
class MaskedEncoder final : public Model {
 public:
  MaskedEncoder(const ModelConfig& model, LayerFactory& factory) : body_(model.encoder, factory, model.encoder.tied) {
    const EncoderConfig& config = model.encoder;
    first_.add(factory.linear("masked.fc", config.d_model, config.d_model, LinearKind::classifier));
    first_.add(std::make_unique<ActivationLayer>(activation_of(config.activation), "masked.activation", config.d_model, factory));
    norm_ = std::make_unique<Norm>("masked.norm", config.d_model, config.norm_eps, factory, norm_of(config));
    head_ = config.tied ? factory.tied_head(token_spec(config, true), body_.tokens())
                        : factory.linear("head", config.d_model, config.vocab, LinearKind::head);
  }

  Tensor forward(Ctx& ctx, const DeviceBatch& batch) override {
    Tensor x = body_.forward(ctx, batch);  // (T, D)
    tokens_ = x.size(0);
    places_ = batch.places;
    if (places_) {
      Tensor counted = ctx.temp({places_.size(0), x.size(1)}, "tokens that count");
      ctx.ops.gather_rows(counted, x, places_, false);
      x = std::move(counted);
    }
    x = first_.forward(ctx, std::move(x));
    return head_->forward(ctx, norm_->forward(ctx, std::move(x), {}, {}));
  }

  void backward(Ctx& ctx, Tensor dlogits) override {
    Tensor dx = norm_->backward(ctx, head_->backward(ctx, std::move(dlogits)), false, {}).first;
    dx = first_.backward(ctx, std::move(dx));
    if (places_) {
      Tensor dtokens = ctx.temp({tokens_, dx.size(1)}, "gradients of tokens");
      ctx.ops.scatter_rows(dtokens, dx, places_);
      dx = std::move(dtokens);
    }
    body_.backward(ctx, std::move(dx));
  }

 private:
  EncoderBody body_;
  Chain first_;
  std::unique_ptr<Norm> norm_;
  std::unique_ptr<Layer> head_;
  Tensor places_;
  int64_t tokens_ = 0;
};

}  // namespace

std::unique_ptr<Model> EncoderConfig::make(const ModelConfig& config, LayerFactory& factory) {
  if (config.per_token()) return std::make_unique<MaskedEncoder>(config, factory);
  return std::make_unique<EncoderClassifier>(config, factory);
}

void EncoderConfig::batch_fields(const ModelConfig& config, BatchLayout& layout) {
  const EncoderConfig& encoder = config.encoder;
  layout.add({.name = "ids",
              .per = Per::token,
              .high = encoder.vocab,
              .title = "token id",
              .setting = "model.encoder.vocab",
              .why = "a token would be out of range",
              .hint = "the data set needs a model with a larger vocabulary"});
  if (encoder.segments > 1)
    layout.add({.name = "segments",
                .per = Per::token,
                .high = encoder.segments,
                .title = "segment",
                .setting = "model.encoder.segments",
                .why = "a segment would be out of range",
                .hint = "the model needs more segments"});
  layout.add({.name = "positions",
              .per = Per::token,
              .high = encoder.rotary ? std::numeric_limits<int32_t>::max() : encoder.positions - encoder.first_position,
              .collated = true,
              .title = "position",
              .hint = "the model needs more positions"});
}

}  // namespace comera
