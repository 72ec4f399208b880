// Whole runs by several processes, threads here, against one process that computes all parts.
#pragma once
#include <filesystem>

#include "core/train/device_links.h"
#include "tests/train/course.h"
#include "tests/train/linked_device.h"

namespace comera::test {

struct Trained {
  std::vector<std::string> lines;
  std::string checkpoint;
  bool linked = false;     // its device, to those of others
  int64_t sent_bytes = 0;  // of gradients
};

// The whole run with a change of every kind, in exactly the planned memory; its last checkpoint in a file of this name.
using Open = std::function<std::unique_ptr<Device>(Communicator* others)>;
inline std::unique_ptr<Device> cpu_of_one_thread(Communicator*) { return open_cpu_device(1); }

inline Trained trained(const RunConfig& config, const std::string& name, Communicator* others, const Open& open = cpu_of_one_thread) {
  const std::unique_ptr<Device> device = open(others);
  if (others) link_devices(*device, *others);
  auto* const linked = dynamic_cast<LinkedDevice*>(device.get());
  const int64_t greetings = linked ? linked->delivered_bytes : 0;
  Trained out;
  out.linked = others && link_of(*device, *others);
  Course course;
  Trainer trainer(config, data_of(config), data_of(config), *device, course, others);
  const int64_t planned = trainer.engine().planned().total();
  trainer.start();
  EXPECT_EQ(trainer.engine().memory().now().total(), planned);
  while (!trainer.finished()) {
    const auto planned_traffic = [&](int64_t step) { return trainer.engine().planned_traffic(step); };
    const int64_t before = planned_traffic(trainer.state().step + 1);
    one_step(trainer);
    EXPECT_EQ(trainer.engine().memory().now().total(), trainer.engine().planned().total());
    // Bonds grow before a step and are cut after it.
    const int64_t sent = trainer.engine().shared_step().sent_bytes;
    out.sent_bytes += sent;
    EXPECT_TRUE(sent == before || sent == planned_traffic(trainer.state().step)) << sent << " " << before;
    EXPECT_EQ(sent > 0, others != nullptr);
    EXPECT_EQ(trainer.engine().shared_step().compute_ms.size(), others ? static_cast<size_t>(others->processes()) : 0);
  }
  if (linked && linked->link()) {
    EXPECT_EQ(linked->delivered_bytes - greetings + others->sent_bytes(), out.sent_bytes) << "hosts send projections";
  }
  out.lines = course.lines;
  out.checkpoint = file(name + (others ? std::to_string(others->process()) : ""));
  trainer.save(out.checkpoint);
  return out;
}

inline void expect_equal(const Trained& alone, const Trained& shared) {
  EXPECT_EQ(alone.lines, shared.lines);
  EXPECT_EQ(difference(alone.checkpoint, shared.checkpoint), "");
}

// One process against each of these numbers of processes.
inline void expect_same_bits(const RunConfig& config, const std::vector<int>& counts, const Open& open = cpu_of_one_thread) {
  const Trained alone = trained(config, "alone", nullptr, open);
  for (const int count : counts) {
    SCOPED_TRACE(std::to_string(count) + " processes");
    std::vector<Trained> shared(static_cast<size_t>(count));
    const auto ends = run_processes(
        count, [&](Communicator& others) { shared[static_cast<size_t>(others.process())] = trained(config, "shared", &others, open); });
    EXPECT_EQ(ends, std::vector<std::string>(ends.size()));
    for (const Trained& one : shared) {
      expect_equal(alone, one);
      std::filesystem::remove(one.checkpoint);
    }
  }
  std::filesystem::remove(alone.checkpoint);
}

inline RunConfig in_parts(RunConfig config, int64_t parts, int64_t steps = kSteps) {
  config = scripted(std::move(config));
  config.train.steps = steps;
  config.train.batch = 12;
  config.train.micro_batches = parts;
  return config;
}

}  // namespace comera::test
