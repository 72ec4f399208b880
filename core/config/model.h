// The models: the settings of each, and what menus and checks have to know of it. Free of layer types, so that configs and forms can be had
// without the training core, where the layers of each are (core/models).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/fields.h"
#include "core/config/tasks.h"
#include "core/config/tt.h"

namespace comera {

struct BatchLayout;
class LayerFactory;
class Model;
struct ModelConfig;
class Problems;

// The data that a model reads: rows of text, running text, images, click logs.
enum class Reads : unsigned char { texts, stream, images, clicks };

struct ImageSize {
  int64_t height = 0, width = 0, channels = 0;
};

struct ModelInfo {
  Choice choice = {""};  // of model.kind
  Reads reads = Reads::images;
  const char *task = nullptr, *why = "";  // the only task that it is for
  bool special = false;                   // in menus behind the others
  int64_t vocab = 0;                      // classes of the outputs of a token
  bool tied = false;                      // its head for tokens is the token table
  ImageSize image = {};                   // that it reads; 0: any of as many values
  std::vector<int64_t> tables = {};       // rows of the table of each category
};

// A matrix or table that may be a tensor train.
struct ModelMatrix {
  const char* kind;  // its group in model.tt: "ffn_in"
  int64_t in, out;   // of a table: rows, columns
  TTOptions TTKinds::*options;
  bool table = false;
};

// Every size of a model is a field. Each has besides: `check`, false where no shape can be chosen for its sizes; the matrices that may be
// tensor trains, which say what of model.tt it uses; the fields of a batch that it reads; its layers.
struct EncoderConfig {
  int64_t layers = 6, d_model = 768, heads = 12, d_ff = 3072;
  int64_t vocab = 30522, positions = 512, segments = 2;
  int64_t first_position = 0;  // row of the position embedding that a sequence begins with
  double dropout = 0.1, attention_dropout = 0.1, norm_eps = 1e-9;
  std::string norm = "layer";  // layer | rms
  std::string activation = "gelu", classifier_activation = "tanh";
  bool tied = true;                // the head of a masked language model is the token table
  bool rotary = false;             // queries and keys are rotated by their positions, and there is no position table
  double embedding_std = 0;        // of the first token table; 0: 1, of a tied head 1 / sqrt(d_model)
  double position_std = 1;         // of the first position and segment tables, over that of the token table
  bool keep_probabilities = true;  // false: attention recomputes them in backward, less memory, more time
  ModelInfo info() const;
  void fields(FieldVisitor& v);
  static bool check(const ModelConfig& model, Problems& problems);
  static std::vector<ModelMatrix> matrices(const ModelConfig& model);
  static void batch_fields(const ModelConfig& model, BatchLayout& layout);
  static std::unique_ptr<Model> make(const ModelConfig& model, LayerFactory& factory);
};

struct DecoderConfig {
  int64_t layers = 8, d_model = 512, d_ff = 1376, vocab = 32000;
  int64_t heads = 8, key_heads = 0, head_width = 0;  // 0: as many as heads; d_model / heads
  std::string positions = "rotary";                  // rotary | learned
  double rope_theta = 10000;
  int64_t position_rows = 1024;         // of learned positions
  std::string feed_forward = "swiglu";  // swiglu | gelu | gelu_tanh | silu | relu
  std::string norm = "rms";             // layer | rms
  double norm_eps = 1e-6, dropout = 0, attention_dropout = 0, embedding_std = 0.02;
  bool bias = false;                // of the matrices inside blocks
  bool tied = false;                // the head is the token table
  bool keep_probabilities = false;  // as of EncoderConfig
  ModelInfo info() const;
  void fields(FieldVisitor& v);
  static bool check(const ModelConfig& model, Problems& problems);
  static std::vector<ModelMatrix> matrices(const ModelConfig& model);
  static void batch_fields(const ModelConfig& model, BatchLayout& layout);
  static std::unique_ptr<Model> make(const ModelConfig& model, LayerFactory& factory);

  int64_t width_of_head() const { return head_width > 0 ? head_width : d_model / heads; }
  int64_t heads_of_keys() const { return key_heads > 0 ? key_heads : heads; }
};

struct MlpConfig {
  int64_t inputs = 784;
  std::vector<int64_t> hidden = {512, 256};
  std::string activation = "relu";  // relu | gelu
  double dropout = 0.0;
  ModelInfo info() const;
  void fields(FieldVisitor& v);
  static bool check(const ModelConfig& model, Problems& problems);
  static std::vector<ModelMatrix> matrices(const ModelConfig& model);
  static void batch_fields(const ModelConfig& model, BatchLayout& layout);
  static std::unique_ptr<Model> make(const ModelConfig& model, LayerFactory& factory);
};

// Recommendation (METHODS.md 20).
struct DlrmConfig {
  int64_t inputs = 13;  // numbers of an example
  // Rows of the table of each categorical column, as counted in the published subset of Criteo's display ads.
  std::vector<int64_t> tables = {1460, 583,   10131227, 2202608, 305,  24,   12517, 633,     3,  93145, 5683,   8351593, 3194,
                                 27,   14992, 5461306,  10,      5652, 2173, 4,     7046547, 18, 15,    286181, 105,     142572};
  int64_t width = 16;  // features of a row
  std::vector<int64_t> bottom = {512, 256, 64}, top = {512, 256};
  bool itself = false;         // the interaction has the products of vectors with themselves, too
  int64_t min_tt_rows = 1000;  // smaller tables stay dense
  ModelInfo info() const;
  void fields(FieldVisitor& v);
  static bool check(const ModelConfig& model, Problems& problems);
  static std::vector<ModelMatrix> matrices(const ModelConfig& model);
  static void batch_fields(const ModelConfig& model, BatchLayout& layout);
  static std::unique_ptr<Model> make(const ModelConfig& model, LayerFactory& factory);
};

// Stages of convolutions over images of height x width pixels with some channels.
struct CnnConfig {
  int64_t height = 28, width = 28, channels = 1;
  std::vector<int64_t> widths = {16, 32, 64};  // channels of each stage
  std::vector<int64_t> strides = {1, 2, 2};    // by which each stage shrinks the image
  int64_t convolutions = 2;                    // of a stage
  int64_t kernel = 3;
  std::string pooling = "stride";  // stride | max | average
  std::string norm = "batch";      // batch | group | none
  int64_t groups = 8;              // of group norm
  double norm_eps = 1e-5, norm_momentum = 0.1;
  std::string activation = "relu";  // relu | gelu
  bool residual = false;
  double dropout = 0;
  ModelInfo info() const;
  void fields(FieldVisitor& v);
  static bool check(const ModelConfig& model, Problems& problems);
  static std::vector<ModelMatrix> matrices(const ModelConfig& model);
  static void batch_fields(const ModelConfig& model, BatchLayout& layout);
  static std::unique_ptr<Model> make(const ModelConfig& model, LayerFactory& factory);
};

// A transformer over patches of images.
struct VitConfig {
  int64_t height = 28, width = 28, channels = 1;
  int64_t patch = 4;  // its height and width
  int64_t layers = 4, d_model = 64, heads = 4, d_ff = 128;
  std::string activation = "gelu";
  double norm_eps = 1e-12, dropout = 0, attention_dropout = 0;
  double embedding_std = 0.02;     // of class token and positions at first
  bool qkv_bias = true;            // queries, keys and values have biases
  bool keep_probabilities = true;  // as of EncoderConfig
  ModelInfo info() const;
  void fields(FieldVisitor& v);
  static bool check(const ModelConfig& model, Problems& problems);
  static std::vector<ModelMatrix> matrices(const ModelConfig& model);
  static void batch_fields(const ModelConfig& model, BatchLayout& layout);
  static std::unique_ptr<Model> make(const ModelConfig& model, LayerFactory& factory);
};

struct ModelConfig {
  std::string kind = "encoder";
  std::string task = "classification";  // what its outputs mean (tasks.h)
  int64_t classes = 3;
  int64_t length = 128;  // tokens a sequence at most
  EncoderConfig encoder;
  DecoderConfig decoder;
  MlpConfig mlp;
  CnnConfig cnn;
  VitConfig vit;
  DlrmConfig dlrm;
  TTKinds tt;

  // f(settings) for each, in the order of the groups.
  static void each(auto& all, auto&& f) {
    f(all.encoder);
    f(all.decoder);
    f(all.mlp);
    f(all.cnn);
    f(all.vit);
    f(all.dlrm);
  }

  // f(settings) for the one that `kind` chooses; false: there is none of that name.
  bool with_chosen(auto&& f) const {
    bool found = false;
    each(*this, [&](const auto& own) {
      if (kind != own.info().choice.id) return;
      found = true;
      f(own);
    });
    return found;
  }

  void fields(FieldVisitor& v);
  ModelInfo info() const;   // of `kind`; an empty one where there is none of that name
  bool per_token() const;   // the task has outputs for each token, else for each example
  int64_t outputs() const;  // columns of the head, as the task needs them
  // All that is wrong, at once (sizes, modes, heads).
  std::vector<Problem> problems(bool tensorise);
};

// Of the model that `kind` chooses; empty where a size is below 1.
std::vector<ModelMatrix> matrices_of(const ModelConfig& config);

// For settings of some models and tasks: the models that read such data.
When models_that_read(std::vector<Reads> what);
// Those with matrices of a kind that may be tensor trains; first those with matrices of the other kind, too.
When models_with(const char* matrix, const char* and_first = "");
When tasks_of_tokens();

}  // namespace comera
