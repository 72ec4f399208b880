// The golden folder of facebookresearch/dlrm's model with one id a table (tests/golden_models, or $COMERA_GOLDEN_MODELS).
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/config/model.h"
#include "core/tensor/safetensors.h"

namespace comera::test {

struct GoldenClicks {
  std::vector<double> numbers;
  std::vector<std::vector<int32_t>> categories;
  std::vector<int32_t> labels;
};

struct GoldenDlrm {
  GoldenDlrm() : GoldenDlrm(place()) {}
  explicit GoldenDlrm(const std::filesystem::path& folder)
      : file((folder / "golden.safetensors").string()), weights((folder / "model.safetensors").string()), config(config_of(folder)) {
    std::cout << "folder " << folder.filename().string() << "\n";
  }

  static std::filesystem::path place() {
    const char* given = std::getenv("COMERA_GOLDEN_MODELS");
    return std::filesystem::path(given ? given : COMERA_SOURCE_DIR "/tests/golden_models") / "dlrm_dot";
  }
  static ModelConfig config_of(const std::filesystem::path& folder) {
    const Json json = read_json_file(folder / "config.json");
    ModelConfig config;
    config.kind = "dlrm";
    config.task = "binary";
    config.classes = 2;
    const auto bottom = json.at("arch_mlp_bot").get<std::vector<int64_t>>(), top = json.at("arch_mlp_top").get<std::vector<int64_t>>();
    config.dlrm = {.inputs = bottom.front(),
                   .tables = json.at("arch_embedding_size").get<std::vector<int64_t>>(),
                   .width = json.at("arch_sparse_feature_size"),
                   .bottom = {bottom.begin() + 1, bottom.end() - 1},
                   .top = {top.begin() + 1, top.end() - 1},
                   .itself = json.at("arch_interaction_itself")};
    return config;
  }
  // Parameters here and there, where a Linear is followed by its activation in the list.
  std::vector<std::pair<std::string, std::string>> names() const {
    std::vector<std::pair<std::string, std::string>> out;
    const auto add = [&](const std::string& ours, const std::string& theirs) {
      for (const char* part : {".weight", ".bias"}) out.emplace_back(ours + part, theirs + part);
    };
    for (size_t i = 0; i <= config.dlrm.bottom.size(); ++i) add("bottom" + std::to_string(i), "bot_l." + std::to_string(2 * i));
    for (size_t i = 0; i < config.dlrm.top.size(); ++i) add("top" + std::to_string(i), "top_l." + std::to_string(2 * i));
    add("head", "top_l." + std::to_string(2 * config.dlrm.top.size()));
    for (size_t t = 0; t < config.dlrm.tables.size(); ++t)
      out.emplace_back("table" + std::to_string(t) + ".weight", "emb_l." + std::to_string(t) + ".weight");
    return out;
  }
  GoldenClicks batch(int64_t number) const {
    const std::string of = "." + std::to_string(number);
    const std::vector<double> labels = file.values("labels" + of);
    GoldenClicks clicks{file.values("dense" + of), {}, {labels.begin(), labels.end()}};
    for (size_t t = 0; t < config.dlrm.tables.size(); ++t) {
      const std::vector<double> ids = file.values("indices" + of + "." + std::to_string(t));
      EXPECT_EQ(ids.size(), labels.size()) << "one id a table";
      clicks.categories.emplace_back(ids.begin(), ids.end());
    }
    return clicks;
  }
  // Within `tolerance` of max(1, the largest of them).
  static void expect_close(const std::vector<double>& ours, const std::vector<double>& theirs, double tolerance, const std::string& what) {
    ASSERT_EQ(ours.size(), theirs.size()) << what;
    double largest = 1;
    for (const double value : theirs) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < ours.size(); ++i) ASSERT_LE(std::fabs(ours[i] - theirs[i]), tolerance * largest) << what << " entry " << i;
  }

  const SafetensorsFile file, weights;
  const ModelConfig config;
};

}  // namespace comera::test
