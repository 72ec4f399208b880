// Whole runs, every method: the GPU's ops against the CPU's, step by step, emulated and, where there is one, on a device.
#include "core/config/named_methods.h"
#include "core/train/checkpoint.h"
#include "core/train/forecast.h"
#include "tests/config/choices.h"
#include "tests/gpu/emulated_machine.h"
#include "tests/train/captured_on.h"

namespace comera::test {
namespace {

class EmulatedMethods : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> ids() {
  std::vector<std::string> ids;
  for (const NamedMethod& recipe : named_methods()) ids.push_back(recipe.id);
  return ids;
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) { return test_name(info.param); }

void compare(RunConfig config, Device& device) {
  config.train.precision = "f64";
  config.train.steps = 12;
  set_each(config.method, "reset_every", int64_t{2});
  config.method.comera.prune_every = 4;
  const auto cpu = open_device("cpu", 1);
  Log first, second;
  Trainer expected(config, data_of(config), nullptr, *cpu, first), found(config, data_of(config), nullptr, device, second);
  expected.start();
  found.start();
  while (!expected.finished()) {
    if (config.tensorised() && expected.state().step == 8)
      for (Trainer* trainer : {&expected, &found}) trainer->edit("stage", "late");
    expected.step();
    found.step();
  }
  expected.drain();
  found.drain();  // a device tells its results some steps late
  ASSERT_EQ(second.losses.size(), first.losses.size());
  for (size_t i = 0; i < first.losses.size(); ++i) ASSERT_NEAR(second.losses[i], first.losses[i], 1e-8) << "step " << i + 1;
  EXPECT_EQ(first.events, second.events);
  ASSERT_EQ(expected.engine().params().params().size(), found.engine().params().params().size());
  for (const Param& param : expected.engine().params().params()) {
    // Its gradient is rounding alone, and steps of some rules do not depend on the size of gradients.
    if (param.name.ends_with("attn.k.bias")) continue;
    const Param* other = found.engine().params().find(param.name);
    ASSERT_NE(other, nullptr);
    const auto a = to_host(*cpu, param.value), b = to_host(device, other->value);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-7) << param.name << " " << i;
  }
}

// Networks of a method; of CoMERA also two whose attention and feed-forward blocks are computed in the space of ranks, one with rotary
// positions.
std::vector<RunConfig> configs_of(const std::string& method) {
  std::vector<RunConfig> configs = {image_config(), text_config()};
  for (RunConfig& config : configs) config.method = find_method(method).config;
  if (method == "comera") {
    RunConfig thin = configs.back();
    thin.model.encoder.heads = 2;
    thin.method.waist = true;
    configs.push_back(thin);
    thin.model.encoder.rotary = true;
    thin.model.encoder.segments = 0;
    configs.push_back(thin);
  }
  return configs;
}

void compare(const std::string& method, Device& device) {
  for (RunConfig config : configs_of(method)) {
    SCOPED_TRACE(method + " " + config.model.kind + (config.method.waist ? " with the waist" : ""));
    shrink(config.method);
    set_each(config.method, "rank", int64_t{3});  // directions that a batch of a few examples determines
    compare(config, device);
  }
}

TEST_P(EmulatedMethods, StepByStepAsOnTheCpu) {
  EmulatedDevice device({.threads = 1});
  compare(GetParam(), device);
}

// On a device, where steps are captured: NVIDIA's, or the one in software (tests/CMakeLists.txt).
void open_a_device(std::unique_ptr<Device>& device) {
  const CudaStatus status = cuda_status();
  if (status.devices.empty()) GTEST_SKIP() << "no CUDA device: " << status.reason;
  device = open_cuda_device(0);
  ASSERT_TRUE(device->captures());
}

class CudaMethods : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { open_a_device(device_); }
  std::unique_ptr<Device> device_;
};

TEST_P(CudaMethods, StepByStepAsOnTheCpu) { compare(GetParam(), *device_); }

// What follows is shown on the recording device in every build (tests/train/captured_test.cpp).
TEST_P(CudaMethods, CapturedIsEagerByteForByte) {
  for (const RunConfig& config : configs_of(GetParam())) {
    SCOPED_TRACE(config.model.kind);
    captured_is_eager_on(*device_, scripted(config));
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaMethods, ::testing::ValuesIn(ids()), name_of);

class CudaCaptured : public ::testing::Test {
 protected:
  void SetUp() override { open_a_device(device_); }
  std::unique_ptr<Device> device_;
};

TEST_F(CudaCaptured, TwoThousandEditsCaptureNothing) { edits_capture_nothing_on(*device_, 2000); }

TEST_F(CudaCaptured, TwoHundredCapturesLeakNothing) { captures_leak_nothing_on(*device_, 200, 8 << 20); }

// What a GPU holds cannot be read from the host. With memory that is closed to it a step that does so ends the program.
TEST(EmulatedTraining, TheHostNeverLooksAtDeviceMemory) {
  for (const char* method : {"comera", "galore", "coap"}) {
    RunConfig config = text_config();
    config.method = find_method(method).config;
    config.method.comera.prune_every = 2;
    config.method.galore.gap = config.method.coap.gap = 2;
    config.train.steps = 4;
    EmulatedDevice device({.threads = 1}, true);
    Log log;
    Trainer trainer(config, data_of(config), nullptr, device, log);
    trainer.start();
    while (!trainer.finished()) trainer.step();
    trainer.save(file("closed"));
    EXPECT_TRUE(std::isfinite(log.losses.back()));
    std::filesystem::remove(file("closed"));
  }
}

// A device that is lost in the middle of a step ends the run with an error; the last checkpoint is whole, and a run that
// goes on from it elsewhere ends as if nothing had been.
TEST(EmulatedTraining, ALostDeviceLeavesTheLastCheckpoint) {
  RunConfig config = image_config();
  config.train.steps = 6;
  const std::string saved = file("lost"), whole = file("lost-whole"), again = file("lost-again");
  Log log;
  {
    EmulatedDevice device({.threads = 1});
    Trainer trainer(config, data_of(config), nullptr, device, log);
    trainer.start();
    while (!trainer.finished()) {
      trainer.step();
      if (trainer.state().step == 3) trainer.save(saved);
    }
    trainer.save(whole);
  }
  const std::string before = saved + "-copy";
  std::filesystem::copy_file(saved, before);
  {
    EmulatedDevice device({.threads = 1});
    Trainer trainer(config, data_of(config), nullptr, device, log);
    trainer.restore(saved);
    trainer.step();
    device.machine().lost_at = device.machine().launches + 7;
    try {
      trainer.step();
      FAIL() << "nothing was lost";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::device);
      EXPECT_NE(std::string(error.what()).find("("), std::string::npos) << "the op's shape: " << error.what();
    }
    EXPECT_THROW(trainer.save(saved), Error);
  }
  EXPECT_EQ(difference(saved, before), "");
  EmulatedDevice device({.threads = 1});
  Trainer trainer(checkpoint_config(saved), data_of(config), nullptr, device, log);
  trainer.restore(saved);
  while (!trainer.finished()) trainer.step();
  trainer.save(again);
  EXPECT_EQ(difference(whole, again), "");
  for (const std::string& path : {saved, before, whole, again}) std::filesystem::remove(path);
}

TEST(EmulatedTraining, ProductsAndFreeMemoryAreTheDevices) {
  RunConfig config = image_config();
  config.train.matmul = "tf32";
  const auto problems = [](const RunConfig& of) {
    const std::vector<Problem> all = config_problems(of);
    return std::count_if(all.begin(), all.end(), [](const Problem& problem) { return problem.path == "train.matmul"; });
  };
  EXPECT_EQ(problems(config), 1) << "the CPU";
  config.train.device = "cuda:1";
  EXPECT_EQ(problems(config), 0);
  RunConfig wide = config;
  wide.train.precision = "f64";
  EXPECT_EQ(problems(wide), 1);

  EmulatedDevice device({.threads = 1});
  Engine engine(config, device);
  EXPECT_EQ(device.products, Products::fp32) << "a plan changes nothing";
  engine.allocate();
  EXPECT_EQ(device.products, Products::tf32);
  const auto cpu = open_cpu_device(1);
  Engine refused(config, *cpu);
  EXPECT_THROW(refused.allocate(), Error);
  for (const char* how : {"bf16", "fp8"}) {
    config.train.matmul = how;
    EXPECT_EQ(problems(config), 0) << how;
    EmulatedDevice other({.threads = 1});
    Engine(config, other).allocate();
    EXPECT_STREQ(name_of(other.products), how);
  }

  const MemoryByPurpose planned = engine.planned();
  device.free = 4096;
  EXPECT_EQ(available_on(device), 4096) << "its own, whatever the machine has";
  device.free = -1;
  check_fits(planned, available_on(device));  // the machine's
  device.free = planned.total();
  check_fits(planned, available_on(device));
  device.free = planned.total() - 1;
  EXPECT_THROW(check_fits(planned, available_on(device)), Error);
}

// Working memory of the ops, lent by the engine: as much as its plan says, to the byte, and none besides.
TEST_P(EmulatedMethods, WorkingMemoryIsPlanned) {
  for (RunConfig config : {image_config(), text_config()}) {
    SCOPED_TRACE(config.model.kind);
    config.method = find_method(GetParam()).config;
    config.method.comera.prune_every = 2;
    config.train.steps = 3;
    EmulatedDevice device({.threads = 1, .gemm_and = false});  // a bias on a product needs less
    Log log;
    Trainer trainer(config, data_of(config), data_of(config), device, log);
    const MemoryByPurpose planned = trainer.engine().planned();
    trainer.start();
    EXPECT_EQ(trainer.engine().memory().now().bytes, planned.bytes);
    if (config.tensorised()) trainer.edit("rank.cap." + trainer.engine().params().rank_layers()[0].name + ".1", "2");
    trainer.step();
    EXPECT_GT(device.workspace_bytes(), 0);
    EXPECT_EQ(device.machine().taken(), device.workspace_bytes());
    trainer.step();
    EXPECT_EQ(log.count("truncation"), config.tensorised() ? 1 : 0) << "the next plan was to be seen";
    trainer.step();
    EXPECT_EQ(device.machine().own_bytes, 0);
    EXPECT_EQ(trainer.engine().memory().now().total(), trainer.engine().planned().total());
  }
}

INSTANTIATE_TEST_SUITE_P(All, EmulatedMethods, ::testing::ValuesIn(ids()), name_of);

}  // namespace
}  // namespace comera::test
