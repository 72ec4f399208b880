#include "core/config/named_methods.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/config/config.h"

namespace comera::test {
namespace {

MethodConfig method(const std::string& name, MethodConfig config = {}) {
  set_method(config, name);
  return config;
}

std::string refusal(const std::string& name) {
  try {
    method(name);
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.why() + " | " + error.hint();
  }
  return "accepted";
}

TEST(NamedMethods, EachPartSetsItsOwnAxis) {
  const MethodConfig made = method("comera+adam8bit+mesa+wta-crs");
  EXPECT_EQ(made.weights, "tt");
  EXPECT_EQ(made.optimizer, "adam8bit");
  EXPECT_EQ(made.stash, "int8");
  EXPECT_EQ(made.wta.ratio, 0.3);
  EXPECT_EQ(made.name, "CoMERA + 8-bit Adam + Mesa + WTA-CRS");
  EXPECT_EQ(method("mesa+adam8bit+comera").name, "CoMERA + 8-bit Adam + Mesa") << "the order of the parts is free";
  EXPECT_EQ(method("adamw").weights, "dense");
  EXPECT_EQ(method("adalomo").update, "backward");
  EXPECT_EQ(method("comera+adamw").weights, "tt");
}

TEST(NamedMethods, ASecondOptimizerIsTheRuleInsideAProjection) {
  EXPECT_EQ(method("galore+adam8bit").galore.rule, "adam8bit");
  EXPECT_EQ(method("adam8bit+galore").optimizer, "galore");
  EXPECT_EQ(method("coap+adafactor8bit").coap.rule, "adafactor8bit");
  EXPECT_EQ(method("coap+adafactor").adafactor.beta1, 0.9) << "COAP refines with a first moment";
  EXPECT_EQ(method("galore", method("galore+adafactor")).galore.rule, "adam");
  EXPECT_EQ(method("adafactor", method("galore+adafactor")).adafactor.beta1, 0);
  EXPECT_EQ(method("galore+adafactor").name, "GaLore + Adafactor");
}

TEST(NamedMethods, SettingsStayAndSpecialOnesGoBack) {
  MethodConfig config = method("galore");
  config.galore.rank = 16;
  config.adam.weight_decay = 0.1;
  config = method("apollo-mini", config);
  EXPECT_EQ(config.apollo.rank, 1);
  EXPECT_EQ(config.apollo.scaling, "tensor");
  config = method("apollo", config);
  EXPECT_EQ(config.apollo.rank, ApolloConfig().rank);
  EXPECT_EQ(config.apollo.scaling, "channel");
  config = method("galore+mesa", config);
  EXPECT_EQ(config.galore.rank, 16);
  EXPECT_EQ(config.adam.weight_decay, 0.1);
  config.apollo.rank = 3;
  EXPECT_EQ(method("apollo", config).apollo.rank, 3);
}

TEST(NamedMethods, BlocksThatBecomeTensorTrainsRecomputeTheirOutputs) {
  for (const char* kind : {"encoder", "decoder", "vit", "mlp", "cnn", "dlrm"}) {
    SCOPED_TRACE(kind);
    const bool has_blocks = kind == std::string("encoder") || kind == std::string("decoder") || kind == std::string("vit");
    RunConfig config;
    config.model.kind = kind;
    set_method(config, "comera+mesa");
    EXPECT_FALSE(config.method.waist) << "as it was: the matrices are tensor trains already";
    set_method(config, "adamw");
    set_method(config, "comera");
    EXPECT_EQ(config.method.waist, has_blocks);
    EXPECT_EQ(name_of_method(config.method), "comera");
    set_method(config, "lora");
    EXPECT_FALSE(config.method.waist);
  }
}

TEST(NamedMethods, EpsIsThatOfTheMethodUnlessItWasSet) {
  MethodConfig config = method("galore", method("adamw"));
  EXPECT_EQ(config.adam.eps, 1e-6);
  EXPECT_EQ(method("galore+adam8bit", config).adam.eps, 1e-8);
  config.adam.eps = 1e-5;
  EXPECT_EQ(method("adamw", config).adam.eps, 1e-5);
}

TEST(NamedMethods, PartsOfOneAxisAndUnknownNamesAreRefused) {
  EXPECT_NE(refusal("comera+lora").find("both set method.weights"), std::string::npos) << refusal("comera+lora");
  EXPECT_NE(refusal("came+adam8bit").find("both are optimizers"), std::string::npos) << refusal("came+adam8bit");
  EXPECT_NE(refusal("galore+coap").find("both are optimizers"), std::string::npos) << refusal("galore+coap");
  EXPECT_NE(refusal("galore+adam8bit+adafactor").find("both are optimizers"), std::string::npos);
  EXPECT_NE(refusal("galor").find("did you mean 'galore'?"), std::string::npos) << refusal("galor");
  EXPECT_NE(refusal("comera+masa").find("did you mean 'mesa'?"), std::string::npos) << refusal("comera+masa");
  for (const char* name : {"", "+", "comera+"}) EXPECT_NE(refusal(name), "accepted") << name;
}

TEST(NamedMethods, EveryNameIsSetAndValid) {
  for (const NamedMethod& named : named_methods()) {
    EXPECT_EQ(fields_to_json(fields_of(const_cast<MethodConfig&>(named.config))), [&] {
      MethodConfig made = method(named.id);
      return fields_to_json(fields_of(made));
    }()) << named.id;
    RunConfig config;
    config.method = named.config;
    EXPECT_TRUE(config_problems(config).empty()) << named.id << ": " << config_problems(config)[0].text;
  }
}

TEST(NamedMethods, IsASettingOfRunsThatOthersComeAfter) {
  const RunConfig config = load_config("demo", {"method=galore+mesa", "method.galore.rank=8", "method.stash=bf16"});
  EXPECT_EQ(config.method.optimizer, "galore");
  EXPECT_EQ(config.method.galore.rank, 8);
  EXPECT_EQ(config.method.stash, "bf16");
  EXPECT_EQ(config.method.adam.eps, 1e-6);
}

}  // namespace
}  // namespace comera::test
