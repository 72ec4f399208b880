// What a device that captures must do with whole runs: the recording device in every build, a GPU where there is one.
#pragma once
#include <cmath>
#include <filesystem>
#include <string>

#include "tests/train/course.h"

namespace comera::test {

// The same run op by op and replayed, on one device: the same bytes.
inline void captured_is_eager_on(Device& device, const RunConfig& config) {
  const std::string saved[2] = {file("op-by-op"), file("replayed")};
  Course courses[2];
  int64_t captures[2] = {};
  for (int replay : {0, 1}) {
    Trainer trainer(config, data_of(config), data_of(config), device, courses[replay]);
    trainer.engine().replay(replay == 1);
    trainer.start();
    while (!trainer.finished()) one_step(trainer);
    trainer.save(saved[replay]);
    captures[replay] = trainer.engine().captures();
  }
  EXPECT_EQ(captures[0], 0);
  EXPECT_GE(captures[1], 2);
  ASSERT_EQ(courses[0].lines.size(), courses[1].lines.size());
  for (size_t i = 0; i < courses[0].lines.size(); ++i) ASSERT_EQ(courses[0].lines[i], courses[1].lines[i]);
  EXPECT_EQ(difference(saved[0], saved[1]), "");
  if (config.tensorised()) {
    EXPECT_GE(courses[1].events["truncation"], 1) << "the test wants a cut on its way";
    EXPECT_GE(courses[1].events["regrowth"], 1) << "and a growth";
  }
  for (const std::string& path : saved) std::filesystem::remove(path);
}

// Edits of live settings while it trains, one a step.
inline void edits_capture_nothing_on(Device& device, int64_t edits) {
  RunConfig config = image_config();
  config.train.steps = edits + 20;
  config.train.lr_rank = 0;  // the ranks stay, so that nothing is cut
  config.method.comera.late_after = 10;
  Log log;
  Trainer trainer(config, data_of(config), nullptr, device, log);
  trainer.start();
  for (int i = 0; i < 20; ++i) trainer.step();
  const int64_t before = trainer.engine().captures();
  EXPECT_EQ(before, 2);
  const char* paths[] = {"train.lr_core", "method.adam.weight_decay", "method.comera.rank_weight", "method.comera.target",
                         "method.comera.loss_target"};
  for (int64_t edit = 0; edit < edits; ++edit) {
    trainer.edit(paths[edit % 5], Json(0.001 + 0.0001 * static_cast<double>((edit * 37) % 50)).dump());
    trainer.step();
  }
  trainer.drain();
  EXPECT_EQ(trainer.engine().captures(), before);
  EXPECT_TRUE(std::isfinite(log.losses.back()));
}

// A bond that is cut and grown again and again: each time both programs of a step are captured anew, and what the old
// ones held is given back. `leak`: bytes that may be missing in the end.
inline void captures_leak_nothing_on(Device& device, int64_t captures, int64_t leak) {
  RunConfig config = image_config();
  config.train.lr_rank = 0;
  config.train.steps = 100 * captures;
  config.method.comera.prune_every = 2;
  Course course;
  Trainer trainer(config, data_of(config), nullptr, device, course);
  trainer.start();
  const std::string cap = "rank.cap." + trainer.engine().params().rank_layers()[0].name + ".2";
  bool cut = true;
  const auto cut_and_grow = [&](int64_t until) {
    for (; trainer.engine().captures() < until; cut = !cut) {
      trainer.edit(cap, cut ? "2" : "6");
      const int64_t begin = trainer.engine().captures();
      for (int step = 0; step < 20 && trainer.engine().captures() < begin + 2; ++step) trainer.step();
      ASSERT_EQ(trainer.engine().captures(), begin + 2) << "step " << trainer.state().step;
    }
    trainer.drain();
  };
  for (int step = 0; step < 10; ++step) trainer.step();
  ASSERT_NO_FATAL_FAILURE(cut_and_grow(12));  // what libraries take once is taken
  device.synchronize();
  const int64_t free = device.free_bytes();
  ASSERT_NO_FATAL_FAILURE(cut_and_grow(12 + captures));
  device.synchronize();
  EXPECT_GE(device.free_bytes(), free - leak);
  EXPECT_GE(course.events["truncation"], captures / 4);
  EXPECT_GE(course.events["regrowth"], captures / 4);
}

}  // namespace comera::test
