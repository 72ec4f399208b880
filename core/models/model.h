// A model: a composition of layers between a batch on the device and logits. The table of models is models.cpp.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/fields.h"
#include "core/layers/factory.h"

namespace comera {

// The batch on the device; fixed addresses (see data/dataset.h Batch for the layout).
struct DeviceBatch {
  Tensor ids, segments, positions;  // (T) i32, text
  Tensor starts, lengths, labels;   // (S) i32
  Tensor pixels;                    // (S, F) images
  int64_t longest = 0;              // upper bound of a length
};

class Model {
 public:
  virtual ~Model() = default;
  virtual Tensor forward(Ctx& ctx, const DeviceBatch& batch) = 0;  // logits (S, C)
  virtual void backward(Ctx& ctx, Tensor dlogits) = 0;
};

// Every size of the models is a field. `kind` chooses; the other group is ignored.
struct EncoderConfig {
  int64_t layers = 6, d_model = 768, heads = 12, d_ff = 3072;
  int64_t vocab = 30522, positions = 512, segments = 2;
  double dropout = 0.1, attention_dropout = 0.1, norm_eps = 1e-9;
  double position_std = 1;  // of the first position and segment tables; token tables have 1
  bool keep_probabilities = true;  // false: attention recomputes them in backward, less memory, more time
  void fields(FieldVisitor& v);
};

struct MlpConfig {
  int64_t inputs = 784;
  std::vector<int64_t> hidden = {512, 256};
  std::string activation = "relu";  // relu | gelu
  double dropout = 0.0;
  void fields(FieldVisitor& v);
};

struct ModelConfig {
  std::string kind = "encoder";  // encoder | mlp
  int64_t classes = 3;
  int64_t length = 128;  // tokens a sequence at most
  EncoderConfig encoder;
  MlpConfig mlp;
  TTKinds tt;
  void fields(FieldVisitor& v);
  // All that is wrong, at once (sizes, modes, heads).
  std::vector<Problem> problems(bool tensorise);
};

std::unique_ptr<Model> build_model(const ModelConfig& config, LayerFactory& factory);

// The name a parameter has in the published PyTorch model's state_dict; "" if it has none. Shapes are the same.
// TT: enc0.attn.q.core.2 -> encoder.encoder_blocks.0.slf_attn.w_qs.layer.tensor.factors.2 (METHODS.md 1.3).
std::string official_name(const std::string& name);
// The other way; "" for a name that is not the published model's.
std::string own_name(const std::string& official);

}  // namespace comera
