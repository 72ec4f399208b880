// Model folders of the transformers library: logits, loss, gradients and three steps of AdamW against its own numbers
// (tests/golden_models, or $COMERA_GOLDEN_MODELS), round trips, and folders that are wrong.
#include "core/models/huggingface.h"
#include "core/base/json.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "tests/models/net.h"

namespace comera::model_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> golden_folders() {
  const char* given = std::getenv("COMERA_GOLDEN_MODELS");
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(given ? given : COMERA_SOURCE_DIR "/tests/golden_models")) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() &&
        (name.starts_with("llama") || name.starts_with("gpt2") || name.ends_with("_classifier") || name.find("_mlm") != std::string::npos))
      folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  EXPECT_FALSE(folders.empty());
  return folders;
}

double largest_of(const Values& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

// One folder, its model here, and what the library computed from it.
struct Golden {
  Golden(const std::string& path, DType dtype)
      : folder(path), file(path + "/golden.safetensors"), net(model_of(folder, file), false, dtype), is_double(dtype == DType::f64) {
    read_folder(folder, net.config, [&](const std::string& param, const Values& values) {
      Param* found = net.rig.params.find(param);
      ASSERT_TRUE(found) << param;
      ASSERT_EQ(found->count(), static_cast<int64_t>(values.size())) << param;
      net.rig.set(found->value, values);
    });
    if (net.config.kind == "vit")
      put_images();
    else
      put_texts();
  }

  static ModelConfig model_of(const HuggingFaceFolder& folder, const SafetensorsFile& file) {
    ModelConfig model = model_of_folder(folder);
    if (file.has("input_ids")) {
      EXPECT_LE(file.entry("input_ids").shape[1], model.length);
    }
    return model;
  }
  // pixel_values (B, C, H, W), which are (B, H W C) here.
  void put_images() {
    const std::vector<int64_t>& shape = file.entry("pixel_values").shape;
    const Values given = file.values("pixel_values"), labels = file.values("labels");
    const auto channels = static_cast<size_t>(shape[1]), pixels = static_cast<size_t>(shape[2] * shape[3]);
    EXPECT_EQ(shape[2], net.config.vit.height);
    EXPECT_EQ(shape[3], net.config.vit.width);
    Values values(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      const size_t image = i / (channels * pixels), channel = i / pixels % channels, pixel = i % pixels;
      values[(image * pixels + pixel) * channels + channel] = given[i];
    }
    net.put_images(values, std::vector<int32_t>(labels.begin(), labels.end()));
  }
  void put_texts() {
    const std::vector<int64_t>& shape = file.entry("input_ids").shape;
    rows = shape[0], length = shape[1];
    const bool language = net.config.task == "language", by_token = net.config.per_token();
    const Values ids = file.values("input_ids"), labels = file.values("labels"),
                 types = file.has("token_type_ids") ? file.values("token_type_ids") : Values(ids.size(), 0.0);
    mask = file.values("attention_mask");
    TextBatch text;
    std::vector<int32_t> next;
    text.longest = length;
    for (int64_t s = 0; s < rows; ++s) {
      int32_t used = 0;
      while (used < length && mask[static_cast<size_t>(s * length + used)] != 0) ++used;
      for (int64_t t = 0; t < length; ++t) {
        const auto at = static_cast<size_t>(s * length + t);
        EXPECT_TRUE(t < used || mask[at] == 0) << "padding stands behind the tokens";
        text.ids.push_back(static_cast<int32_t>(ids[at]));
        text.positions.push_back(static_cast<int32_t>(t));
        text.segments.push_back(static_cast<int32_t>(types[at]));
        if (!by_token) continue;
        const double label = !language ? labels[at] : t + 1 < length ? labels[at + 1] : -100;
        next.push_back(label < 0 ? -1 : static_cast<int32_t>(label));
        EXPECT_TRUE(t < used || next.back() < 0);
      }
      text.starts.push_back(static_cast<int32_t>(s * length));
      text.lengths.push_back(used);
      text.labels.push_back(by_token ? 0 : static_cast<int32_t>(labels[static_cast<size_t>(s)]));
    }
    net.put(text);
    if (by_token) net.batch["labels"] = net.rig.put_ids(next);
  }

  // In the shape of the folder's tensor.
  Values gathered(const FolderTensor& tensor, const std::function<Values(const std::string&)>& of) const {
    Values all;
    for (const FolderTensor::Part& part : tensor.parts) {
      const Values own = of(part.param);
      all.insert(all.end(), own.begin(), own.end());
    }
    return in_folder_order(tensor, all);
  }

  // AdamW as the library's, which spares some tensors the decay.
  void update(const Json& optimizer, int64_t step) {
    const auto spared = optimizer.at("no_decay").get<std::set<std::string>>();
    std::set<std::string> without;
    for (const FolderTensor& tensor : folder_tensors(net.config))
      if (spared.contains(tensor.name))
        for (const FolderTensor::Part& part : tensor.parts) without.insert(part.param);
    const auto betas = optimizer.at("betas").get<std::vector<double>>();
    const AdamRule rule{AdamFlavour::torch, betas[0], betas[1], optimizer.at("eps").get<double>()};
    for (double& rate : net.rig.scalars.learning_rate) rate = optimizer.at("lr").get<double>();
    net.rig.scalars.optimizer_step = static_cast<uint64_t>(step);
    for (const bool decays : {true, false}) {
      net.rig.scalars.weight_decay = decays ? optimizer.at("weight_decay").get<double>() : 0;
      net.rig.run([&](Ctx& ctx) {
        for (Param& param : net.rig.params.params()) {
          if (without.contains(param.name) == decays) continue;
          auto& [m, v] = moments[param.name];
          if (!m) {
            const Values zeros(static_cast<size_t>(param.count()), 0.0);
            m = net.rig.put(zeros, param.shape);
            v = net.rig.put(zeros, param.shape);
          }
          ctx.ops.adam(param.value, param.grad, m, v, rule, param.group, ctx.step);
        }
      });
    }
  }

  void expect_close(const Values& ours, const Values& theirs, double tolerance, double scale, const std::string& what) {
    ASSERT_EQ(ours.size(), theirs.size()) << what;
    for (size_t i = 0; i < ours.size(); ++i) {
      const double error = std::fabs(ours[i] - theirs[i]) / scale;
      worst = std::max(worst, error);
      ASSERT_LE(error, tolerance) << folder.path() << ": " << what << " entry " << i << ", " << ours[i] << " against " << theirs[i];
    }
  }
  void check_logits(const Values& ours) {
    const Values theirs = file.values("logits");
    ASSERT_EQ(ours.size(), theirs.size());
    if (!net.config.per_token()) return expect_close(ours, theirs, tolerance(), std::max(1.0, largest_of(theirs)), "logits");
    const size_t vocab = theirs.size() / mask.size();
    Values a, b;
    for (size_t t = 0; t < mask.size(); ++t)
      if (mask[t] != 0) {
        a.insert(a.end(), ours.begin() + static_cast<long>(t * vocab), ours.begin() + static_cast<long>((t + 1) * vocab));
        b.insert(b.end(), theirs.begin() + static_cast<long>(t * vocab), theirs.begin() + static_cast<long>((t + 1) * vocab));
      }
    expect_close(a, b, tolerance(), std::max(1.0, largest_of(b)), "logits");
  }
  double tolerance() const { return is_double ? 1e-9 : 1e-4; }

  const HuggingFaceFolder folder;
  const SafetensorsFile file;
  Net net;
  const bool is_double;
  int64_t rows = 0, length = 0;
  Values mask;
  std::map<std::string, std::pair<Tensor, Tensor>> moments;
  double worst = 0;
};

void check_gradients_of(Golden& golden) {
  double largest = 0;
  const auto has = [&](const FolderTensor& tensor) { return golden.file.has("grad/" + tensor.name); };
  const std::vector<FolderTensor> tensors = folder_tensors(golden.net.config);
  for (const FolderTensor& tensor : tensors)
    if (has(tensor)) largest = std::max(largest, largest_of(golden.file.values("grad/" + tensor.name)));
  for (const FolderTensor& tensor : tensors) {
    ASSERT_TRUE(has(tensor)) << tensor.name;
    const Values theirs = golden.file.values("grad/" + tensor.name);
    const Values ours =
        golden.gathered(tensor, [&](const std::string& param) { return golden.net.rig.get(golden.net.rig.params.find(param)->grad); });
    const double scale = golden.is_double ? std::max(1.0, largest_of(theirs)) : largest;
    golden.expect_close(ours, theirs, golden.tolerance(), scale, "gradient of " + tensor.name);
  }
}

// Where a gradient is rounding, Adam makes whole steps of it.
void check_weights(Golden& golden, double rate) {
  double largest = 0;
  const std::vector<FolderTensor> tensors = folder_tensors(golden.net.config);
  for (const FolderTensor& tensor : tensors) largest = std::max(largest, largest_of(golden.file.values("grad/" + tensor.name)));
  for (const FolderTensor& tensor : tensors) {
    const Values theirs = golden.file.values("after/" + tensor.name), gradient = golden.file.values("grad/" + tensor.name);
    const Values ours = golden.gathered(tensor, [&](const std::string& param) { return golden.net.value(param); });
    ASSERT_EQ(ours.size(), theirs.size());
    const double scale = std::max(1.0, largest_of(theirs));
    for (size_t i = 0; i < ours.size(); ++i) {
      const bool rounding = !golden.is_double && std::fabs(gradient[i]) < 1e-5 * largest;
      const double limit = rounding ? 3.1 * rate : golden.tolerance() * scale;
      ASSERT_LE(std::fabs(ours[i] - theirs[i]), limit) << golden.folder.path() << ": after steps, " << tensor.name << " entry " << i;
    }
  }
}

TEST(HuggingFace, FoldersGiveTheNumbersOfTheLibrary) {
  for (const std::string& path : golden_folders())
    for (const DType dtype : {DType::f64, DType::f32}) {
      SCOPED_TRACE(path + " " + name_of(dtype));
      Golden golden(path, dtype);
      golden.check_logits(golden.net.evaluate());
      const auto loss_of = [&](int64_t step) {
        const Values theirs = golden.file.has("losses") ? golden.file.values("losses") : golden.file.values("loss");
        golden.expect_close({golden.net.rig.results.ce}, {theirs[static_cast<size_t>(step)]}, golden.tolerance(), 1, "loss");
      };
      golden.net.gradients();
      loss_of(0);
      if (golden.file.has("losses")) {
        check_gradients_of(golden);
        const Json optimizer = parse_valid_json(golden.file.metadata().at("optimizer"));
        for (int64_t step = 1; step <= optimizer.at("steps").get<int64_t>(); ++step) {
          golden.update(optimizer, step);
          golden.net.gradients();
          loss_of(step);
        }
        check_weights(golden, optimizer.at("lr").get<double>());
      }
      std::cout << "folder " << fs::path(path).filename().string() << ": largest relative error " << golden.worst << " in "
                << name_of(dtype) << "\n";
    }
}

fs::path fresh_folder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / ("comera-hf-" + std::to_string(::getpid()) + "-" + name);
  fs::remove_all(folder);
  return folder;
}

// Every tensor of the folder, bit for bit, under its newer name.
TEST(HuggingFace, AFolderThatIsWrittenAgainIsTheSame) {
  for (const std::string& path : golden_folders()) {
    SCOPED_TRACE(path);
    const HuggingFaceFolder folder(path);
    const ModelConfig model = model_of_folder(folder);
    std::map<std::string, Values> values;
    read_folder(folder, model, [&](const std::string& param, const Values& of) { values[param] = of; });
    const fs::path out = fresh_folder("again");
    const std::string dtype = folder.config().value("dtype", folder.config().value("torch_dtype", "float32"));
    write_folder(out.string(), model, dtype, [&](const std::string& param) { return values.at(param); });
    const HuggingFaceFolder again(out.string());
    for (const std::string& name : again.names()) {
      std::string there = name;
      if (!folder.file_of(there)) there = name.substr(name.find('.') + 1);
      for (const auto& [now, before] :
           {std::pair<std::string, std::string>{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}})
        if (!folder.file_of(there) && name.ends_with(now)) there = name.substr(0, name.size() - now.size()) + before;
      const SafetensorsFile* theirs = folder.file_of(there);
      ASSERT_TRUE(theirs) << name;
      const SafetensorsEntry &a = again.file_of(name)->entry(name), &b = theirs->entry(there);
      EXPECT_EQ(a.dtype, b.dtype) << name;
      EXPECT_EQ(a.shape, b.shape) << name;
      EXPECT_EQ(std::memcmp(again.file_of(name)->data(name), theirs->data(there), static_cast<size_t>(a.end - a.begin)), 0) << name;
    }
    const ModelConfig read = model_of_folder(again);
    EXPECT_EQ(folder_config(read, dtype), folder_config(model, dtype));
    fs::remove_all(out);
  }
}

std::string first_folder_of(const std::string& model) {
  for (const std::string& path : golden_folders())
    if (fs::path(path).filename() == model) return path;
  ADD_FAILURE() << "no folder " << model;
  return "";
}

// A copy of a folder with other settings, and what is said of it.
std::string said_of(const std::string& name, const std::function<void(Json&)>& change,
                    const std::function<void(const fs::path&)>& files = {}) {
  const fs::path from = first_folder_of("gpt2"), copy = fresh_folder(name);
  fs::copy(from, copy);
  for (const auto& entry : fs::directory_iterator(copy)) fs::permissions(entry.path(), fs::perms::owner_all);
  Json config = read_json_file(copy / "config.json");
  change(config);
  std::ofstream(copy / "config.json") << config;
  if (files) files(copy);
  std::string said;
  try {
    const HuggingFaceFolder folder(copy.string());
    read_folder(folder, model_of_folder(folder), [](const std::string&, const Values&) {});
  } catch (const Error& error) {
    said = std::string(error.what()) + ": " + error.why();
    EXPECT_TRUE(error.code() == ErrorCode::config || error.code() == ErrorCode::not_found || error.code() == ErrorCode::storage) << said;
  }
  fs::remove_all(copy);
  return said;
}

TEST(HuggingFace, FoldersThatAreWrongGetOneClearError) {
  const auto nothing = [](Json&) {};
  const auto has = [](const std::string& said, const std::string& part) { EXPECT_NE(said.find(part), std::string::npos) << said; };
  EXPECT_EQ(said_of("right", nothing), "");
  has(said_of("arch", [](Json& c) { c["architectures"] = {"MambaForCausalLM"}; }), "architecture MambaForCausalLM");
  has(said_of("none", [](Json& c) { c.erase("architectures"); }), "architecture is not given");
  has(said_of("layers", [](Json& c) { c["n_layer"] = 3; }), "no tensor transformer.h.2");
  has(said_of("fewer", [](Json& c) { c["n_layer"] = 1; }), "the model has no such parameter");
  has(said_of("width", [](Json& c) { c["n_inner"] = 40; }), "config.json describes (24, 40)");
  has(said_of("type", [](Json& c) { c["n_layer"] = "two"; }), "n_layer is \"two\"");
  has(said_of("heads", [](Json& c) { c["n_head"] = 5; }), "must divide d_model");
  has(said_of("missing", [](Json& c) { c.erase("n_embd"); }), "no n_embd");
  has(said_of("act", [](Json& c) { c["activation_function"] = "mish"; }), "activation_function is 'mish'");
  has(said_of("cross", [](Json& c) { c["add_cross_attention"] = true; }), "add_cross_attention is true");
  has(said_of("no-weights", nothing, [](const fs::path& at) { fs::remove(at / "model.safetensors"); }), "has no weights");
  has(said_of("no-config", nothing, [](const fs::path& at) { fs::remove(at / "config.json"); }), "is not a model folder");
  has(said_of("torn", nothing, [](const fs::path& at) { fs::resize_file(at / "model.safetensors", 5000); }),
      "is not a sound safetensors file");
  has(said_of("json", nothing, [](const fs::path& at) { std::ofstream(at / "config.json") << "{\"n_layer\": "; }), "config.json");
  const auto index = [](const Json& map) {
    return [map](const fs::path& at) {
      fs::rename(at / "model.safetensors", at / "a.safetensors");
      std::ofstream(at / "model.safetensors.index.json") << map;
    };
  };
  has(said_of("shard", nothing, index({{"weight_map", {{"x", "b.safetensors"}}}})), "names b.safetensors");
  has(said_of("promise", nothing, index({{"weight_map", {{"x", "a.safetensors"}}}})), "x should be in a.safetensors");
  has(said_of("outside", nothing, index({{"weight_map", {{"x", "../a.safetensors"}}}})), "must be a file name");
  has(said_of("no-map", nothing, index({{"metadata", 1}})), "no weight_map");
}

TEST(HuggingFace, PixelsAreScaledAsTheFolderAsksFor) {
  const fs::path folder = fresh_folder("pixels");
  fs::create_directories(folder);
  const auto of = [&](const char* text) {
    std::ofstream(folder / "preprocessor_config.json") << text;
    const PixelScale scale = pixel_scale_of_folder(folder.string());
    return std::pair{scale.mean, scale.std};
  };
  EXPECT_EQ(pixel_scale_of_folder(folder.string()).std, 1);
  EXPECT_EQ(of("{}"), std::pair(0.5, 0.5)) << "as the library";
  EXPECT_EQ(of(R"({"image_mean": [0.25, 0.25, 0.25], "image_std": 2})"), std::pair(0.25, 2.0));
  EXPECT_EQ(of(R"({"do_normalize": false, "image_mean": [0.1, 0.2]})"), std::pair(0.0, 1.0));
  for (const char* wrong : {R"({"image_mean": [0.1, 0.2]})", R"({"image_std": [0, 0]})", R"({"image_std": "one"})", R"({"image_mean": []})",
                            R"({"rescale_factor": 1})", R"({"do_rescale": false})", "[]", "{"})
    EXPECT_THROW(of(wrong), Error) << wrong;
  ModelConfig model;
  model.kind = "vit";
  model.vit.height = 20;
  std::ofstream(folder / "preprocessor_config.json") << preprocessor_config(model, {0.3, 0.7});
  const PixelScale again = pixel_scale_of_folder(folder.string());
  EXPECT_EQ(again.mean, 0.3);
  EXPECT_EQ(again.std, 0.7);
  fs::remove_all(folder);
}

// Image models with other settings: sizes that are not square, queries without biases.
TEST(HuggingFace, SettingsOfImageModelsComeBack) {
  ModelConfig model;
  model.kind = "vit";
  model.classes = 7;
  model.vit = {.height = 20, .width = 13, .channels = 2, .patch = 5, .layers = 3, .d_model = 8, .heads = 2, .d_ff = 12};
  model.vit.activation = "gelu_tanh";
  model.vit.qkv_bias = false;
  model.vit.dropout = 0.25;
  const fs::path folder = fresh_folder("settings");
  std::map<std::string, Values> written;
  for (const FolderTensor& tensor : folder_tensors(model))
    for (const FolderTensor::Part& part : tensor.parts)
      written[part.param] = layer_test::noise_values(tensor.shape.count(), 1 + written.size());
  const auto values = [&](const std::string& param) { return written.at(param); };
  write_folder(folder.string(), model, "float32", values);
  EXPECT_EQ(label_names_of(HuggingFaceFolder(folder.string())), std::vector<std::string>());
  const std::vector<std::string> names = {"a", "b", "LABEL_2", "d", "e", "f", "a \"g\""};
  write_folder(folder.string(), model, "float32", values, {}, names);
  const HuggingFaceFolder again(folder.string());
  const ModelConfig read = model_of_folder(again);
  EXPECT_EQ(label_names_of(again), names);
  EXPECT_EQ(again.config().at("label2id").at("d"), 3);
  EXPECT_EQ(folder_config(read, "float32", names), folder_config(model, "float32", names));
  EXPECT_EQ(again.config().at("image_size"), Json({20, 13}));
  Net net(read, false);
  size_t count = 0;
  read_folder(again, read, [&](const std::string& param, const Values& values) {
    ++count;
    ASSERT_TRUE(net.rig.params.find(param)) << param;
    EXPECT_EQ(net.rig.params.find(param)->count(), static_cast<int64_t>(values.size())) << param;
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(static_cast<float>(values[i]), static_cast<float>(written.at(param)[i])) << param;
  });
  EXPECT_EQ(count, net.rig.params.params().size()) << "every parameter";
  fs::remove_all(folder);
}

}  // namespace
}  // namespace comera::model_test
