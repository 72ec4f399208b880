// A model: a composition of layers between a batch on the device and its outputs. What there is of each: core/config/model.h.
#pragma once
#include <memory>
#include <string>

#include "core/config/model.h"
#include "core/layers/factory.h"
#include "core/tensor/batch.h"

namespace comera {

class Model {
 public:
  virtual ~Model() = default;
  // Of the pass: one for each token of its layers, which may be patches of images, and one for each example.
  virtual PassRows rows(const DeviceBatch& batch) const { return {batch.tokens, batch.examples}; }
  // Outputs (S, ModelConfig::outputs()), for the task; of a language model (T, outputs).
  virtual Tensor forward(Ctx& ctx, const DeviceBatch& batch) = 0;
  virtual void backward(Ctx& ctx, Tensor dlogits) = 0;
};

std::unique_ptr<Model> build_model(const ModelConfig& config, LayerFactory& factory);
// The fields of a batch that the model reads; where there are tokens, starts and lengths too.
BatchLayout model_inputs(const ModelConfig& config);
// The kind of model that reads these fields; "" = none.
std::string model_kind_for(const BatchLayout& fields);

// "gelu", "gelu_tanh", "silu", "relu", "tanh".
Activation activation_of(const std::string& name);

// The name a parameter has in the published PyTorch model's state_dict; "" if it has none. Shapes are the same.
// TT: enc0.attn.q.core.2 -> encoder.encoder_blocks.0.slf_attn.w_qs.layer.tensor.factors.2 (METHODS.md 1.3).
std::string official_name(const std::string& name);
// The other way; "" for a name that is not the published model's.
std::string own_name(const std::string& official);

}  // namespace comera
