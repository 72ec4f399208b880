// The description of every setting: all that the command line, the form and the live controls show comes from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/path_visitor.h"
#include "core/config/config.h"

namespace comera {
namespace {

// Every condition on which a setting or a group depends.
class Conditions : public PathVisitor {
 public:
  std::vector<std::pair<std::string, When>> all;
  std::map<std::string, std::string> titles;  // of groups
  void field(const char* name, int64_t&, const FieldInfo& info) override { add(name, info.when); }
  void field(const char* name, double&, const FieldInfo& info) override { add(name, info.when); }
  void field(const char* name, bool&, const FieldInfo& info) override { add(name, info.when); }
  void field(const char* name, std::string&, const FieldInfo& info) override { add(name, info.when); }
  void field(const char* name, std::vector<int64_t>&, const FieldInfo& info) override { add(name, info.when); }

 private:
  void nested(const char* name, const GroupInfo& info, const std::function<void(FieldVisitor&)>& visit) override {
    add(name, info.when);
    titles[path_of(name)] = info.title;
    PathVisitor::nested(name, info, visit);
  }
  void add(const char* name, const When& when) {
    if (*when.path) all.emplace_back(path_of(name), when);
    for (const When& other : when.others) add(name, other);
    for (const When& exception : when.unless) add(name, exception);
  }
};

Conditions conditions() {
  RunConfig config;
  Conditions found;
  config.fields(found);
  return found;
}

std::string group_of(const std::string& path) { return path.substr(0, std::min(path.rfind('.'), path.size())); }

UnusedSettings unused_of(RunConfig config) { return unused_settings(fields_of(config)); }

TEST(Settings, EachHasATitleAndHelp) {
  for (const FieldEntry& setting : all_settings()) {
    const std::string title = setting.info.title, help = setting.info.help;
    EXPECT_NE(title, "") << setting.path;
    EXPECT_EQ(title.substr(0, title.find('(')).find('_'), std::string::npos) << setting.path;  // a symbol stands in brackets
    EXPECT_NE(help, "") << setting.path;
    EXPECT_FALSE(help.ends_with('.')) << setting.path << ": help is a phrase, sentences belong to `more`";
    const std::string more = setting.info.more;
    EXPECT_TRUE(more.empty() || more.ends_with('.')) << setting.path;
  }
  for (const auto& [path, title] : conditions().titles) EXPECT_NE(title, "") << path;
}

TEST(Settings, UnitsAreThoseOfTheProgram) {
  const std::set<std::string> units = {"blocks", "",      "steps", "rows", "tokens",    "pixels",     "entries",
                                       "min",    "per s", "share", "MiB",  "x smaller", "evaluations"};
  for (const FieldEntry& setting : all_settings())
    EXPECT_TRUE(units.contains(setting.info.unit)) << setting.path << ": " << setting.info.unit;
}

TEST(Settings, NoTwoTitlesInAGroupAreEqual) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const FieldEntry& setting : all_settings())
    EXPECT_TRUE(seen.emplace(group_of(setting.path), title_with_unit(setting.info)).second) << setting.path;
}

TEST(Settings, EachChoiceIsExplainedOnce) {
  for (const FieldEntry& setting : all_settings()) {
    std::set<std::string> ids;
    for (const Choice& choice : setting.info.choices) {
      EXPECT_TRUE(ids.insert(choice.id).second) << setting.path << "=" << choice.id;
      EXPECT_NE(std::string(choice.title), "") << setting.path << "=" << choice.id;
      EXPECT_TRUE(std::string(choice.about).ends_with('.')) << setting.path << "=" << choice.id;
    }
  }
}

TEST(Settings, SlidersStayInTheRange) {
  for (const FieldEntry& setting : all_settings()) {
    const FieldInfo& info = setting.info;
    if (!info.slides()) continue;
    EXPECT_GE(info.usual.low, info.range.low) << setting.path;
    EXPECT_LE(info.usual.high, info.range.high) << setting.path;
    EXPECT_TRUE(setting.type == "int" || setting.type == "number") << setting.path;
  }
}

TEST(Settings, ConditionsNameASettingAndItsValues) {
  for (const auto& [path, when] : conditions().all) {
    const FieldEntry* axis = find_setting(when.path);
    ASSERT_TRUE(axis) << path << " depends on " << when.path;
    EXPECT_FALSE(when.values.empty()) << path;
    EXPECT_FALSE(axis->info.is_live()) << when.path << ": an edit would change which settings have an effect";
    for (const std::string& value : when.values) {
      const auto is = [&](const Choice& choice) { return value == choice.id; };
      EXPECT_TRUE(axis->type == "bool" ? value == "true" || value == "false"
                                       : std::any_of(axis->info.choices.begin(), axis->info.choices.end(), is))
          << path << " needs " << when.path << "=" << value;
    }
  }
}

TEST(Settings, AnUnusedOneGivesItsReason) {
  RunConfig dense;
  dense.model.kind = "mlp";
  dense.method.weights = "dense";
  const UnusedSettings unused = unused_of(dense);
  EXPECT_EQ(unused.at("model.tt"), "weights are not tt");
  EXPECT_EQ(unused.at("model.tt.attention.rank"), "weights are not tt");
  EXPECT_EQ(unused.at("train.lr_core"), "weights are not tt");
  EXPECT_EQ(unused.at("model.encoder.heads"), "kind is not encoder");
  EXPECT_EQ(unused.at("method.galore.rank"), "optimizer is not galore");
  EXPECT_EQ(unused.at("method.mesa"), "stash is not int8");
  EXPECT_EQ(unused.at("train.lr_final_fraction"), "schedule is constant");
  EXPECT_EQ(unused.at("data.token_budget"), "pack is false");
  EXPECT_FALSE(unused.contains("train.lr"));
  EXPECT_FALSE(unused.contains("model.mlp.hidden"));
  EXPECT_FALSE(unused.contains("method.weights"));

  RunConfig trains = dense;
  trains.method.weights = "tt";
  EXPECT_EQ(unused_of(trains).at("model.tt.attention"), "kind is not encoder or decoder or vit");
  EXPECT_EQ(unused_of(trains).at("method.comera.gamma"), "mode is not paper");
  EXPECT_FALSE(unused_of(trains).contains("model.tt.ffn_in.rank"));
  trains.method.comera.mode = "paper";
  EXPECT_FALSE(unused_of(trains).contains("method.comera.gamma"));
}

TEST(Settings, ARunStoredBeforeThereWasAHoldoutHasNone) {
  Json stored = config_to_json(RunConfig());
  EXPECT_EQ(config_from_json(stored, "a run").data.holdout, 0.1);
  stored["data"].erase("holdout");
  EXPECT_EQ(config_from_json(stored, "a run").data.holdout, 0);
}

// Of a rule that is an optimizer of its own and one inside GaLore and COAP.
TEST(Settings, OtherConditionsAreEnoughWhereTheirSettingIsUsed) {
  RunConfig config;
  config.method.optimizer = "adamw";
  config.method.galore.rule = "adafactor";
  EXPECT_EQ(unused_of(config).at("method.adafactor.beta1"), "optimizer is not adafactor or flora") << "GaLore is not used";
  EXPECT_FALSE(unused_of(config).contains("method.adam.beta1"));
  config.method.optimizer = "galore";
  EXPECT_FALSE(unused_of(config).contains("method.adafactor.beta1"));
  EXPECT_EQ(unused_of(config).at("method.adam.beta1"), "rule is adafactor");
  config.method.galore.rule = "adam8bit";
  EXPECT_EQ(unused_of(config).at("method.adafactor"), "rule is not adafactor");
  EXPECT_FALSE(unused_of(config).contains("method.adam8bit.min_size"));
  EXPECT_FALSE(unused_of(config).contains("method.adam.beta1"));
}

TEST(Settings, ATiedHeadHasNoSettingsOfItsOwn) {
  RunConfig config;
  config.method.weights = "tt";
  config.model.kind = "encoder";
  config.model.task = "masked";
  config.model.encoder.tied = false;
  config.model.decoder.tied = true;
  EXPECT_FALSE(unused_of(config).contains("model.tt.head.rank")) << "the decoder's setting does not count for an encoder";
  config.model.encoder.tied = true;
  EXPECT_EQ(unused_of(config).at("model.tt.head.rank"), "tied is true");
  EXPECT_FALSE(unused_of(config).contains("model.tt.embedding.rank"));
  config.model.task = "classify";
  EXPECT_EQ(unused_of(config).at("model.tt.head").substr(0, 12), "task is not ");
  config.model.kind = "decoder";
  config.model.task = "language";
  EXPECT_EQ(unused_of(config).at("model.tt.head"), "tied is true");
  config.model.decoder.tied = false;
  EXPECT_FALSE(unused_of(config).contains("model.tt.head"));
}

TEST(Settings, ValuesByPathCanBeSetAgain) {
  RunConfig config, other;
  config.train.batch = 7;
  config.model.mlp.hidden = {3, 4};
  config.method.stash = "bf16";
  set_field_values(fields_of(other), field_values(fields_of(config)));
  EXPECT_EQ(config_to_json(other).dump(), config_to_json(config).dump());
  set_field_values(fields_of(other), {{"train.batch", int64_t{9}}});
  EXPECT_EQ(other.train.batch, 9);
  EXPECT_EQ(other.method.stash, "bf16");
}

TEST(Settings, EveryPresetSurvivesJson) {
  for (const std::string& preset : preset_names()) {
    const RunConfig config = load_config(preset, {});
    EXPECT_EQ(config_to_json(config_from_json(config_to_json(config), preset)).dump(), config_to_json(config).dump()) << preset;
  }
}

}  // namespace
}  // namespace comera
