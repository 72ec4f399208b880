// What a model in a file computes, and the parameters of a run, for tests that compare forms of one model.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/train/scorer.h"
#include "tests/train/small_runs.h"

namespace comera::test {

inline std::map<std::string, std::vector<double>> values_of(Trainer& trainer) {
  std::map<std::string, std::vector<double>> out;
  for (Param& param : trainer.engine().params().params()) out[param.name] = to_host(trainer.engine().device(), param.value);
  return out;
}

struct Outputs {
  double loss = 0;
  std::vector<double> logits;
};

inline Outputs scored(const std::string& file, const RunConfig& config) {
  const auto device = open_cpu_device(1);
  Outputs out;
  out.loss = Scorer(file, *device)
                 .score(*data_of(config),
                        [&](int64_t, const std::vector<double>& row) { out.logits.insert(out.logits.end(), row.begin(), row.end()); })
                 .loss;
  return out;
}

inline void expect_equal(const Outputs& a, const Outputs& b) {
  EXPECT_NEAR(a.loss, b.loss, 1e-5);
  ASSERT_EQ(a.logits.size(), b.logits.size());
  for (size_t i = 0; i < a.logits.size(); ++i) ASSERT_NEAR(a.logits[i], b.logits[i], 1e-4) << i;
}

}  // namespace comera::test
