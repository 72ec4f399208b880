#include "core/config/model.h"
#include "core/config/model_parts.h"

namespace comera {

ModelInfo MlpConfig::info() const {
  return {.choice = {"mlp", "Image network (MLP)", "Multilayer perceptron, for images."}, .reads = Reads::images};
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

bool MlpConfig::check(const ModelConfig& model, Problems& problems) {
  bool sizes = problems.at_least(model.mlp.inputs, 1, "mlp.inputs");
  for (int64_t features : model.mlp.hidden) sizes &= problems.at_least(features, 1, "mlp.hidden");
  return sizes;
}

std::vector<ModelMatrix> MlpConfig::matrices(const ModelConfig& model) {
  std::vector<ModelMatrix> all;
  int64_t in = model.mlp.inputs;
  for (const int64_t out : model.mlp.hidden) {
    all.push_back({"ffn_in", in, out, &TTKinds::ffn_in});
    in = out;
  }
  return all;
}

}  // namespace comera
