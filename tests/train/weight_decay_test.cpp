// Weight decay of matrices alone, for every optimizer.
#include "core/config/method.h"
#include "tests/config/choices.h"
#include "tests/train/course.h"

namespace comera::test {
namespace {

std::map<std::string, std::vector<double>> after_a_step(const RunConfig& config) {
  const auto device = open_cpu_device(1);
  Log log;
  Trainer trainer(config, data_of(config), nullptr, *device, log);
  trainer.start();
  trainer.step();
  std::map<std::string, std::vector<double>> all;
  for (const Param& param : trainer.engine().params().params()) all[param.name] = to_host(*device, param);
  return all;
}

TEST(WeightDecay, LeavesOutBiasesAndNormsWhereAsked) {
  for (const char* optimizer : choices_of("method.optimizer")) {
    SCOPED_TRACE(optimizer);
    RunConfig config = text_config();
    config.method.weights = "dense";
    config.method.optimizer = optimizer;
    config.train.lr = 1e-2;
    shrink(config.method);
    const auto without = after_a_step(config);
    config.method.adam.weight_decay = 0.5;
    const auto of_all = after_a_step(config);
    config.method.adam.decay_vectors = false;
    const auto of_matrices = after_a_step(config);
    for (const auto& [name, values] : of_matrices) {
      const bool is_norm = name.ends_with(".gamma"), is_vector = is_norm || name.ends_with(".beta") || name.ends_with("bias");
      EXPECT_EQ(values == without.at(name), is_vector) << name;
      if (is_vector && !is_norm) continue;  // begins with 0
      EXPECT_EQ(values == of_all.at(name), !is_norm) << name;
    }
  }
}

}  // namespace
}  // namespace comera::test
