#include <algorithm>
#include <utility>

#include "core/config/model.h"
#include "core/config/model_parts.h"

namespace comera {

ModelInfo VitConfig::info() const {
  return {.choice = {"vit", "Image transformer", "Transformer over patches of images (ViT)."},
          .reads = Reads::images,
          .image = {height, width, channels}};
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
  v.field("keep_probabilities", keep_probabilities, kept_probabilities());
}

bool VitConfig::check(const ModelConfig& model, Problems& problems) {
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

std::vector<ModelMatrix> VitConfig::matrices(const ModelConfig& model) {
  const VitConfig& c = model.vit;
  return {{"convolution", c.patch * c.patch * c.channels, c.d_model, &TTKinds::convolution},
          {"attention", c.d_model, c.d_model, &TTKinds::attention},
          {"ffn_in", c.d_model, c.d_ff, &TTKinds::ffn_in},
          {"ffn_out", c.d_ff, c.d_model, &TTKinds::ffn_out}};
}

}  // namespace comera
