// The table of methods and the settings they carry.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/config/named_methods.h"
#include "core/layers/stash.h"
#include "core/methods/plateau.h"
#include "core/methods/tables.h"
#include "core/optim/optimizer.h"

namespace comera {
namespace {

TEST(Methods, TheTableIsWellFormed) {
  std::set<std::string> ids;
  for (const NamedMethod& recipe : named_methods()) {
    EXPECT_TRUE(ids.insert(recipe.id).second) << recipe.id;
    EXPECT_FALSE(std::string(recipe.title).empty());
    EXPECT_FALSE(std::string(recipe.summary).empty());
    EXPECT_EQ(find_method(recipe.id).id, recipe.id);
    MethodConfig config = recipe.config, read;
    std::vector<Problem> problems;
    const Json json = fields_to_json(fields_of(config));
    fields_from_json(fields_of(read), json, problems);
    EXPECT_TRUE(problems.empty()) << recipe.id << ": " << (problems.empty() ? "" : problems[0].path + " " + problems[0].text);
    EXPECT_EQ(fields_to_json(fields_of(read)), json);
    EXPECT_TRUE(make_optimizer(recipe.config));
    EXPECT_TRUE(make_stash(recipe.config));
  }
  for (const char* id : {"adamw", "comera", "adam8bit", "galore", "mesa", "comera+adam8bit", "comera+mesa"})
    EXPECT_TRUE(ids.count(id)) << id;
}

TEST(Methods, EpsIsThatOfThePublishedOptimizer) {
  MethodConfig config;
  for (const auto& [optimizer, eps] : {std::pair("adamw", 1e-8), {"adam8bit", 1e-8}, {"galore", 1e-6}}) {
    config.optimizer = optimizer;
    EXPECT_EQ(config.chosen().eps, eps) << optimizer;
  }
  config.galore.rule = "adam8bit";
  EXPECT_EQ(config.chosen().eps, 1e-8) << "8-bit GaLore";
  for (const NamedMethod& recipe : named_methods()) EXPECT_EQ(recipe.config.adam.eps, recipe.config.chosen().eps) << recipe.id;
}

TEST(Methods, AnUnknownNameSuggestsTheNearest) {
  try {
    find_method("galor");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(error.hint().find("galore"), std::string::npos);
  }
}

TEST(Methods, FieldsOfACapturedStepAreNotLive) {
  MethodConfig config;
  for (const FieldEntry& entry : fields_list(fields_of(config))) {
    EXPECT_FALSE(std::string(entry.info.help).empty()) << entry.path;
    const bool live = entry.info.is_live();
    for (const char* path : {"comera.threshold", "comera.target", "adam.weight_decay", "galore.rank"})
      EXPECT_TRUE(live || entry.path != path) << path;
    for (const char* path : {"adam.beta1", "galore.rule", "comera.mode", "weights"}) EXPECT_FALSE(live && entry.path == path) << path;
  }
}

TEST(Methods, BadChoicesAreProblems) {
  MethodConfig config;
  std::vector<Problem> problems;
  fields_set(fields_of(config), "optimizer", "adam8bits", problems);
  fields_set(fields_of(config), "comera.threshold", "0", problems);
  fields_set(fields_of(config), "galore.rank", "0", problems);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_NE(problems[0].hint.find("adam8bit"), std::string::npos);
  EXPECT_EQ(config.optimizer, "adamw");
}

TEST(ComeraConfig, TheLastTargetSetIsInForce) {
  ComeraConfig config;
  config.target_mib = 2;
  config.only_target("target_mib");
  EXPECT_EQ(config.target, 0);
  EXPECT_EQ(config.target_mib, 2);
  config.target_compression = 100;
  config.only_target("target_compression");
  EXPECT_EQ(config.target_mib, 0);
  config.target = 0.2;
  config.only_target("target");
  EXPECT_EQ(config.target_compression, 0);
  for (const auto& [field, value] : {std::pair("target_compression", &ComeraConfig::target_compression),
                                     {"target_mib", &ComeraConfig::target_mib},
                                     {"target", &ComeraConfig::target}}) {
    config.*value = 3;  // the one before is in force
    config.only_target(field);
    EXPECT_EQ(config.*value, 3);
    EXPECT_EQ(config.target + config.target_mib + config.target_compression, 3) << field;
  }
  config.target = 0;  // clearing one sets no other
  config.only_target("target");
  config.only_target("threshold");
  EXPECT_EQ(config.target_mib + config.target_compression, 0);
}

// ---- plateau ----------------------------------------------------------------------------------------------------

TEST(Plateau, AFallingLossIsNone) {
  PlateauState state;
  for (int step = 0; step < 3000; ++step) {
    state.update(3 * std::exp(-step / 1500.0) + 0.3 * ((step * 7919) % 13 - 6) / 6);
    EXPECT_FALSE(state.reached(100)) << step;
  }
}

TEST(Plateau, AFlatLossIsFoundAfterThePatience) {
  PlateauState state;
  int found = 0;
  for (int step = 1; step <= 3000 && found == 0; ++step) {
    state.update(std::max(1.0, 3 - step / 500.0) + 0.2 * ((step * 7919) % 13 - 6) / 6);
    if (state.reached(200)) found = step;
  }
  EXPECT_GT(found, 1200);  // flat from 1000
  EXPECT_LT(found, 2000);
}

TEST(Plateau, TheWarmUpEndsWithTheHundredthLoss) {
  PlateauState state;
  for (int step = 1; step <= 99; ++step) state.update(1);
  EXPECT_EQ(state.best_step, 0);
  EXPECT_FALSE(state.reached(0));
  state.update(1);
  EXPECT_EQ(state.best_step, 100);
  EXPECT_NEAR(state.best, 1, 1e-12);
  EXPECT_TRUE(state.reached(0));
  state.update(1);
  EXPECT_EQ(state.best_step, 100) << "no better";
  EXPECT_TRUE(state.reached(1));
  EXPECT_FALSE(state.reached(2));
}

TEST(Plateau, TheStateIsWhole) {
  PlateauState a;
  for (int step = 0; step < 150; ++step) a.update(1.0 / (1 + step));
  PlateauState b = PlateauState::from_json(parse_valid_json(a.to_json().dump()));
  for (int step = 0; step < 1500; ++step) {
    a.update(0.01);
    b.update(0.01);
    ASSERT_EQ(a.smoothed(), b.smoothed());
    ASSERT_EQ(a.reached(150), b.reached(150));
  }
  EXPECT_TRUE(a.reached(150));
}

}  // namespace
}  // namespace comera
