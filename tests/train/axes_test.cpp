// Every point of the axes of a method, in one list: weights, stash, optimizer and its rule, the time of its update, what is computed again,
// sampled rows, micro-batches. Each that the config allows trains 20 steps of a small network in the bytes it planned, with finite losses;
// the others are refused with a reason. New values of an axis are in it by their choice.
#include <iostream>
#include <set>

#include "tests/config/choices.h"
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

struct AxesPoint {
  std::string name;
  RunConfig config;
};

// Choices of one setting multiply the points. A point without the setting, as an optimizer without a rule, stays as it is.
void times(std::vector<AxesPoint>& points, const std::function<std::string(const AxesPoint&)>& path_of) {
  std::vector<AxesPoint> out;
  for (const AxesPoint& point : points) {
    const std::string path = path_of(point);
    const FieldEntry* setting = find_setting(path);
    if (!setting) out.push_back(point);
    for (const Choice& choice : setting ? setting->info.choices : std::vector<Choice>{}) {
      AxesPoint one = point;
      set_field_values(fields_of(one.config), {{path, std::string(choice.id)}});
      one.name += std::string(" ") + choice.id;
      out.push_back(std::move(one));
    }
  }
  points = std::move(out);
}
void times(std::vector<AxesPoint>& points, const std::string& path) {
  times(points, [&](const AxesPoint&) { return path; });
}
void with(std::vector<AxesPoint>& points, const char* name, void (*change)(RunConfig&)) {
  for (size_t i = 0, count = points.size(); i < count; ++i) {
    AxesPoint one = points[i];
    change(one.config);
    one.name += std::string(" ") + name;
    points.push_back(std::move(one));
  }
}

std::vector<AxesPoint> every_point() {
  std::vector<AxesPoint> points = {{"", text_config()}};
  points[0].config.train.steps = 20;
  points[0].config.train.eval_every = 0;
  shrink(points[0].config.method);
  times(points, "method.weights");
  times(points, "method.stash");
  times(points, "method.optimizer");
  times(points, [](const AxesPoint& point) {
    const FieldEntry* variants = variants_of(point.config.method.optimizer);
    return variants ? variants->path : "";
  });
  times(points, "method.update");
  std::vector<AxesPoint> parts = points, bf16 = points, int8 = points;
  with(parts, "parts", [](RunConfig& c) { c.train.micro_batches = 2, c.method.galore.sums = c.method.coap.sums = "projected"; });
  with(bf16, "bf16 weights", [](RunConfig& c) { c.method.weight_format = "bf16"; });
  with(int8, "int8 weights", [](RunConfig& c) { c.method.weight_format = "int8"; });
  with(points, "waist", [](RunConfig& c) { c.method.waist = true; });
  with(points, "checkpoint", [](RunConfig& c) { c.method.checkpoint = 1; });
  with(points, "sampled", [](RunConfig& c) { c.method.wta.ratio = 0.5; });
  for (const std::vector<AxesPoint>* more : {&parts, &bf16, &int8})
    points.insert(points.end(), more->begin() + static_cast<std::ptrdiff_t>(more->size() / 2), more->end());
  for (AxesPoint& point : points) {
    const double factor = take_rates_of_adamw(point.config.method);
    for (double* rate : {&point.config.train.lr, &point.config.train.lr_core}) *rate *= factor;
  }
  return points;
}

void train_point(const AxesPoint& point) {
  SCOPED_TRACE(point.name);
  const auto device = open_device("cpu", 1);
  Log log;
  Trainer trainer(point.config, data_of(point.config), nullptr, *device, log);
  const int64_t planned = trainer.engine().planned().total();
  trainer.start();
  while (!trainer.finished()) trainer.step();
  EXPECT_EQ(trainer.engine().memory().peak().total(), planned);
  ASSERT_EQ(log.losses.size(), 20u);
  for (const double loss : log.losses) ASSERT_TRUE(std::isfinite(loss));
}

// In quarters, which run side by side.
class SlowAxes : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Quarters, SlowAxes, testing::Range<size_t>(0, 4));

TEST_P(SlowAxes, EveryCombinationTrainsAsPlannedOrIsRefusedWithAReason) {
  size_t trained = 0, refused = 0;
  std::set<std::string> reasons;
  const std::vector<AxesPoint> points = every_point();
  for (size_t i = points.size() * GetParam() / 4; i < points.size() * (GetParam() + 1) / 4; ++i) {
    const std::vector<Problem> problems = config_problems(points[i].config);
    for (const Problem& problem : problems) {
      EXPECT_FALSE(problem.text.empty()) << points[i].name;
      reasons.insert(problem.path + " " + problem.text);
    }
    ++(problems.empty() ? trained : refused);
    if (problems.empty()) train_point(points[i]);
  }
  std::cout << points.size() << " combinations; of this quarter " << trained << " trained, " << refused << " refused:\n";
  for (const std::string& reason : reasons) std::cout << "  " << reason << "\n";
  EXPECT_GT(trained, 500u);
}

}  // namespace
}  // namespace comera::test
