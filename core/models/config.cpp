#include "core/layers/tt_shape.h"
#include "core/models/model.h"

namespace comera {

void EncoderConfig::fields(FieldVisitor& v) {
  v.field("layers", layers, {.help = "encoder blocks", .range = {1, 64}});
  v.field("d_model", d_model, {.help = "features of a token", .range = {1, 16384}});
  v.field("heads", heads, {.help = "attention heads; must divide d_model", .range = {1, 256}});
  v.field("d_ff", d_ff, {.help = "features inside the feed-forward part", .range = {1, 65536}});
  v.field("vocab", vocab, {.help = "tokens of the vocabulary", .range = {1, 10000000}});
  v.field("positions", positions, {.help = "rows of the position table; at least model.length", .range = {1, 65536}});
  v.field("segments", segments, {.help = "rows of the segment table", .range = {1, 16}});
  v.field("dropout", dropout, {.help = "dropout of embeddings, residual branches and classifier", .range = {0, 0.95}});
  v.field("attention_dropout", attention_dropout, {.help = "dropout of attention probabilities", .range = {0, 0.95}});
  v.field("norm_eps", norm_eps, {.help = "epsilon of layer norms", .range = {0, 1}});
  v.field("keep_probabilities", keep_probabilities, {.help = "keep attention probabilities for backward; false computes them again: less memory, more time"});
}

void MlpConfig::fields(FieldVisitor& v) {
  v.field("inputs", inputs, {.help = "pixels of an image", .range = {1, 1 << 24}});
  v.field("hidden", hidden, {.help = "features of the hidden layers", .range = {1, 1 << 20}});
  v.field("dropout", dropout, {.help = "dropout after each hidden layer", .range = {0, 0.95}});
}

void ModelConfig::fields(FieldVisitor& v) {
  v.field("kind", kind, {.help = "model family", .choices = {"encoder", "mlp"}});
  v.field("classes", classes, {.help = "classes of the task", .range = {2, 1000000}});
  v.field("length", length, {.help = "tokens of a sequence at most", .range = {3, 65536}});
  v.group("encoder", encoder);
  v.group("mlp", mlp);
  v.group("tt", tt);
}

std::vector<Problem> ModelConfig::problems(bool tensorise) {
  std::vector<Problem> problems;
  const auto linear = [&](int64_t in, int64_t out, const TTOptions& options, const char* path) {
    if (tensorise && options.tensorise) linear_shape(in, out, options, path, problems);
  };
  if (kind == "encoder") {
    if (encoder.d_model % encoder.heads != 0)
      problems.push_back({"encoder.heads", "must divide d_model " + std::to_string(encoder.d_model) + ", is " + std::to_string(encoder.heads), ""});
    if (encoder.positions < length)
      problems.push_back({"encoder.positions", "must be at least model.length " + std::to_string(length) + ", is " + std::to_string(encoder.positions), ""});
    linear(encoder.d_model, encoder.d_model, tt.attention, "tt.attention");
    linear(encoder.d_model, encoder.d_ff, tt.ffn_in, "tt.ffn_in");
    linear(encoder.d_ff, encoder.d_model, tt.ffn_out, "tt.ffn_out");
    linear(encoder.d_model, encoder.d_model, tt.classifier, "tt.classifier");
    if (tensorise && tt.embedding.tensorise) table_shape(encoder.vocab, encoder.d_model, tt.embedding, "tt.embedding", problems);
  } else {
    int64_t in = mlp.inputs;
    for (int64_t out : mlp.hidden) {
      linear(in, out, tt.ffn_in, "tt.ffn_in");
      in = out;
    }
  }
  return problems;
}

}  // namespace comera
