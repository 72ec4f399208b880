#include "core/config/model.h"
#include "core/config/model_parts.h"

namespace comera {

ModelInfo EncoderConfig::info() const {
  return {.choice = {"encoder", "Text encoder", "Transformer encoder with a classifier, for text."},
          .reads = Reads::texts,
          .vocab = vocab,
          .tied = tied};
}

void EncoderConfig::fields(FieldVisitor& v) {
  v.field("layers", layers, {.title = "Encoder blocks", .help = "encoder blocks", .range = {1, 64}});
  v.field("d_model", d_model, {.title = "Model width (d_model)", .help = "model width", .range = {1, 16384}});
  v.field("heads", heads, {.title = "Attention heads", .help = "attention heads; must divide d_model", .range = {1, 256}});
  v.field("d_ff", d_ff, {.title = "Feed-forward width (d_ff)", .help = "width of the feed-forward hidden layer", .range = {1, 65536}});
  v.field("vocab", vocab, {.title = "Vocabulary size", .help = "vocabulary size", .range = {1, 10000000}});
  v.field("positions", positions,
          {.title = "Positions",
           .help = "rows of the position embedding; at least model.length",
           .range = {1, 65536},
           .when = {"model.encoder.rotary", {"false"}}});
  v.field("rotary", rotary,
          {.title = "Rotary positions",
           .help = "queries and keys are rotated by angles in proportion to their position (base 10,000); false: a position embedding",
           .more = "Attention learns distances between tokens faster."});
  v.field("segments", segments,
          {.title = "Segments",
           .help = "rows of the segment embedding; text uses 0 and 1; 1: the same row for all tokens; 0: none",
           .range = {0, 16}});
  v.field("first_position", first_position,
          {.title = "First position",
           .help = "row of the position embedding that a sequence begins with (RoBERTa: behind the padding's)",
           .range = {0, 65536},
           .when = {"model.encoder.rotary", {"false"}}});
  v.field("dropout", dropout, {.title = "Dropout", .help = "dropout of embeddings, residual branches and classifier", .range = {0, 0.95}});
  v.field("attention_dropout", attention_dropout,
          {.title = "Attention dropout", .help = "dropout of attention probabilities", .range = {0, 0.95}});
  v.field("embedding_std", embedding_std,
          {.title = "Embedding std",
           .help = "initial standard deviation of token embeddings; 0: 1, with a tied head 1 / sqrt(d_model)",
           .more = "The norm behind embeddings makes their size irrelevant, but at the same learning rate small ones change faster.",
           .range = {0, 10}});
  v.field("position_std", position_std,
          {.title = "Position-embedding std",
           .help = "initial standard deviation of position and segment embeddings, as a multiple of the token embeddings'",
           .range = {0, 10}});
  v.field("norm", norm,
          {.title = "Norm",
           .help = "norm after each residual sum and the embeddings",
           .choices = {{"layer", "Layer norm", "Centred and divided by its standard deviation, then scaled and shifted."},
                       {"rms", "RMS norm", "Divided by the root of its mean square, then scaled."}}});
  v.field("norm_eps", norm_eps, {.title = "Norm epsilon", .help = "epsilon of norms", .range = {0, 1}});
  v.field("activation", activation,
          {.title = "Activation", .help = "activation function of the feed-forward layers", .choices = activation_choices()});
  v.field(
      "tied", tied,
      {.title = "Tied head",
       .help = "the head is the token embedding",
       .more =
           "If the embedding is a tensor train, the head is the same train. Its modes are those of a linear layer from d_model to vocab.",
       .when = {"model.task", {"masked"}}});
  v.field("classifier_activation", classifier_activation,
          {.title = "Classifier activation",
           .help = "activation function of the classifier's hidden layer",
           .choices = activation_choices({{"tanh", "tanh", "The hyperbolic tangent."}})});
  v.field("keep_probabilities", keep_probabilities, kept_probabilities());
}

bool EncoderConfig::check(const ModelConfig& model, Problems& problems) {
  const EncoderConfig& config = model.encoder;
  bool sizes = problems.at_least(config.layers, 1, "encoder.layers");
  sizes &= problems.at_least(config.heads, 1, "encoder.heads");
  sizes &= problems.at_least(config.d_model, 1, "encoder.d_model");
  sizes &= problems.at_least(config.d_ff, 1, "encoder.d_ff");
  sizes &= problems.at_least(config.vocab, 1, "encoder.vocab");
  if (!config.rotary && config.positions < model.length + config.first_position)
    problems.add("encoder.positions",
                 config.first_position == 0
                     ? "must be at least model.length " + std::to_string(model.length) + ", is " + std::to_string(config.positions)
                     : "must be at least model.length and first_position, " + std::to_string(model.length + config.first_position) +
                           ", is " + std::to_string(config.positions),
                 "every token of a sequence needs a row");
  if (sizes && config.d_model % config.heads != 0)
    problems.add("encoder.heads", "must divide d_model " + std::to_string(config.d_model) + ", is " + std::to_string(config.heads),
                 "every head has d_model / heads features");
  else if (sizes && config.rotary && config.d_model / config.heads % 2 != 0)
    problems.add("encoder.heads", "d_model / heads must be even with rotary positions, is " + std::to_string(config.d_model / config.heads),
                 "features are rotated in pairs");
  return sizes;
}

std::vector<ModelMatrix> EncoderConfig::matrices(const ModelConfig& model) {
  const EncoderConfig& c = model.encoder;
  std::vector<ModelMatrix> all = {{"attention", c.d_model, c.d_model, &TTKinds::attention},
                                  {"ffn_in", c.d_model, c.d_ff, &TTKinds::ffn_in},
                                  {"ffn_out", c.d_ff, c.d_model, &TTKinds::ffn_out},
                                  {"classifier", c.d_model, c.d_model, &TTKinds::classifier},
                                  token_table(c.vocab, c.d_model, model.per_token() && c.tied)};
  if (model.per_token() && !c.tied) all.push_back({"head", c.d_model, c.vocab, &TTKinds::head});
  return all;
}

}  // namespace comera
