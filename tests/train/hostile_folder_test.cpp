// Model folders that were damaged at random, and some that were made to do harm: an error or a model, and no memory beyond the folder's
// size.
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/models/huggingface.h"
#include "core/train/model_import.h"
#include "tests/data/damaged.h"
#include "tests/data/support.h"

namespace comera {
namespace {

namespace fs = std::filesystem;
using test::damaged;
using test::Folder;

const std::string kModels = std::string(COMERA_SOURCE_DIR) + "/tests/golden_models/";

// A folder as one imports it. "": it became a checkpoint; else the error.
std::string imported(const Folder& folder, const std::string& task = "") {
  try {
    RunConfig config = config_of_folder(folder.path(), task);
    validate_config(config, folder.path());
    write_start(read_weights(folder.path(), config), config, folder / "start");
    return "";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(error.code(), ErrorCode::other) << said << ": " << error.why();
    EXPECT_EQ((said + error.why() + error.hint()).find('\n'), std::string::npos) << said;
    return said + ": " + error.why();
  }
}

std::string with_length(const std::string& header, const std::string& tensors) {
  const uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + tensors;
}

struct Parts {
  explicit Parts(const std::string& model)
      : config(test::read_file(kModels + model + "/config.json")), weights(test::read_file(kModels + model + "/model.safetensors")) {
    uint64_t size = 0;
    std::memcpy(&size, weights.data(), 8);
    header = weights.substr(8, size);
    tensors = weights.substr(8 + size);
  }
  std::string config, weights, header, tensors;
};

int64_t most_memory_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// The JSON stays sound: a setting, or two, has another value.
std::string another_value(const std::string& good, std::mt19937_64& random) {
  const Json values[] = {0,         1, 2, 3, 7, -1, 64, 1000000000, 0.5, 1e300, "x", nullptr, true, false, Json::array(), Json::object(),
                         {{"a", 1}}};
  Json config = parse_valid_json(good);
  for (size_t times = 1 + random() % 2; times > 0; --times)
    std::next(config.begin(), static_cast<long>(random() % config.size())).value() = values[random() % std::size(values)];
  return config.dump();
}

TEST(HostileFolder, DamagedFilesAreAnErrorOrAModel) {
  [[maybe_unused]] const int64_t before = most_memory_kib();
  std::mt19937_64 random(5);
  for (const char* model : {"gpt2", "llama_bf16", "bert_mlm"}) {
    const Parts good(model);
    int models = 0;
    constexpr int kTimes = 60;
    for (int i = 0; i < kTimes; ++i) {
      const Folder folder;
      const int what = i % 4;
      folder.write("config.json", what == 0 ? damaged(good.config, random) : what == 1 ? another_value(good.config, random) : good.config);
      folder.write("model.safetensors", what == 2   ? with_length(damaged(good.header, random), good.tensors)
                                        : what == 3 ? damaged(good.weights, random)
                                                    : good.weights);
      models += imported(folder, i % 8 == 7 && good.config.find("Bert") != std::string::npos ? "classification" : "").empty();
    }
    std::cout << model << ": " << models << " of " << kTimes << " can be imported\n";
    EXPECT_LT(models, kTimes);
  }
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(most_memory_kib() - before, 256 * 1024);
#endif
}

TEST(HostileFolder, DamagedIndexesAreAnErrorOrAModel) {
  const Parts good("gpt2");
  Json map = Json::object();
  const Json header = parse_valid_json(good.header);
  for (const auto& [name, entry] : header.items())
    if (name != "__metadata__") map[name] = "a.safetensors";
  const std::string index = Json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump();
  std::mt19937_64 random(6);
  for (int i = 0; i < 60; ++i) {
    const Folder folder;
    folder.write("config.json", good.config);
    folder.write("a.safetensors", good.weights);
    folder.write("model.safetensors.index.json", i == 0 ? index : damaged(index, random));
    const std::string said = imported(folder);
    EXPECT_TRUE(i > 0 || said.empty()) << said;
  }
}

// One setting of config.json is another value.
std::string with(const Parts& good, const std::string& key, const Json& value) {
  const Folder folder;
  Json config = parse_valid_json(good.config);
  config[key] = value;
  folder.write("config.json", config.dump());
  folder.write("model.safetensors", good.weights);
  return imported(folder);
}

TEST(HostileFolder, SizesAndTypesThatCannotBe) {
  const Parts gpt2("gpt2"), llama("llama_bf16"), bert("bert_mlm");
  const auto has = [](const std::string& said, const std::string& part) { EXPECT_NE(said.find(part), std::string::npos) << said; };
  EXPECT_EQ(with(gpt2, "x", 1), "");
  for (const Json& size : {Json(0), Json(-1), Json(1e18), Json(1e300), Json(int64_t{1} << 62), Json(2.5), Json("2"), Json(true),
                           Json(Json::array()), Json({{"a", 1}})})
    for (const char* key : {"n_layer", "n_embd", "n_head", "vocab_size", "n_positions", "n_inner"})
      EXPECT_NE(with(gpt2, key, size), "") << key << " " << size;
  has(with(gpt2, "n_layer", 1000000000), "must be 1 to 256");
  has(with(gpt2, "vocab_size", 9999999), "config.json describes (9999999, 24)");
  has(with(llama, "hidden_size", 65536), "config.json describes");
  has(with(llama, "rope_parameters", {{"rope_type", 3}}), "rope_type is 3");
  has(with(llama, "rope_parameters", {{"rope_theta", "x"}}), "rope_theta is");
  has(with(llama, "rms_norm_eps", Json::array()), "rms_norm_eps is a list");
  has(with(llama, "head_dim", 7), "must be even");
  EXPECT_EQ(with(llama, "max_position_embeddings", 131072), "") << "cut to the longest length";
  has(with(llama, "architectures", "LlamaForCausalLM"), "architectures is");
  has(with(llama, "architectures", Json::array({1})), "architectures is a list");
  has(with(bert, "hidden_dropout_prob", 2), "dropout");
  has(with(bert, "type_vocab_size", 0), "no form");
  has(with(bert, "architectures", Json::array({"two\nlines"})), "two\\nlines");
}

TEST(HostileFolder, FilesThatCannotBe) {
  const Parts good("gpt2");
  const auto has = [](const std::string& said, const std::string& part) { EXPECT_NE(said.find(part), std::string::npos) << said; };
  const auto of = [&](const std::string& config, const std::string& weights) {
    const Folder folder;
    folder.write("config.json", config);
    folder.write("model.safetensors", weights);
    return imported(folder);
  };
  EXPECT_EQ(of(good.config, good.weights), "");
  for (const size_t size : {size_t{0}, size_t{4}, size_t{8}, size_t{500}, good.weights.size() / 2, good.weights.size() - 1})
    has(of(good.config, good.weights.substr(0, size)), "is not a sound safetensors file");
  has(of(std::string(100000, '['), good.weights), "nested too deeply");
  std::string nested = good.config;
  for (int i = 0; i < 1000; ++i) nested = "{\"a\":" + nested + "}";
  has(of(nested, good.weights), "nested too deeply");
  has(of(good.config, with_length(std::string(100000, '['), "")), "is not a sound safetensors file");
  has(of("[1]", good.weights), "not an object");
  Json whole = parse_valid_json(good.header);
  for (const char* name : {"wte.weight", "transformer.wte.weight"})
    if (whole.contains(name)) whole[name]["dtype"] = "I32";
  has(of(good.config, with_length(whole.dump(), good.tensors)), "is of type I32");
}

// A folder of a masked language model with another head: its own where the shapes are the same, drawn where it has none.
TEST(Folder, ANewHeadIsDrawnAndTheRestIsTheFolders) {
  const auto fresh = [](const std::string& model, const std::string& task, int64_t classes) {
    RunConfig config = config_of_folder(kModels + model, task);
    config.model.classes = classes;
    return read_weights(kModels + model, config).fresh;
  };
  using Names = std::vector<std::string>;
  const Names classifier = {"classifier.fc.weight", "classifier.fc.bias", "head.weight", "head.bias"};
  EXPECT_EQ(fresh("bert_mlm", "", 2), Names());
  EXPECT_EQ(fresh("bert_mlm", "classification", 3), classifier);
  EXPECT_EQ(fresh("roberta_mlm", "classification", 2), classifier);
  const Names masked = {"masked.fc.weight", "masked.fc.bias", "masked.norm.gamma", "masked.norm.beta", "head.bias"};
  EXPECT_EQ(fresh("bert_classifier", "masked", 2), masked);
  EXPECT_EQ(fresh("distilbert_classifier", "masked", 2), masked);
  EXPECT_EQ(fresh("roformer_mlm", "classification", 2), classifier);
  EXPECT_EQ(fresh("bert_classifier", "classification", 17), (Names{"head.weight", "head.bias"})) << "other classes";
  EXPECT_THROW(config_of_folder(kModels + "bert_mlm", "language"), Error);
  EXPECT_THROW(config_of_folder(kModels + "gpt2", "classification"), Error);
}

// What AutoModel.save_pretrained writes: names without their first word, no head.
TEST(Folder, ABaseModelIsReadWithANewHead) {
  const Parts good("bert_classifier");
  Json header = parse_valid_json(good.header), base = Json::object();
  for (const auto& [name, entry] : header.items())
    if (!name.starts_with("classifier")) base[name.starts_with("bert.") ? name.substr(5) : name] = entry;
  // The classifier's bytes would be a hole: they become one tensor that older files have, too.
  int64_t rest = 0;
  for (const auto& [name, entry] : header.items())
    if (name.starts_with("classifier")) {
      base["pooler." + name] = entry;
      ++rest;
    }
  EXPECT_EQ(rest, 2);
  const Folder folder;
  Json config = parse_valid_json(good.config);
  config["architectures"] = {"BertModel"};
  folder.write("config.json", config.dump());
  folder.write("model.safetensors", with_length(base.dump(), good.tensors));
  EXPECT_NE(imported(folder).find("it does not say which task"), std::string::npos);
  EXPECT_EQ(imported(folder, "classification"), "");
  RunConfig run = config_of_folder(folder.path(), "classification");
  EXPECT_EQ(read_weights(folder.path(), run).fresh, (std::vector<std::string>{"head.weight", "head.bias"})) << "the pooler is the folder's";
}

}  // namespace
}  // namespace comera
