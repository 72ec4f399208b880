// Sizes of the models.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/fields.h"
#include "core/config/tt.h"

namespace comera {

// Every size of the models is a field. `kind` chooses; the other group is ignored.
struct EncoderConfig {
  int64_t layers = 6, d_model = 768, heads = 12, d_ff = 3072;
  int64_t vocab = 30522, positions = 512, segments = 2;
  int64_t first_position = 0;  // row of the position embedding that a sequence begins with
  double dropout = 0.1, attention_dropout = 0.1, norm_eps = 1e-9;
  std::string norm = "layer";  // layer | rms
  std::string activation = "gelu", classifier_activation = "tanh";
  bool tied = true;                // the head of a masked language model is the token table
  double position_std = 1;         // of the first position and segment tables; token tables have 1
  bool keep_probabilities = true;  // false: attention recomputes them in backward, less memory, more time
  void fields(FieldVisitor& v);
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
  void fields(FieldVisitor& v);

  int64_t width_of_head() const { return head_width > 0 ? head_width : d_model / heads; }
  int64_t heads_of_keys() const { return key_heads > 0 ? key_heads : heads; }
};

struct MlpConfig {
  int64_t inputs = 784;
  std::vector<int64_t> hidden = {512, 256};
  std::string activation = "relu";  // relu | gelu
  double dropout = 0.0;
  void fields(FieldVisitor& v);
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
  void fields(FieldVisitor& v);
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
  void fields(FieldVisitor& v);
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
  void fields(FieldVisitor& v);
};

// A matrix or table that may be a tensor train.
struct ModelMatrix {
  const char* kind;  // its group in model.tt: "ffn_in"
  int64_t in, out;   // of a table: rows, columns
  TTOptions TTKinds::*options;
  bool table = false;
};

struct ImageSize {
  int64_t height = 0, width = 0, channels = 0;
};

struct ModelConfig {
  std::string kind = "encoder";         // encoder | decoder | mlp | cnn | vit | dlrm
  std::string task = "classification";  // what its outputs mean (core/tasks)
  int64_t classes = 3;
  int64_t length = 128;  // tokens a sequence at most
  EncoderConfig encoder;
  DecoderConfig decoder;
  MlpConfig mlp;
  CnnConfig cnn;
  VitConfig vit;
  DlrmConfig dlrm;
  TTKinds tt;
  void fields(FieldVisitor& v);
  bool per_token() const;   // the task has outputs for each token, else for each example
  int64_t outputs() const;  // columns of the head, as the task needs them
  ImageSize image() const;  // that the model reads; 0: none, or any of as many values
  // All that is wrong, at once (sizes, modes, heads).
  std::vector<Problem> problems(bool tensorise);
};

// Of the model that `kind` chooses; empty where a size is below 1.
std::vector<ModelMatrix> matrices_of(const ModelConfig& config);

}  // namespace comera
