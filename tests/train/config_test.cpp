// Settings whose default depends on others.
#include "core/config/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>

namespace comera::test {
namespace {

double eps_of(const std::vector<std::string>& sets, ConfigOrigins* origins = nullptr) {
  return load_config("demo", sets, origins).method.adam.eps;
}

TEST(LoadConfig, EpsIsThatOfTheOptimizerUnlessASourceSetsIt) {
  EXPECT_EQ(eps_of({}), 1e-8);
  EXPECT_EQ(eps_of({"method.optimizer=galore"}), 1e-6);
  EXPECT_EQ(eps_of({"method.optimizer=galore", "method.galore.rule=adam8bit"}), 1e-8);
  EXPECT_EQ(eps_of({"method.optimizer=galore", "method.galore.eight_bit=true"}), 1e-8) << "the old name";
  EXPECT_EQ(eps_of({"method.optimizer=coap", "method.coap.rule=adam8bit"}), 1e-6);
  EXPECT_EQ(eps_of({"method.adam.eps=1e-8", "method.optimizer=galore"}), 1e-8) << "set, in whichever order";
  EXPECT_EQ(eps_of({"method.optimizer=galore", "method.adam.eps=0"}), 0);
  ConfigOrigins origins;
  EXPECT_EQ(eps_of({"method.optimizer=galore"}, &origins), 1e-6);
  EXPECT_EQ(origins.count("method.adam.eps"), 0u) << "built-in";
  EXPECT_EQ(origins.at("method.optimizer"), "--set");
  ASSERT_EQ(::setenv("COMERA_METHOD_ADAM_EPS", "1e-5", 1), 0);
  EXPECT_EQ(eps_of({"method.optimizer=galore"}), 1e-5);
  ::unsetenv("COMERA_METHOD_ADAM_EPS");
}

// A run is computed again, and forked, with the number that it was trained with.
TEST(LoadConfig, AStoredConfigKeepsItsEps) {
  RunConfig config = load_config("demo", {"method.weights=dense", "method.optimizer=galore", "method.adam.eps=1e-8"});
  RunConfig stored = config_from_json(config_to_json(config), "stored");
  EXPECT_EQ(stored.method.adam.eps, 1e-8);
  stored.method.adam.eps = 3e-7;
  set_config(stored, {"method.galore.rule=adam8bit"});
  EXPECT_EQ(stored.method.adam.eps, 3e-7);
}

// A run that was stored before there was this choice is computed again as it was.
TEST(LoadConfig, RefreshesOfAStoredRunAreNotStaggeredLater) {
  const RunConfig config = load_config("demo", {"method.optimizer=galore"});
  EXPECT_EQ(config.method.galore.refresh, "staggered");
  Json stored = config_to_json(config);
  EXPECT_EQ(config_from_json(stored, "stored").method.galore.refresh, "staggered");
  stored["method"]["galore"].erase("refresh");
  EXPECT_EQ(config_from_json(stored, "stored").method.galore.refresh, "together");
}

TEST(LoadConfig, AStoredRunKeepsItsExactDecomposition) {
  for (const char* optimizer : {"galore", "q-galore"}) {
    const auto decomposition = [&](const Json& json) {
      const RunConfig config = config_from_json(json, "stored");
      return std::string(optimizer) == "galore" ? config.method.galore.decomposition : config.method.q_galore.decomposition;
    };
    Json stored = config_to_json(load_config("demo", {std::string("method.optimizer=") + optimizer}));
    EXPECT_EQ(decomposition(stored), "subspace");
    stored["method"][optimizer].erase("decomposition");
    EXPECT_EQ(decomposition(stored), "exact");
  }
}

}  // namespace
}  // namespace comera::test
