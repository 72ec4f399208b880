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
};

bool check_encoder(const ModelConfig& model, Problems& problems) {
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
  if (sizes && config.d_model % config.heads != 0)
    problems.add("encoder.heads", "must divide d_model " + std::to_string(config.d_model) + ", is " + std::to_string(config.heads),
                 "every head has d_model / heads features");
  return sizes;
}

std::vector<ModelMatrix> encoder_matrices(const ModelConfig& model) {
  const EncoderConfig& c = model.encoder;
  return {{"attention", c.d_model, c.d_model, &TTKinds::attention},
          {"ffn_in", c.d_model, c.d_ff, &TTKinds::ffn_in},
          {"ffn_out", c.d_ff, c.d_model, &TTKinds::ffn_out},
          {"classifier", c.d_model, c.d_model, &TTKinds::classifier},
          {"embedding", c.vocab, c.d_model, &TTKinds::embedding, true}};
}

bool check_mlp(const ModelConfig& model, Problems& problems) {
  bool sizes = problems.at_least(model.mlp.inputs, 1, "mlp.inputs");
  for (int64_t features : model.mlp.hidden) sizes &= problems.at_least(features, 1, "mlp.hidden");
  return sizes;
}

std::vector<ModelMatrix> mlp_matrices(const ModelConfig& model) {
  std::vector<ModelMatrix> all;
  int64_t in = model.mlp.inputs;
  for (const int64_t out : model.mlp.hidden) {
    all.push_back({"ffn_in", in, out, &TTKinds::ffn_in});
    in = out;
  }
  return all;
}

// The models: core/models builds them.
struct ModelKind {
  Choice choice;
  bool (*check)(const ModelConfig& model, Problems& problems);  // false: sizes that no shape can be chosen for
  std::vector<ModelMatrix> (*matrices)(const ModelConfig& model);
};
constexpr ModelKind kKinds[] = {
    {{"encoder", "Text encoder", "Transformer encoder with a classifier, for text."}, check_encoder, encoder_matrices},
    {{"mlp", "Image network (MLP)", "Multilayer perceptron, for images."}, check_mlp, mlp_matrices},
};

// The tasks: core/tasks has their losses and scores.
struct TaskKind {
  Choice choice;
  int64_t classes = 0, outputs = 0;  // that it has; 0: any number of classes, an output for each
};
constexpr TaskKind kTasks[] = {
    {{"classification", "Classification", "One of several classes an example: softmax and cross-entropy."}},
    {{"binary", "Binary classification", "One of two classes from one logit: sigmoid and cross-entropy. Evaluations add AUC."}, 2, 1},
};

// The row that `id` chooses; null where it is no choice.
template <class Row, size_t N>
const Row* row_of(const Row (&rows)[N], const std::string& id) {
  for (const Row& row : rows)
    if (id == row.choice.id) return &row;
  return nullptr;
}

template <class Row, size_t N>
std::vector<Choice> choices_of(const Row (&rows)[N]) {
  std::vector<Choice> choices;
  for (const Row& row : rows) choices.push_back(row.choice);
  return choices;
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
  v.field("norm", norm,
          {.title = "Norm",
           .help = "norm after each residual sum and the embeddings",
           .choices = {{"layer", "Layer norm", "Centred and divided by its standard deviation, then scaled and shifted."},
                       {"rms", "RMS norm", "Divided by the root of its mean square, then scaled."}}});
  v.field("norm_eps", norm_eps, {.title = "Norm epsilon", .help = "epsilon of norms", .range = {0, 1}});
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
  v.field("kind", kind, {.title = "Model kind", .help = "model family", .choices = choices_of(kKinds)});
  v.field("task", task,
          {.title = "Task", .help = "task that the outputs are trained for: its loss and scores", .choices = choices_of(kTasks)});
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

int64_t ModelConfig::outputs() const {
  const TaskKind* row = row_of(kTasks, task);
  return row && row->outputs > 0 ? row->outputs : classes;
}

std::vector<ModelMatrix> matrices_of(const ModelConfig& config) {
  const ModelKind* row = row_of(kKinds, config.kind);
  std::vector<ModelMatrix> all = row ? row->matrices(config) : std::vector<ModelMatrix>();
  if (std::any_of(all.begin(), all.end(), [](const ModelMatrix& matrix) { return matrix.in < 1 || matrix.out < 1; })) all.clear();
  return all;
}

std::vector<Problem> ModelConfig::problems(bool tensorise) {
  Problems problems;
  problems.at_least(classes, 2, "classes");
  if (const TaskKind* row = row_of(kTasks, task); row && row->classes > 0 && classes != row->classes)
    problems.add("classes", "must be " + std::to_string(row->classes) + " with model.task " + task + ", is " + std::to_string(classes),
                 "use model.task classification for other numbers");
  const ModelKind* row = row_of(kKinds, kind);
  if (!row || !row->check(*this, problems) || !tensorise) return problems.list;
  for (const ModelMatrix& matrix : row->matrices(*this)) {
    const TTOptions& options = tt.*matrix.options;
    std::vector<Problem> found;
    if (options.tensorise)
      (matrix.table ? table_shape : linear_shape)(matrix.in, matrix.out, options, (std::string("tt.") + matrix.kind).c_str(), found);
    problems.add(found);
  }
  return problems.list;
}

}  // namespace comera
