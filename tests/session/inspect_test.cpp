// What is told on request: values of bonds and cores, alerts of whoever watches, times of some steps.
#include "core/session/session.h"

#include <algorithm>
#include <cmath>

#include "core/session/inspect.h"
#include "core/session/replay.h"
#include "core/session/reproduce.h"
#include "core/session/step_profile.h"
#include "tests/session/support.h"

namespace comera {
namespace {

using test::Folder;
using test::has;

TEST(Session, TheEntriesOfOneBondAreShownOnRequest) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.paused = true;
  Session session(std::move(start));
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  EXPECT_EQ(session.latest()->inspected.bond, 0);
  session.post(StepCommand{30});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 30 && s.phase == Phase::paused; }));
  const LayerRanks layer = session.latest()->ranks.front();
  ASSERT_TRUE(until_done(session, session.post(InspectCommand{layer.name, 2})));
  const auto shown = session.latest();
  EXPECT_EQ(shown->last_refusal, "");
  EXPECT_EQ(shown->inspected.layer, layer.name);
  EXPECT_EQ(shown->inspected.bond, 2);
  EXPECT_EQ(shown->inspected.step, 30);
  ASSERT_EQ(static_cast<int64_t>(shown->inspected.values.size()), shown->ranks.front().held[1]);
  const double threshold = ComeraConfig{}.threshold;
  EXPECT_EQ(std::count_if(shown->inspected.values.begin(), shown->inspected.values.end(), [&](double d) { return d > threshold; }),
            shown->ranks.front().live[1]);
  session.post(StepCommand{10});  // they are those of the newest step, also when the bond was cut
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 40 && s.phase == Phase::paused; }));
  EXPECT_EQ(session.latest()->inspected.step, 40);
  EXPECT_NE(session.latest()->inspected.values, shown->inspected.values);
  EXPECT_EQ(static_cast<int64_t>(session.latest()->inspected.values.size()), session.latest()->ranks.front().held[1]);
  ASSERT_TRUE(until_done(session, session.post(InspectCommand{layer.name, 99})));
  EXPECT_TRUE(has(session.latest()->last_refusal, {".99"}));
  EXPECT_EQ(session.latest()->inspected.bond, 0);
  session.post(StopCommand{false});
  ASSERT_TRUE(session.wait(60));
}

// Looking changes nothing either, and a gradient is told only while there is one.
TEST(Session, ACoreIsLookedAtOnRequest) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.paused = true;
  Session session(std::move(start));
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  const LayerRanks layer = session.latest()->ranks.front();
  ASSERT_TRUE(until_done(session, session.post(InspectCommand{layer.name, 0, 1})));
  std::shared_ptr<const Snapshot> shown = session.latest();
  EXPECT_EQ(shown->inspected_core.layer, layer.name);
  EXPECT_EQ(shown->inspected_core.core, 1);
  EXPECT_EQ(shown->inspected.bond, 0);
  EXPECT_EQ(shown->inspected_core.shape, (std::vector<int64_t>{1, layer.in_modes[0], layer.held[0]}));
  const auto values = [](const InspectedCore& core) {
    int64_t all = 0;
    for (const int64_t bin : core.bins) all += bin;
    return all;
  };
  EXPECT_EQ(values(shown->inspected_core), layer.in_modes[0] * layer.held[0]);
  EXPECT_GT(shown->inspected_core.norm, 0);
  EXPECT_TRUE(std::isnan(shown->inspected_core.gradient_norm)) << "before the first step";
  session.post(StepCommand{3});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused && s.inspected_core.step == 3; }));
  EXPECT_GT(session.latest()->inspected_core.gradient_norm, 0);
  EXPECT_NE(session.latest()->inspected_core.norm, shown->inspected_core.norm);
  // Up to the first cut: the cores are smaller then, and their gradients are gone till the next step.
  const auto held = [&] { return session.latest()->ranks.front().held; };
  while (held() == layer.held && session.latest()->step < 75) {
    const int64_t to = session.latest()->step + 1;
    session.post(StepCommand{1});
    ASSERT_TRUE(until(session, [&](const Snapshot& s) { return s.phase == Phase::paused && s.inspected_core.step == to; }));
  }
  ASSERT_NE(held(), layer.held) << "nothing was cut";
  EXPECT_TRUE(std::isnan(session.latest()->inspected_core.gradient_norm));
  EXPECT_EQ(values(session.latest()->inspected_core), layer.in_modes[0] * held()[0]);
  ASSERT_TRUE(until_done(session, session.post(InspectCommand{layer.name, 0, 9})));
  EXPECT_TRUE(has(session.latest()->last_refusal, {"no core", ".9"}));
  EXPECT_EQ(session.latest()->inspected_core.core, 0);
  session.post(StopCommand{true});
  ASSERT_TRUE(session.wait(60));
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
}

TEST(InspectedCore, HistogramAndNorm) {
  const InspectedCore core = describe_core("a", 2, 7, {1, 5}, {-2, 0, 0, 1, 2});
  EXPECT_DOUBLE_EQ(core.norm, 3);
  EXPECT_EQ(core.largest, 2);
  ASSERT_EQ(core.bins.size(), kCoreBins);
  EXPECT_EQ(core.bins.front(), 1);
  EXPECT_EQ(core.bins.back(), 1) << "the largest value is in the last bin";
  EXPECT_EQ(core.bins[kCoreBins / 2], 2);
  EXPECT_EQ(describe_core("a", 1, 0, {2}, {0, 0}).bins[kCoreBins / 2], 2);
  const InspectedCore bad = describe_core("a", 1, 0, {2}, {kUnknown, 1});
  EXPECT_TRUE(std::isnan(bad.norm));
  EXPECT_EQ(bad.bins.back(), 1);
}

TEST(Session, AnAlertOfTheOneWhoWatchesIsStored) {
  Folder folder;
  SessionStart start = start_in(folder, 20);
  start.paused = true;
  Session session(std::move(start));
  session.post(StepCommand{5});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 5 && s.phase == Phase::paused; }));
  session.post(AlertCommand{3, "progress", "no progress"});
  session.post(AlertCommand{99, "progress", "of a step that is not there yet"});
  session.post(ResumeCommand{});
  ASSERT_TRUE(session.wait(60));
  std::vector<EventRow> alerts;
  const std::vector<EventRow> stored = Replay(folder.store(), "small").events();
  std::copy_if(stored.begin(), stored.end(), std::back_inserter(alerts), [](const EventRow& e) { return e.kind == "alert"; });
  ASSERT_EQ(alerts.size(), 2u);
  EXPECT_EQ(alerts[0].step, 3);
  EXPECT_EQ(alerts[0].body, R"({"kind":"progress","text":"no progress"})");
  EXPECT_EQ(alerts[1].step, 5);
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
}

// Measuring changes nothing that is computed, and what it found is told live as it is stored.
TEST(Session, AProfileOfSomeStepsIsStored) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.paused = true;
  Session session(std::move(start));
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  session.post(StepCommand{10});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 10 && s.phase == Phase::paused; }));
  session.post(ProfileCommand{15});
  session.post(ResumeCommand{});
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  std::vector<EventRow> profiles;
  for (const EventRow& event : session.drain().events)
    if (event.kind == "profile") profiles.push_back(event);
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_EQ(profiles[0].step, 25);
  const StepProfile profile = StepProfile::read(profiles[0].body, profiles[0].step);
  EXPECT_EQ(profile.steps, 15);
  double sum = 0;
  std::vector<std::string> names;
  for (const StepProfile::Phase& phase : profile.phases) {
    names.push_back(phase.name);
    sum += phase.mean;
    EXPECT_LE(phase.median, phase.p95);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"data", "forward", "backward", "refresh", "update", "ranks"}));
  EXPECT_NEAR(sum, profile.whole.mean, 1e-6 * profile.whole.mean);
  ASSERT_GT(profile.ops.size(), 5u);
  EXPECT_GE(profile.ops.front().ms, profile.ops.back().ms);
  double in_ops = 0;
  for (const OpTime& op : profile.ops) {
    EXPECT_GT(op.calls, 0) << op.op;
    in_ops += op.ms;
  }
  EXPECT_LE(in_ops, profile.whole.mean) << "more than the steps took: something else was counted too";
  EXPECT_GT(profile.rates.sgemm_gflops, 0);
  EXPECT_GT(profile.rates.copy_gbs, 0);
  double gflop = 0, gbyte = 0;
  for (const OpTime& op : profile.ops) {
    gflop += op.gflop;
    gbyte += op.gbyte;
    EXPECT_GE(share_of_rate(op, profile.rates), 0) << op.op;
  }
  EXPECT_GT(gflop, 0);
  EXPECT_GT(gbyte, 0);
  const std::vector<EventRow> stored = Replay(folder.store(), "small").events();
  EXPECT_TRUE(
      std::any_of(stored.begin(), stored.end(), [&](const EventRow& e) { return e.kind == "profile" && e.body == profiles[0].body; }));
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
}

}  // namespace
}  // namespace comera
