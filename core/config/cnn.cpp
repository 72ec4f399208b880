#include <utility>

#include "core/config/model.h"
#include "core/config/model_parts.h"

namespace comera {

ModelInfo CnnConfig::info() const {
  return {.choice = {"cnn", "Image network (convolutions)", "Convolutional network, for images."},
          .reads = Reads::images,
          .image = {height, width, channels}};
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

bool CnnConfig::check(const ModelConfig& model, Problems& problems) {
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

std::vector<ModelMatrix> CnnConfig::matrices(const ModelConfig& model) {
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

}  // namespace comera
