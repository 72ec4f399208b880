#include "core/config/model.h"

#include <algorithm>

#include "core/config/tt_shape.h"

namespace comera {
namespace {

// Collects problems; hidden layers of one kind may have the same one, which is said once.
struct Problems {
  std::vector<Problem> list;

  void add(const std::string& path, const std::string& text, const std::string& hint) {
    const bool known = std::any_of(list.begin(), list.end(), [&](const Problem& p) { return p.path == path && p.text == text; });
    if (!known) list.push_back({path, text, hint});
  }
  void add(const std::vector<Problem>& found) {
    for (const Problem& problem : found) add(problem.path, problem.text, problem.hint);
  }
  // A size that came by code, past the ranges of the fields.
  bool at_least(int64_t value, int64_t least, const std::string& path) {
    if (value < least) add(path, "must be at least " + std::to_string(least) + ", is " + std::to_string(value), "");
    return value >= least;
  }
  void linear(int64_t in, int64_t out, const TTOptions& options, const char* path) {
    if (!options.tensorise) return;
    std::vector<Problem> found;
    linear_shape(in, out, options, path, found);
    add(found);
  }
};

void check_encoder(const ModelConfig& model, bool tensorise, Problems& problems) {
  const EncoderConfig& config = model.encoder;
  bool sizes = problems.at_least(config.layers, 1, "encoder.layers");
  sizes &= problems.at_least(config.heads, 1, "encoder.heads");
  sizes &= problems.at_least(config.d_model, 1, "encoder.d_model");
  sizes &= problems.at_least(config.d_ff, 1, "encoder.d_ff");
  sizes &= problems.at_least(config.vocab, 1, "encoder.vocab");
  if (config.positions < model.length)
    problems.add("encoder.positions",
                 "must be at least model.length " + std::to_string(model.length) + ", is " + std::to_string(config.positions),
                 "every token of a sequence needs a row");
  if (!sizes) return;
  if (config.d_model % config.heads != 0)
    problems.add("encoder.heads", "must divide d_model " + std::to_string(config.d_model) + ", is " + std::to_string(config.heads),
                 "every head has d_model / heads features");
  if (!tensorise) return;
  problems.linear(config.d_model, config.d_model, model.tt.attention, "tt.attention");
  problems.linear(config.d_model, config.d_ff, model.tt.ffn_in, "tt.ffn_in");
  problems.linear(config.d_ff, config.d_model, model.tt.ffn_out, "tt.ffn_out");
  problems.linear(config.d_model, config.d_model, model.tt.classifier, "tt.classifier");
  if (!model.tt.embedding.tensorise) return;
  std::vector<Problem> found;
  table_shape(config.vocab, config.d_model, model.tt.embedding, "tt.embedding", found);
  problems.add(found);
}

void check_mlp(const ModelConfig& model, bool tensorise, Problems& problems) {
  bool sizes = problems.at_least(model.mlp.inputs, 1, "mlp.inputs");
  for (int64_t features : model.mlp.hidden) sizes &= problems.at_least(features, 1, "mlp.hidden");
  if (!sizes || !tensorise) return;
  int64_t in = model.mlp.inputs;
  for (int64_t out : model.mlp.hidden) {
    problems.linear(in, out, model.tt.ffn_in, "tt.ffn_in");
    in = out;
  }
}

}  // namespace

void EncoderConfig::fields(FieldVisitor& v) {
  v.field("layers", layers, {.title = "Encoder blocks", .help = "encoder blocks", .range = {1, 64}});
  v.field("d_model", d_model, {.title = "Model width (d_model)", .help = "model width", .range = {1, 16384}});
  v.field("heads", heads, {.title = "Attention heads", .help = "attention heads; must divide d_model", .range = {1, 256}});
  v.field("d_ff", d_ff, {.title = "Feed-forward width (d_ff)", .help = "width of the feed-forward hidden layer", .range = {1, 65536}});
  v.field("vocab", vocab, {.title = "Vocabulary size", .help = "vocabulary size", .range = {1, 10000000}});
  v.field("positions", positions,
          {.title = "Positions", .help = "rows of the position embedding; at least model.length", .range = {1, 65536}});
  v.field("segments", segments, {.title = "Segments", .help = "rows of the segment embedding; text uses 0 and 1", .range = {2, 16}});
  v.field("dropout", dropout, {.title = "Dropout", .help = "dropout of embeddings, residual branches and classifier", .range = {0, 0.95}});
  v.field("attention_dropout", attention_dropout,
          {.title = "Attention dropout", .help = "dropout of attention probabilities", .range = {0, 0.95}});
  v.field("position_std", position_std,
          {.title = "Position-embedding std",
           .help = "initial standard deviation of position and segment embeddings (token embeddings: 1)",
           .range = {0, 10}});
  v.field("norm_eps", norm_eps, {.title = "Norm epsilon", .help = "epsilon of layer norms", .range = {0, 1}});
  v.field(
      "keep_probabilities", keep_probabilities,
      {.title = "Keep probabilities", .help = "keep attention probabilities for backward; false: recompute them, less memory, more time"});
}

void MlpConfig::fields(FieldVisitor& v) {
  v.field("inputs", inputs, {.title = "Inputs", .unit = "pixels", .help = "pixels of an image", .range = {1, 1 << 24}});
  v.field("hidden", hidden, {.title = "Hidden width", .help = "widths of the hidden layers", .range = {1, 1 << 20}});
  v.field("activation", activation,
          {.title = "Activation",
           .help = "activation function of the hidden layers",
           .choices = {{"relu", "ReLU", "max(x, 0)."}, {"gelu", "GELU", "x times the normal distribution function of x."}}});
  v.field("dropout", dropout, {.title = "Dropout", .help = "dropout after each hidden layer", .range = {0, 0.95}});
}

void ModelConfig::fields(FieldVisitor& v) {
  v.field("kind", kind,
          {.title = "Model kind",
           .help = "model family",
           .choices = {{"encoder", "Text encoder", "Transformer encoder with a classifier, for text."},
                       {"mlp", "Image network (MLP)", "Multilayer perceptron, for images."}}});
  v.field("classes", classes, {.title = "Classes", .help = "classes of the task", .range = {2, 1000000}});
  v.field("length", length,
          {.title = "Sequence length",
           .unit = "tokens",
           .help = "maximum sequence length",
           .range = {3, 65536},
           .when = {"model.kind", {"encoder"}}});
  v.group("encoder", encoder, {.title = "Text encoder", .main = true, .when = {"model.kind", {"encoder"}}});
  v.group("mlp", mlp, {.title = "Image network (MLP)", .main = true, .when = {"model.kind", {"mlp"}}});
  v.group("tt", tt, {.title = "Tensor trains", .when = {"method.weights", {"tt"}}});
}

std::vector<Problem> ModelConfig::problems(bool tensorise) {
  Problems problems;
  problems.at_least(classes, 2, "classes");
  if (kind == "encoder") check_encoder(*this, tensorise, problems);
  if (kind == "mlp") check_mlp(*this, tensorise, problems);
  return problems.list;
}

}  // namespace comera
