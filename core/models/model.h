// A model: a composition of layers between a batch on the device and logits. The table of models is models.cpp.
#pragma once
#include <memory>
#include <string>

#include "core/config/model.h"
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

std::unique_ptr<Model> build_model(const ModelConfig& config, LayerFactory& factory);

// The name a parameter has in the published PyTorch model's state_dict; "" if it has none. Shapes are the same.
// TT: enc0.attn.q.core.2 -> encoder.encoder_blocks.0.slf_attn.w_qs.layer.tensor.factors.2 (METHODS.md 1.3).
std::string official_name(const std::string& name);
// The other way; "" for a name that is not the published model's.
std::string own_name(const std::string& official);

}  // namespace comera
