// The description of every stored metric.
#include "core/config/metrics.h"

#include <gtest/gtest.h>

#include <set>

namespace comera {
namespace {

TEST(Metrics, EachIsDescribedOnce) {
  std::set<std::string> names, titles;
  for (const MetricInfo& metric : all_metrics()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_TRUE(titles.insert(metric.title).second) << metric.title;
    EXPECT_NE(std::string(metric.symbol), "") << metric.name;
    EXPECT_TRUE(std::string(metric.help).ends_with('.')) << metric.name;
    EXPECT_GT(metric.factor, 0) << metric.name;
    EXPECT_EQ(find_metric(metric.name), &metric);
  }
}

TEST(Metrics, ShownUnitsFitTheirFactors) {
  for (const MetricInfo& metric : all_metrics()) {
    const std::string unit = metric.unit, name = metric.name;
    EXPECT_EQ(unit == "%", metric.factor == 100) << name;
    EXPECT_EQ(unit == "MiB", metric.factor < 1) << name;
    EXPECT_EQ(unit == "ms", name.ends_with("_ms")) << name;
  }
}

TEST(Metrics, TimesAndMemoryAreMeasurements) {
  for (const MetricInfo& metric : all_metrics()) {
    const std::string name = metric.name;
    EXPECT_EQ(metric.measured, name.ends_with("_ms") || name.ends_with("_bytes")) << name;
  }
}

TEST(Metrics, AnUnknownOneKeepsItsName) {
  const std::string name = "bleu";
  EXPECT_EQ(find_metric(name), nullptr);
  EXPECT_EQ(std::string(describe_metric(name).title), name);
  EXPECT_EQ(describe_metric(name).better, Better::none);
}

}  // namespace
}  // namespace comera
