#include "core/config/model.h"

#include <algorithm>
#include <string_view>
#include <utility>

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
  if (config.positions < model.length + config.first_position)
    problems.add("encoder.positions",
                 config.first_position == 0
                     ? "must be at least model.length " + std::to_string(model.length) + ", is " + std::to_string(config.positions)
                     : "must be at least model.length and first_position, " + std::to_string(model.length + config.first_position) +
                           ", is " + std::to_string(config.positions),
                 "every token of a sequence needs a row");
  if (sizes && config.d_model % config.heads != 0)
    problems.add("encoder.heads", "must divide d_model " + std::to_string(config.d_model) + ", is " + std::to_string(config.heads),
                 "every head has d_model / heads features");
  return sizes;
}

std::vector<ModelMatrix> encoder_matrices(const ModelConfig& model) {
  const EncoderConfig& c = model.encoder;
  std::vector<ModelMatrix> all = {{"attention", c.d_model, c.d_model, &TTKinds::attention},
                                  {"ffn_in", c.d_model, c.d_ff, &TTKinds::ffn_in},
                                  {"ffn_out", c.d_ff, c.d_model, &TTKinds::ffn_out},
                                  {"classifier", c.d_model, c.d_model, &TTKinds::classifier},
                                  {"embedding", c.vocab, c.d_model, &TTKinds::embedding, true}};
  if (model.per_token() && !c.tied) all.push_back({"head", c.d_model, c.vocab, &TTKinds::head});
  return all;
}

bool check_decoder(const ModelConfig& model, Problems& problems) {
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

std::vector<ModelMatrix> decoder_matrices(const ModelConfig& model) {
  const DecoderConfig& c = model.decoder;
  const int64_t queries = c.heads * c.width_of_head(), keys = c.heads_of_keys() * c.width_of_head();
  std::vector<ModelMatrix> all = {
      {"attention", c.d_model, queries, &TTKinds::attention}, {"attention", c.d_model, keys, &TTKinds::attention},
      {"attention", queries, c.d_model, &TTKinds::attention}, {"ffn_in", c.d_model, c.d_ff, &TTKinds::ffn_in},
      {"ffn_out", c.d_ff, c.d_model, &TTKinds::ffn_out},      {"embedding", c.vocab, c.d_model, &TTKinds::embedding, true}};
  if (!c.tied) all.push_back({"head", c.d_model, c.vocab, &TTKinds::head});
  return all;
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

bool check_dlrm(const ModelConfig& model, Problems& problems) {
  const DlrmConfig& c = model.dlrm;
  bool sizes = problems.at_least(c.inputs, 1, "dlrm.inputs");
  sizes &= problems.at_least(c.width, 1, "dlrm.width");
  for (const int64_t rows : c.tables) sizes &= problems.at_least(rows, 1, "dlrm.tables");
  for (const int64_t features : c.bottom) sizes &= problems.at_least(features, 1, "dlrm.bottom");
  for (const int64_t features : c.top) sizes &= problems.at_least(features, 1, "dlrm.top");
  return sizes;
}

std::vector<ModelMatrix> dlrm_matrices(const ModelConfig& model) {
  const DlrmConfig& c = model.dlrm;
  std::vector<ModelMatrix> all;
  const auto add = [&](int64_t in, const std::vector<int64_t>& widths) {
    for (const int64_t out : widths) all.push_back({"ffn_in", std::exchange(in, out), out, &TTKinds::ffn_in});
    return in;
  };
  all.push_back({"ffn_in", add(c.inputs, c.bottom), c.width, &TTKinds::ffn_in});
  const auto vectors = static_cast<int64_t>(c.tables.size()) + 1;
  add(c.width + vectors * (c.itself ? vectors + 1 : vectors - 1) / 2, c.top);
  for (const int64_t rows : c.tables)
    if (rows >= c.min_tt_rows) all.push_back({"embedding", rows, c.width, &TTKinds::embedding, true});
  return all;
}

bool check_cnn(const ModelConfig& model, Problems& problems) {
  const CnnConfig& c = model.cnn;
  bool sizes = true;
  for (const auto& [value, name] : {std::pair{c.height, "height"},
                                    {c.width, "width"},
                                    {c.channels, "channels"},
                                    {c.convolutions, "convolutions"},
                                    {c.kernel, "kernel"},
                                    {c.groups, "groups"}})
    sizes &= problems.at_least(value, 1, std::string("cnn.") + name);
  for (const int64_t width : c.widths) sizes &= problems.at_least(width, 1, "cnn.widths");
  for (const int64_t stride : c.strides) sizes &= problems.at_least(stride, 1, "cnn.strides");
  const auto wrong = [&](const char* name, const std::string& text, const char* hint) {
    problems.add(std::string("cnn.") + name, text, hint);
    sizes = false;
  };
  if (c.widths.empty()) wrong("widths", "must name at least one stage", "");
  if (c.strides.size() != c.widths.size())
    wrong("strides",
          "must have a value for each of the " + std::to_string(c.widths.size()) + " widths, has " + std::to_string(c.strides.size()),
          "every stage has a width and a stride");
  if (c.kernel % 2 == 0) wrong("kernel", "must be odd, is " + std::to_string(c.kernel), "so that a pixel is in the middle");
  if (c.residual && c.convolutions % 2 != 0)
    wrong("convolutions", "must be even with residual blocks, is " + std::to_string(c.convolutions), "each block has two");
  if (!sizes) return false;
  for (const int64_t width : c.widths)
    if (c.norm == "group" && width % c.groups != 0)
      wrong("groups", "must divide the widths, is " + std::to_string(c.groups) + " of " + std::to_string(width), "");
  int64_t height = c.height, across = c.width;
  for (const int64_t stride : c.strides) {
    const auto shrink = [&](int64_t size) { return c.pooling == "stride" ? (size - 1) / stride + 1 : size / stride; };
    height = shrink(height), across = shrink(across);
  }
  if (height < 1 || across < 1)
    wrong("strides", "shrink images of " + std::to_string(c.height) + " x " + std::to_string(c.width) + " to nothing", "");
  return sizes;
}

std::vector<ModelMatrix> cnn_matrices(const ModelConfig& model) {
  const CnnConfig& c = model.cnn;
  std::vector<ModelMatrix> all;
  int64_t in = c.channels;
  const auto add = [&](int64_t kernel, int64_t from, int64_t out) {
    all.push_back({"convolution", kernel * kernel * from, out, &TTKinds::convolution});
  };
  if (c.residual && !c.widths.empty()) {
    add(c.kernel, in, c.widths.front());
    in = c.widths.front();
  }
  for (size_t stage = 0; stage < c.widths.size(); ++stage) {
    const int64_t out = c.widths[stage];
    const bool shrinks = c.pooling == "stride" && stage < c.strides.size() && c.strides[stage] != 1;
    if (c.residual && (in != out || shrinks)) add(1, in, out);
    add(c.kernel, in, out);
    if (c.convolutions > 1) add(c.kernel, out, out);
    in = out;
  }
  return all;
}

bool check_vit(const ModelConfig& model, Problems& problems) {
  const VitConfig& c = model.vit;
  bool sizes = true;
  for (const auto& [value, name] : {std::pair{c.height, "height"},
                                    {c.width, "width"},
                                    {c.channels, "channels"},
                                    {c.patch, "patch"},
                                    {c.layers, "layers"},
                                    {c.d_model, "d_model"},
                                    {c.heads, "heads"},
                                    {c.d_ff, "d_ff"}})
    sizes &= problems.at_least(value, 1, std::string("vit.") + name);
  if (!sizes) return false;
  if (c.d_model % c.heads != 0)
    problems.add("vit.heads", "must divide d_model " + std::to_string(c.d_model) + ", is " + std::to_string(c.heads),
                 "every head has d_model / heads features");
  if (c.patch > c.height || c.patch > c.width)
    problems.add("vit.patch",
                 "must fit on images of " + std::to_string(c.height) + " x " + std::to_string(c.width) + ", is " + std::to_string(c.patch),
                 "");
  return c.patch <= std::min(c.height, c.width) && c.d_model % c.heads == 0;
}

std::vector<ModelMatrix> vit_matrices(const ModelConfig& model) {
  const VitConfig& c = model.vit;
  return {{"convolution", c.patch * c.patch * c.channels, c.d_model, &TTKinds::convolution},
          {"attention", c.d_model, c.d_model, &TTKinds::attention},
          {"ffn_in", c.d_model, c.d_ff, &TTKinds::ffn_in},
          {"ffn_out", c.d_ff, c.d_model, &TTKinds::ffn_out}};
}

// The models: core/models builds them.
struct ModelKind {
  Choice choice;
  bool (*check)(const ModelConfig& model, Problems& problems);  // false: sizes that no shape can be chosen for
  std::vector<ModelMatrix> (*matrices)(const ModelConfig& model);
  ImageSize (*image)(const ModelConfig& model) = nullptr;
};

ImageSize cnn_image(const ModelConfig& model) { return {model.cnn.height, model.cnn.width, model.cnn.channels}; }
ImageSize vit_image(const ModelConfig& model) { return {model.vit.height, model.vit.width, model.vit.channels}; }

constexpr ModelKind kKinds[] = {
    {{"encoder", "Text encoder", "Transformer encoder with a classifier, for text."}, check_encoder, encoder_matrices},
    {{"mlp", "Image network (MLP)", "Multilayer perceptron, for images."}, check_mlp, mlp_matrices},
    {{"cnn", "Image network (convolutions)", "Convolutional network, for images."}, check_cnn, cnn_matrices, cnn_image},
    {{"vit", "Image transformer", "Transformer over patches of images (ViT)."}, check_vit, vit_matrices, vit_image},
    {{"decoder", "Text decoder", "Transformer decoder, for language models."}, check_decoder, decoder_matrices},
    {{"dlrm", "Recommendation (DLRM)", "Tables of categorical columns, a bottom and a top MLP, dot interaction, for click-through rates."},
     check_dlrm,
     dlrm_matrices},
};

// The tasks: core/tasks has their losses and scores.
struct TaskKind {
  Choice choice;
  int64_t classes = 0, outputs = 0;  // that it has; 0: any number of classes, an output for each
  const char* per_token = nullptr;   // its classes are the tokens of the vocabulary; the kind of model that has such outputs
};
constexpr TaskKind kTasks[] = {
    {{"classification", "Classification", "One of several classes an example: softmax and cross-entropy."}},
    {{"binary", "Binary classification", "One of two classes from one logit: sigmoid and cross-entropy. Evaluations add AUC."}, 2, 1},
    {{"language", "Language model", "The next token of each: softmax and cross-entropy. Evaluations add the perplexity."}, 0, 0, "decoder"},
    {{"masked", "Masked language model", "Tokens that are masked: softmax and cross-entropy. Evaluations add the perplexity."},
     0,
     0,
     "encoder"},
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

// Of a feed-forward layer, behind `more`.
std::vector<Choice> activation_choices(std::vector<Choice> more = {}) {
  const Choice all[] = {{"gelu", "GELU", "x times the normal distribution function of x."},
                        {"gelu_tanh", "GELU (tanh)", "GELU approximated by tanh, as in GPT-2."},
                        {"silu", "SiLU", "x times the logistic function of x."},
                        {"relu", "ReLU", "max(x, 0)."}};
  more.insert(more.end(), std::begin(all), std::end(all));
  return more;
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
  v.field("segments", segments,
          {.title = "Segments",
           .help = "rows of the segment embedding; text uses 0 and 1; 1: the same row for all tokens; 0: none",
           .range = {0, 16}});
  v.field("first_position", first_position,
          {.title = "First position",
           .help = "row of the position embedding that a sequence begins with (RoBERTa: behind the padding's)",
           .range = {0, 65536}});
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
  v.field("activation", activation,
          {.title = "Activation", .help = "activation function of the feed-forward layers", .choices = activation_choices()});
  v.field("tied", tied, {.title = "Tied head", .help = "the head is the token embedding", .when = {"model.task", {"masked"}}});
  v.field("classifier_activation", classifier_activation,
          {.title = "Classifier activation",
           .help = "activation function of the classifier's hidden layer",
           .choices = {{"tanh", "tanh", "The hyperbolic tangent."}, {"relu", "ReLU", "max(x, 0)."}}});
  v.field(
      "keep_probabilities", keep_probabilities,
      {.title = "Keep probabilities", .help = "keep attention probabilities for backward; false: recompute them, less memory, more time"});
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
  v.field("tied", tied, {.title = "Tied head", .help = "the head is the token embedding"});
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

void DlrmConfig::fields(FieldVisitor& v) {
  v.field("inputs", inputs, {.title = "Numeric columns", .help = "numeric columns of an example", .range = {1, 1 << 20}});
  v.field("tables", tables,
          {.title = "Table rows",
           .help = "rows of each category's table; values for which no row is left share rows",
           .range = {1, 2147483647}});
  v.field("width", width, {.title = "Embedding width", .help = "features of a table row", .range = {1, 65536}});
  v.field("bottom", bottom, {.title = "Bottom MLP", .help = "widths of the hidden layers over the numeric columns", .range = {1, 1 << 20}});
  v.field("top", top, {.title = "Top MLP", .help = "widths of the hidden layers behind the interaction", .range = {1, 1 << 20}});
  v.field("itself", itself, {.title = "Self-interaction", .help = "the interaction includes the product of each vector with itself"});
  v.field("min_tt_rows", min_tt_rows,
          {.title = "Minimum rows of a TT table",
           .help = "tables with fewer rows stay dense",
           .range = {1, 2147483647},
           .when = {"method.weights", {"tt"}}});
}

void CnnConfig::fields(FieldVisitor& v) {
  v.field("height", height, {.title = "Image height", .unit = "pixels", .help = "height of an image", .range = {1, 1 << 14}});
  v.field("width", width, {.title = "Image width", .unit = "pixels", .help = "width of an image", .range = {1, 1 << 14}});
  v.field("channels", channels, {.title = "Image channels", .help = "values of a pixel, side by side", .range = {1, 1 << 14}});
  v.field("widths", widths, {.title = "Stage widths", .help = "channels of each stage", .range = {1, 1 << 16}});
  v.field("strides", strides, {.title = "Stage strides", .help = "factor by which each stage shrinks the image", .range = {1, 64}});
  v.field("convolutions", convolutions, {.title = "Convolutions per stage", .help = "convolutions of a stage", .range = {1, 256}});
  v.field("kernel", kernel,
          {.title = "Kernel size", .unit = "pixels", .help = "height and width of a convolution's window; odd", .range = {1, 63}});
  v.field("pooling", pooling,
          {.title = "Downsampling",
           .help = "how a stage shrinks the image",
           .choices = {{"stride", "Stride", "Its first convolution takes every stride-th window."},
                       {"max", "Max pooling", "The largest pixel of each square, before the first convolution."},
                       {"average", "Average pooling", "The mean of each square, before the first convolution."}}});
  v.field("norm", norm,
          {.title = "Norm",
           .help = "norm after each convolution",
           .choices = {{"batch", "Batch norm", "Each channel by its mean and variance over the batch; evaluations use running ones."},
                       {"group", "Group norm", "Groups of channels of each image by their mean and variance."},
                       {"none", "None", "Convolutions have biases instead."}}});
  v.field("groups", groups,
          {.title = "Groups",
           .help = "groups of channels; must divide the widths",
           .range = {1, 1 << 16},
           .when = {"model.cnn.norm", {"group"}}});
  v.field("norm_eps", norm_eps,
          {.title = "Norm epsilon", .help = "epsilon of norms", .range = {0, 1}, .when = {"model.cnn.norm", {"batch", "group"}}});
  v.field("norm_momentum", norm_momentum,
          {.title = "Norm momentum",
           .help = "share of a batch in the running mean and variance",
           .range = {0, 1},
           .when = {"model.cnn.norm", {"batch"}}});
  v.field("activation", activation,
          {.title = "Activation",
           .help = "activation function after the norms",
           .choices = {{"relu", "ReLU", "max(x, 0)."}, {"gelu", "GELU", "x times the normal distribution function of x."}}});
  v.field("residual", residual, {.title = "Residual blocks", .help = "blocks of two convolutions around a shortcut"});
  v.field("dropout", dropout, {.title = "Dropout", .help = "dropout before the head", .range = {0, 0.95}});
}

void VitConfig::fields(FieldVisitor& v) {
  v.field("height", height, {.title = "Image height", .unit = "pixels", .help = "height of an image", .range = {1, 1 << 14}});
  v.field("width", width, {.title = "Image width", .unit = "pixels", .help = "width of an image", .range = {1, 1 << 14}});
  v.field("channels", channels, {.title = "Image channels", .help = "values of a pixel, side by side", .range = {1, 1 << 14}});
  v.field("patch", patch,
          {.title = "Patch size",
           .unit = "pixels",
           .help = "height and width of a patch, which is one token; pixels that are left over at the right and below are not seen",
           .range = {1, 1024}});
  v.field("layers", layers, {.title = "Blocks", .help = "blocks of attention and feed-forward layer", .range = {1, 256}});
  v.field("d_model", d_model, {.title = "Model width (d_model)", .help = "model width", .range = {1, 65536}});
  v.field("heads", heads, {.title = "Attention heads", .help = "attention heads; must divide d_model", .range = {1, 1024}});
  v.field("d_ff", d_ff, {.title = "Feed-forward width (d_ff)", .help = "width of the feed-forward hidden layer", .range = {1, 262144}});
  v.field("activation", activation,
          {.title = "Activation", .help = "activation function of the feed-forward layers", .choices = activation_choices()});
  v.field("norm_eps", norm_eps, {.title = "Norm epsilon", .help = "epsilon of norms", .range = {0, 1}});
  v.field("dropout", dropout, {.title = "Dropout", .help = "dropout of embeddings and residual branches", .range = {0, 0.95}});
  v.field("attention_dropout", attention_dropout,
          {.title = "Attention dropout", .help = "dropout of attention probabilities", .range = {0, 0.95}});
  v.field("embedding_std", embedding_std,
          {.title = "Embedding std", .help = "initial standard deviation of class token and positions", .range = {0, 10}});
  v.field("qkv_bias", qkv_bias, {.title = "Query, key and value biases", .help = "queries, keys and values have biases"});
  v.field(
      "keep_probabilities", keep_probabilities,
      {.title = "Keep probabilities", .help = "keep attention probabilities for backward; false: recompute them, less memory, more time"});
}

void ModelConfig::fields(FieldVisitor& v) {
  v.field("kind", kind, {.title = "Model kind", .help = "model family", .choices = choices_of(kKinds)});
  v.field("task", task,
          {.title = "Task", .help = "task that the outputs are trained for: its loss and scores", .choices = choices_of(kTasks)});
  v.field("classes", classes,
          {.title = "Classes",
           .help = "classes of the task",
           .range = {2, 1000000},
           .when = {"model.kind", {"encoder", "mlp", "cnn", "vit", "dlrm"}}});
  v.field("length", length,
          {.title = "Sequence length",
           .unit = "tokens",
           .help = "maximum sequence length",
           .range = {3, 65536},
           .when = {"model.kind", {"encoder", "decoder"}}});
  v.group("encoder", encoder, {.title = "Text encoder", .main = true, .when = {"model.kind", {"encoder"}}});
  v.group("decoder", decoder, {.title = "Text decoder", .main = true, .when = {"model.kind", {"decoder"}}});
  v.group("mlp", mlp, {.title = "Image network (MLP)", .main = true, .when = {"model.kind", {"mlp"}}});
  v.group("cnn", cnn, {.title = "Image network (convolutions)", .main = true, .when = {"model.kind", {"cnn"}}});
  v.group("vit", vit, {.title = "Image transformer", .main = true, .when = {"model.kind", {"vit"}}});
  v.group("dlrm", dlrm, {.title = "Recommendation (DLRM)", .main = true, .when = {"model.kind", {"dlrm"}}});
  v.group("tt", tt, {.title = "Tensor trains", .when = {"method.weights", {"tt"}}});
}

bool ModelConfig::per_token() const {
  const TaskKind* row = row_of(kTasks, task);
  return row && row->per_token;
}

int64_t ModelConfig::outputs() const {
  const TaskKind* row = row_of(kTasks, task);
  if (row && row->per_token) return row->per_token == std::string_view("encoder") ? encoder.vocab : decoder.vocab;
  return row && row->outputs > 0 ? row->outputs : classes;
}

ImageSize ModelConfig::image() const {
  const ModelKind* row = row_of(kKinds, kind);
  return row && row->image ? row->image(*this) : ImageSize();
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
  const TaskKind* of_task = row_of(kTasks, task);
  if (row && of_task && of_task->per_token && kind != of_task->per_token)
    problems.add("task", task + " needs model.kind " + of_task->per_token + ", is " + kind, "");
  if (row && of_task && !of_task->per_token && kind == "decoder")
    problems.add("task", "must be language with model.kind decoder, is " + task, "its outputs are the next tokens");
  if (row && tensorise && tt.embedding.tensorise && per_token())
    if (kind == "decoder" ? decoder.tied : encoder.tied)
      problems.add(kind + ".tied", "needs a dense token embedding", "set model.tt.embedding.tensorise=false, or an own head");
  if (tensorise && tt.head.tensorise && !per_token())
    problems.add("tt.head.tensorise", "is for heads of language models, the task is " + task, "the head of a few classes stays dense");
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
