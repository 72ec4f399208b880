// Single operations on images against torch.nn (tests/golden_models/conv_ops, or that of $COMERA_GOLDEN_MODELS). The name of an operation
// says its kernel, stride and padding.
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "core/base/json.h"
#include "core/layers/conv.h"
#include "core/tensor/safetensors.h"
#include "tests/layers/images.h"

namespace comera::layer_test {
namespace {

struct Pair {
  int64_t rows = 1, columns = 1;
};

// The number or two numbers behind `key`: "_s2", "_s1x2".
Pair pair_of(const std::string& name, const std::string& key, int64_t otherwise) {
  std::smatch found;
  if (!std::regex_search(name, found, std::regex(key + "(\\d+)(x(\\d+))?"))) return {otherwise, otherwise};
  const int64_t first = std::stoll(found[1]);
  return {first, found[3].matched ? std::stoll(found[3]) : first};
}

// Of images (B, C, H, W).
Window window_of(const std::string& name, const std::vector<int64_t>& image) {
  if (name.starts_with("global")) return Window::whole(image[2], image[3]);
  const Pair kernel = pair_of(name, "^(?:conv|max_pool|avg_pool)", 1), stride = pair_of(name, "_s", 1), pad = pair_of(name, "_p", 0);
  return {image[2], image[3], kernel.rows, kernel.columns, stride.rows, stride.columns, pad.rows, pad.columns};
}

std::unique_ptr<Layer> layer_of(const std::string& name, const SafetensorsFile& file, LayerFactory& factory) {
  const std::vector<int64_t>&image = file.entry(name + "/x").shape, &out = file.entry(name + "/y").shape;
  const auto number = [&](const char* key) { return std::stod(file.metadata().at(key)); };
  if (name.starts_with("batch_norm")) return std::make_unique<BatchNorm>("l", image[1], BatchNormSpec{.eps = number("eps")}, factory);
  if (name.starts_with("group_norm"))
    return std::make_unique<GroupNorm>("l", image[1], static_cast<int64_t>(number("groups")), image[2] * image[3], number("eps"), factory);
  const Window window = window_of(name, image);
  EXPECT_EQ((std::vector{window.rows(), window.columns()}), (std::vector{out[2], out[3]})) << name;
  if (name.starts_with("conv"))
    return std::make_unique<Convolution>(
        "l", ConvolutionSpec{.in = image[1], .out = out[1], .window = window, .bias = file.has(name + "/b")}, factory);
  if (name.starts_with("max_pool")) return std::make_unique<MaxPooling>(window);
  EXPECT_TRUE(name.find("avg_pool") != std::string::npos) << name;
  return std::make_unique<AveragePooling>(window);
}

TEST(GoldenConv, OperationsGiveTheNumbersOfTorch) {
  const char* given = std::getenv("COMERA_GOLDEN_MODELS");
  const std::string folder = given ? given : COMERA_SOURCE_DIR "/tests/golden_models";
  const SafetensorsFile file(folder + "/conv_ops/golden.safetensors");
  std::set<std::string> names;
  for (const auto& [name, entry] : file.entries()) names.insert(name.substr(0, name.find('/')));
  EXPECT_GE(names.size(), 10u);
  double worst = 0;
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    Rig rig;
    LayerFactory factory(rig.params, *rig.stash);
    const auto layer = layer_of(name, file, factory);
    rig.start();
    const auto value = [&](const char* what) { return channels_last(file.values(name + what), file.entry(name + what).shape); };
    const auto near = [&](const Values& ours, const char* what) {
      const double error = relative_difference(ours, value(what), 1);
      EXPECT_LE(error, 1e-9) << what;
      worst = std::max(worst, error);
    };
    const auto param_of = [&](bool weight) {
      Param* found = nullptr;
      for (const char* kind : weight ? std::array{".weight", ".gamma"} : std::array{".bias", ".beta"})
        if (Param* param = rig.params.find(std::string("l") + kind)) found = param;
      return found;
    };
    for (const bool weight : {true, false})
      if (Param* param = param_of(weight)) rig.set(param->value, value(weight ? "/w" : "/b"));
    const std::vector<int64_t>& image = file.entry(name + "/x").shape;
    const Pass p = pass(rig, *layer, rig.put(value("/x"), {image[0] * image[2] * image[3], image[1]}), value("/dy"));
    near(p.y, "/y");
    near(p.dx, "/dx");
    for (const bool weight : {true, false}) {
      const Param* param = param_of(weight);
      EXPECT_EQ(param != nullptr, file.has(name + (weight ? "/w" : "/b")));
      if (param) near(rig.get(param->grad), weight ? "/dw" : "/db");
    }
  }
  std::cout << "conv_ops: " << names.size() << " operations, largest relative error " << worst << "\n";
}

}  // namespace
}  // namespace comera::layer_test
