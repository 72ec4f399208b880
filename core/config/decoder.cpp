#include <utility>

#include "core/config/model.h"
#include "core/config/model_parts.h"

namespace comera {

ModelInfo DecoderConfig::info() const {
  return {.choice = {"decoder", "Text decoder", "Transformer decoder, for language models."},
          .reads = Reads::stream,
          .task = "language",
          .why = "its outputs are the next tokens",
          .special = true,
          .vocab = vocab,
          .tied = tied};
}

void DecoderConfig::fields(FieldVisitor& v) {
  v.field("layers", layers, {.title = "Decoder blocks", .help = "decoder blocks", .range = {1, 256}});
  v.field("d_model", d_model, {.title = "Model width (d_model)", .help = "model width", .range = {1, 65536}});
  v.field("d_ff", d_ff, {.title = "Feed-forward width (d_ff)", .help = "width of the feed-forward hidden layer", .range = {1, 262144}});
  v.field("vocab", vocab, {.title = "Vocabulary size", .help = "vocabulary size", .range = {1, 10000000}});
  v.field("heads", heads, {.title = "Attention heads", .help = "attention heads of the queries", .range = {1, 1024}});
  v.field("key_heads", key_heads,
          {.title = "Key and value heads",
           .help = "heads of keys and values, each for heads / key_heads query heads (grouped-query attention); 0: as many as heads",
           .range = {0, 1024}});
  v.field("head_width", head_width,
          {.title = "Head width", .help = "features of an attention head; 0: d_model / heads", .range = {0, 65536}});
  v.field("positions", positions,
          {.title = "Positions",
           .help = "how the model sees positions",
           .choices = {{"rotary", "Rotary", "Queries and keys are rotated by angles in proportion to their position."},
                       {"learned", "Learned", "A trained row is added to each token embedding."}}});
  v.field("rope_theta", rope_theta,
          {.title = "Rotary base (theta)",
           .help = "base of the rotary angles",
           .range = {1, 1e9},
           .when = {"model.decoder.positions", {"rotary"}}});
  v.field("position_rows", position_rows,
          {.title = "Position rows",
           .help = "rows of the learned position embedding; at least model.length",
           .range = {1, 1 << 24},
           .when = {"model.decoder.positions", {"learned"}}});
  v.field("feed_forward", feed_forward,
          {.title = "Feed-forward layer",
           .help = "activation function of the feed-forward layer",
           .choices = activation_choices({{"swiglu", "SwiGLU", "SiLU of one product times another one: three matrices."}})});
  v.field("norm", norm,
          {.title = "Norm",
           .help = "norm before each block's parts and before the head",
           .choices = {{"rms", "RMS norm", "Divided by the root of its mean square, then scaled."},
                       {"layer", "Layer norm", "Centred and divided by its standard deviation, then scaled and shifted."}}});
  v.field("norm_eps", norm_eps, {.title = "Norm epsilon", .help = "epsilon of norms", .range = {0, 1}});
  v.field("dropout", dropout, {.title = "Dropout", .help = "dropout of embeddings and residual branches", .range = {0, 0.95}});
  v.field("attention_dropout", attention_dropout,
          {.title = "Attention dropout", .help = "dropout of attention probabilities", .range = {0, 0.95}});
  v.field("embedding_std", embedding_std, {.title = "Embedding std", .help = "initial standard deviation of embeddings", .range = {0, 10}});
  v.field("bias", bias, {.title = "Biases", .help = "matrices inside blocks have biases"});
  v.field(
      "tied", tied,
      {.title = "Tied head",
       .help = "the head is the token embedding",
       .more =
           "If the embedding is a tensor train, the head is the same train. Its modes are those of a linear layer from d_model to vocab."});
  v.field("keep_probabilities", keep_probabilities, kept_probabilities());
}

bool DecoderConfig::check(const ModelConfig& model, Problems& problems) {
  const DecoderConfig& c = model.decoder;
  bool sizes = problems.at_least(c.layers, 1, "decoder.layers");
  for (const auto& [value, name] : {std::pair{c.heads, "heads"}, {c.d_model, "d_model"}, {c.d_ff, "d_ff"}, {c.vocab, "vocab"}})
    sizes &= problems.at_least(value, 1, std::string("decoder.") + name);
  if (!sizes) return false;
  const auto wrong = [&](const char* name, const std::string& text, const char* hint) {
    problems.add(std::string("decoder.") + name, text, hint);
    sizes = false;
  };
  if (c.head_width == 0 && c.d_model % c.heads != 0)
    wrong("heads", "must divide d_model " + std::to_string(c.d_model) + ", is " + std::to_string(c.heads),
          "or set model.decoder.head_width");
  if (c.heads % c.heads_of_keys() != 0)
    wrong("key_heads", "must divide heads " + std::to_string(c.heads) + ", is " + std::to_string(c.key_heads),
          "each key head serves as many query heads");
  if (sizes && c.positions == "rotary" && c.width_of_head() % 2 != 0)
    wrong("head_width", "must be even with rotary positions, is " + std::to_string(c.width_of_head()), "features are turned in pairs");
  if (c.positions == "learned" && c.position_rows < model.length)
    problems.add("decoder.position_rows",
                 "must be at least model.length " + std::to_string(model.length) + ", is " + std::to_string(c.position_rows),
                 "every token of a sequence needs a row");
  return sizes;
}

std::vector<ModelMatrix> DecoderConfig::matrices(const ModelConfig& model) {
  const DecoderConfig& c = model.decoder;
  const int64_t queries = c.heads * c.width_of_head(), keys = c.heads_of_keys() * c.width_of_head();
  std::vector<ModelMatrix> all = {
      {"attention", c.d_model, queries, &TTKinds::attention}, {"attention", c.d_model, keys, &TTKinds::attention},
      {"attention", queries, c.d_model, &TTKinds::attention}, {"ffn_in", c.d_model, c.d_ff, &TTKinds::ffn_in},
      {"ffn_out", c.d_ff, c.d_model, &TTKinds::ffn_out},      token_table(c.vocab, c.d_model, c.tied)};
  if (!c.tied) all.push_back({"head", c.d_model, c.vocab, &TTKinds::head});
  return all;
}

}  // namespace comera
