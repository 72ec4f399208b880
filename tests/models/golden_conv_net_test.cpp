// A network of convolutions, norms and pooling against torch.nn (tests/golden_models/conv_net, or that of $COMERA_GOLDEN_MODELS):
// logits, loss and gradients with running and with batch statistics, and steps of SGD. config.json lists its layers.
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/json.h"
#include "core/layers/blocks.h"
#include "core/layers/conv.h"
#include "core/tensor/safetensors.h"
#include "tests/layers/images.h"

namespace comera::layer_test {
namespace {

std::string folder() {
  const char* given = std::getenv("COMERA_GOLDEN_MODELS");
  return std::string(given ? given : COMERA_SOURCE_DIR "/tests/golden_models") + "/conv_net/";
}

// The words of "conv1 3x3 stride 1 padding 1 no bias".
struct Line {
  explicit Line(const std::string& line) : text(line) {
    std::istringstream in(line);
    for (std::string word; in >> word;) words.push_back(word);
  }
  bool begins(const std::string& part) const { return text.starts_with(part); }
  double number(const std::string& behind, double otherwise) const {
    const auto at = std::find(words.begin(), words.end(), behind);
    if (at == words.end() || at + 1 == words.end() || !std::isdigit(static_cast<unsigned char>((at + 1)->front()))) return otherwise;
    return std::stod(*(at + 1));
  }
  int64_t whole(const std::string& behind, int64_t otherwise) const {
    return static_cast<int64_t>(number(behind, static_cast<double>(otherwise)));
  }
  std::string text;
  std::vector<std::string> words;
};

struct GoldenNet {
  explicit GoldenNet(bool frozen, DType dtype)
      : config(read_json_file(folder() + "config.json")),
        model(folder() + "model.safetensors"),
        golden(folder() + "golden.safetensors"),
        rig(dtype),
        is_double(dtype == DType::f64) {
    LayerFactory factory(rig.params, *rig.stash);
    int64_t channels = config.at("in_channels"), height = config.at("height"), width = config.at("width");
    images = {height * width, channels};
    const auto square = [&](const Line& line, int64_t kernel) {
      const Window window = Window::square(height, width, kernel, line.whole("stride", 1), line.whole("padding", 0));
      height = window.rows();
      width = window.columns();
      return window;
    };
    for (const std::string text : config.at("layers")) {
      const Line line(text);
      const std::string& name = line.words.front();
      if (line.begins("conv")) {
        const int64_t out = model.entry(name + ".weight").shape[0];
        const ConvolutionSpec spec{
            .in = channels, .out = out, .window = square(line, std::stoll(line.words[1])), .bias = model.has(name + ".bias")};
        chain.add(std::make_unique<Convolution>(name, spec, factory));
        channels = out;
      } else if (line.begins("bn")) {
        const BatchNormSpec spec{.eps = line.number("eps", 1e-5), .momentum = line.number("momentum", 0.1), .frozen = frozen};
        chain.add(std::make_unique<BatchNorm>(name, channels, spec, factory));
      } else if (line.begins("gn")) {
        chain.add(std::make_unique<GroupNorm>(name, channels, line.whole("groups", 1), height * width, line.number("eps", 1e-5), factory));
      } else if (line.begins("relu")) {
        chain.add(std::make_unique<ActivationLayer>(Activation::relu, "relu" + std::to_string(height), channels, factory));
      } else if (line.begins("max pool")) {
        const int64_t kernel = line.whole("pool", 2);
        chain.add(std::make_unique<MaxPooling>(square(line, kernel)));
      } else if (line.begins("global average pool")) {
        chain.add(std::make_unique<AveragePooling>(Window::whole(height, width)));
      } else {
        EXPECT_EQ(name, "fc") << text;
        chain.add(factory.linear(name, channels, config.at("classes"), LinearKind::head));
      }
    }
    rig.start();
    each([&](const std::string& name, const Tensor& tensor) { rig.set(tensor, last(model, name)); });
  }

  static Values last(const SafetensorsFile& file, const std::string& name) {
    return channels_last(file.values(name), file.entry(name).shape);
  }
  // body(name in the file, value here) for parameters, and states where `states`.
  void each(const std::function<void(const std::string&, const Tensor&)>& body, bool states = true) {
    for (Param& param : rig.params.params()) body(their_name(param.name), param.value);
    if (!states) return;
    for (State& state : rig.params.states())
      if (state.name.find(".running_") != std::string::npos) body(their_name(state.name), state.value);
  }
  static std::string their_name(std::string name) {
    for (const auto& [ours, theirs] : {std::pair{".gamma", ".weight"}, {".beta", ".bias"}, {".running_variance", ".running_var"}})
      if (name.ends_with(ours)) name.replace(name.size() - std::string(ours).size(), std::string::npos, theirs);
    return name;
  }

  // Batch k: x (B P, C) and its labels.
  void put(int64_t k) {
    const std::vector<int64_t>& shape = golden.entry("x").shape;  // (batches, B, C, H, W)
    const Values all = golden.values("x"), labels = golden.values("labels");
    const int64_t each = shape[1] * shape[2] * shape[3] * shape[4];
    const Values batch(all.begin() + k * each, all.begin() + (k + 1) * each);
    x = rig.put(channels_last(batch, {shape[1], shape[2], shape[3], shape[4]}), {shape[1] * images[0], images[1]});
    std::vector<int32_t> of_batch;
    for (int64_t i = 0; i < shape[1]; ++i) of_batch.push_back(static_cast<int32_t>(labels[static_cast<size_t>(k * shape[1] + i)]));
    ids = rig.put_ids(of_batch);
  }
  void step() {
    rig.run([&](Ctx& ctx) {
      Tensor out = chain.forward(ctx, x);
      Tensor dlogits = ctx.temp(out.shape(), "dlogits");
      ctx.ops.cross_entropy(ctx.results, dlogits, {}, out, ids);
      if (!ctx.ops.dry) logits = rig.get(out);
      out = {};
      ctx.stash.forget();
      const Tensor dinput = chain.backward(ctx, std::move(dlogits));
      if (!ctx.ops.dry) dx = rig.get(dinput);
    });
  }

  void near(const Values& ours, const std::string& name, double scale = 0) {
    const Values theirs = last(golden, name);
    ASSERT_EQ(ours.size(), theirs.size()) << name;
    double largest = std::max(scale, is_double || scale == 0 ? 1.0 : 0.0);
    if (scale == 0)
      for (const double value : theirs) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < ours.size(); ++i) {
      const double error = std::fabs(ours[i] - theirs[i]) / largest;
      worst = std::max(worst, error);
      ASSERT_LE(error, is_double ? 1e-9 : 1e-4) << name << " entry " << i;
    }
  }
  void check(const std::string& mode) {
    near(logits, mode + "_logits");
    near({rig.results.ce}, mode + "_loss");
    near(dx, mode + "_dx");
    double largest = 0;
    each(
        [&](const std::string& name, const Tensor&) {
          for (const double g : golden.values(mode + "_grad/" + name)) largest = std::max(largest, std::fabs(g));
        },
        false);
    for (const Param& param : rig.params.params()) near(rig.get(param.grad), mode + "_grad/" + their_name(param.name), largest);
  }
  // One step of torch's SGD on the host.
  void update(const Json& optimizer) {
    for (Param& param : rig.params.params()) {
      Values value = rig.get(param.value), g = rig.get(param.grad);
      Values& momentum = moments[param.name];
      const bool first = momentum.empty();
      if (first) momentum.resize(g.size());
      for (size_t i = 0; i < g.size(); ++i) {
        const double slope = g[i] + optimizer.at("weight_decay").get<double>() * value[i];
        momentum[i] = first ? slope : optimizer.at("momentum").get<double>() * momentum[i] + slope;
        value[i] -= optimizer.at("lr").get<double>() * momentum[i];
      }
      rig.set(param.value, value);
    }
  }

  const Json config;
  const SafetensorsFile model, golden;
  Rig rig;
  const bool is_double;
  Chain chain;
  std::vector<int64_t> images;  // pixels, channels
  Tensor x, ids;
  Values logits, dx;
  std::map<std::string, Values> moments;
  double worst = 0;
};

TEST(GoldenConvNet, RunningStatistics) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    SCOPED_TRACE(name_of(dtype));
    GoldenNet net(true, dtype);
    net.put(0);
    net.step();
    net.check("eval");
    net.each([&](const std::string& name, const Tensor& value) {
      EXPECT_EQ(net.rig.get(value), GoldenNet::last(net.model, name)) << name << " has moved";
    });
    std::cout << "conv_net, evaluation: largest error " << net.worst << " in " << name_of(dtype) << "\n";
  }
}

TEST(GoldenConvNet, BatchStatisticsAndStepsOfSgd) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    SCOPED_TRACE(name_of(dtype));
    GoldenNet net(false, dtype);
    const Json optimizer = parse_valid_json(net.golden.metadata().at("optimizer"));
    ASSERT_EQ(optimizer.at("kind"), "SGD");
    ASSERT_EQ(optimizer.at("dampening"), 0);
    ASSERT_EQ(optimizer.at("nesterov"), false);
    const Values losses = net.golden.values("losses");
    for (int64_t k = 0; k < optimizer.at("steps").get<int64_t>(); ++k) {
      net.put(k);
      net.step();
      if (k == 0) net.check("train");
      EXPECT_NEAR(net.rig.results.ce, losses[static_cast<size_t>(k)], net.is_double ? 1e-9 : 1e-4);
      net.update(optimizer);
    }
    net.each([&](const std::string& name, const Tensor& value) { net.near(net.rig.get(value), "after/" + name); });
    net.put(0);
    net.near(evaluate(net.rig, net.chain, net.x), "after_eval_logits");
    std::cout << "conv_net, training: largest error " << net.worst << " in " << name_of(dtype) << "\n";
  }
}

}  // namespace
}  // namespace comera::layer_test
