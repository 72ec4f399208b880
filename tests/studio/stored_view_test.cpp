// A stored run that another program trains, shown in this window: what is new is appended to what is there, and comes out as
// if all of it had been read.
#include "app/studio/shown_run/stored_view.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "app/studio/actions.h"
#include "app/studio/shown_run/timeline.h"
#include "core/store/run_writer.h"
#include "tests/session/support.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

void expect_same_curve(const Curve& grown, const Curve& whole, const std::string& name) {
  EXPECT_EQ(grown.x(), whole.x()) << name;
  ASSERT_EQ(grown.y().size(), whole.y().size()) << name;
  EXPECT_EQ(std::memcmp(grown.y().data(), whole.y().data(), whole.y().size() * sizeof(double)), 0) << name;
  EXPECT_EQ(grown.gaps(), whole.gaps()) << name;
}

void expect_same_view(const RunView& grown, const RunView& whole) {
  expect_same(*whole.snapshot, *grown.snapshot);
  EXPECT_EQ(grown.snapshot->phase, whole.snapshot->phase);
  EXPECT_EQ(grown.snapshot->elapsed_s, whole.snapshot->elapsed_s);
  EXPECT_EQ(config_to_json(grown.config), config_to_json(whole.config));
  EXPECT_EQ(config_to_json(grown.config_at(40)), config_to_json(whole.config_at(40)));
  ASSERT_EQ(grown.metrics.size(), whole.metrics.size());
  for (const auto& [name, curve] : whole.metrics) expect_same_curve(grown.metric(name), curve, name);
  expect_same_curve(grown.wall, whole.wall, "wall");
  expect_same_curve(grown.trained_ms.curve(), whole.trained_ms.curve(), "trained_ms");
  expect_same_curve(grown.rank_drops, whole.rank_drops, "rank_drops");
  for (size_t i = 0; i < whole.memory.size(); ++i) expect_same_curve(grown.memory[i], whole.memory[i], "memory");
  ASSERT_EQ(grown.bond_ranks.size(), whole.bond_ranks.size());
  for (const auto& [bond, curve] : whole.bond_ranks) expect_same_curve(grown.bond_ranks.at(bond), curve, bond.first);
  ASSERT_EQ(grown.drops.size(), whole.drops.size());
  for (size_t i = 0; i < whole.drops.size(); ++i) {
    EXPECT_EQ(grown.drops[i].step, whole.drops[i].step);
    EXPECT_EQ(grown.drops[i].layer, whole.drops[i].layer);
    EXPECT_EQ(grown.drops[i].bond, whole.drops[i].bond);
    EXPECT_EQ(grown.drops[i].to, whole.drops[i].to);
  }
  ASSERT_EQ(grown.marks.size(), whole.marks.size());
  for (size_t i = 0; i < whole.marks.size(); ++i) {
    EXPECT_EQ(grown.marks[i].step, whole.marks[i].step);
    EXPECT_EQ(grown.marks[i].text, whole.marks[i].text);
  }
  ASSERT_EQ(grown.edits.size(), whole.edits.size());
  for (size_t i = 0; i < whole.edits.size(); ++i) EXPECT_EQ(grown.edits[i].value, whole.edits[i].value);
  ASSERT_EQ(grown.log.size(), whole.log.size());
  for (size_t i = 0; i < whole.log.size(); ++i) {
    EXPECT_EQ(grown.log[i].step, whole.log[i].step) << grown.log[i].text;
    EXPECT_EQ(grown.log[i].text, whole.log[i].text);
    EXPECT_EQ(grown.log[i].level, whole.log[i].level);
  }
  EXPECT_EQ(grown.profiles.size(), whole.profiles.size());
  EXPECT_EQ(grown.replaced.size(), whole.replaced.size());
  EXPECT_EQ(grown.late_entries, whole.late_entries);
  EXPECT_EQ(grown.parent, whole.parent);
}

class StoredRunThatGrows : public StoreStage {
 protected:
  static constexpr int64_t kSteps = 5000;

  StoredRunThatGrows() {
    ui().store_path = store_;
    writer_ = std::make_unique<RunWriter>(store_, a_start("grows", kSteps), test::quick());
    id_ = writer_->run_id();
    writer_->event(0, "start", "{}");
  }
  ~StoredRunThatGrows() override { ui().store.reset(); }

  // What the other program trains: scores, falling ranks, memory, edits, checkpoints, and a loss that is no number now and then.
  void train(int64_t first, int64_t last) {
    const std::string layer = "made.up";
    if (first == 1) {
      for (int64_t bond = 1; bond <= 3; ++bond) writer_->rank(0, layer, bond, 60);
      writer_->memory(0, "tt_core", 4000);
      writer_->memory(0, "gradient", 3000);
    }
    for (int64_t step = first; step <= last; ++step) {
      const auto x = static_cast<double>(step);
      if (step == 60) writer_->event(60, "stage", R"({"stage": "late", "reason": "command", "entries": 900})");
      if (step % 70 == 0) {
        writer_->event(step, "edit", R"({"path": "train.lr_rank", "value": ")" + std::to_string(1 / x) + "\"}");
        writer_->rank(step, layer, 1 + step % 3, 60 - step / 70);
      }
      writer_->metrics(step, {{"train_loss", step % 97 == 0 ? kUnknown : std::sin(x)}, {"entries", 1000 - x / 10}, {"step_ms", 1 + x / 7}});
      if (step % 50 == 0) {
        writer_->event(step, "truncation", R"({"entries_before": 1000, "entries_after": 990})");
        writer_->memory(step, "tt_core", 4000 - step);
        writer_->metrics(step, {{"val_loss", 1 / x}, {"val_accuracy", 0.5}});
        writer_->event(step, "checkpoint", "{}");
        writer_->checkpoint(step, (folder_ / ("step-" + std::to_string(step))).string(), 0, "periodic");
      }
    }
    tell(last);
  }
  void tell(int64_t step) {
    RunSummary summary;
    summary.step = step;
    summary.total_steps = kSteps;
    writer_->summary(summary);
    ASSERT_TRUE(writer_->flush()) << writer_->store_problem();
  }

  void open() {
    ui().store = std::make_unique<StoreClient>(store_, [] {});
    open_run(ui(), id_);
    ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
    ASSERT_TRUE(ui().stored) << (ui().toasts.empty() ? "" : ui().toasts[0].text);
    stage_->frames();
  }
  // Until the window has all that was told of; it looks with every frame, so that no test waits for the next look.
  bool shown(int64_t step) {
    return until([&] {
      ui().store->refresh(0);
      return ui().load_request == 0 && ui().timeline.replay && ui().timeline.replay->row().summary.step == step;
    });
  }
  std::shared_ptr<RunView> whole() {
    Replay replay(store_, id_);
    return view_of(replay, store_);
  }

  std::unique_ptr<RunWriter> writer_;
  std::string id_;
};

TEST_F(StoredRunThatGrows, WhatIsNewIsAppended) {
  train(1, 1000);
  open();
  const RunView* before = &ui().shown();
  EXPECT_EQ(before->metric("train_loss").size(), 1000u);
  for (const int64_t step : {1001, 1040, 1160, 1500}) {
    const auto known = static_cast<int64_t>(before->metric("train_loss").size());
    train(known + 1, step);
    ASSERT_TRUE(shown(step));
    EXPECT_EQ(&ui().shown(), before) << "it was read whole";
    ASSERT_TRUE(ui().store->loaded()->more) << "it was read whole";
    // Three metrics and the time of each step, and what happens now and then; the run itself and each question give some.
    EXPECT_LE(ui().store->loaded()->more->read, 5 * (step - known) + 100);
    expect_same_view(ui().shown(), *whole());
    const Replay::Column& loss = ui().timeline.replay->metrics().at("train_loss");
    EXPECT_EQ(&before->metric("train_loss").y(), loss.values.get()) << "one copy in memory";
    EXPECT_EQ(before->metric("train_loss").rewrites(), 0u) << "what is drawn of it is computed anew";
    stage_->frames(2);
  }
  writer_->finish("finished");
  tell(1500);
  ASSERT_TRUE(until([&] {
    ui().store->refresh(0);
    return ui().shown().snapshot->phase == Phase::finished;
  }));
  EXPECT_EQ(&ui().shown(), before);
  expect_same_view(ui().shown(), *whole());
}

TEST_F(StoredRunThatGrows, WhoeverLooksAtThePastStaysThere) {
  train(1, 300);
  open();
  seek(ui(), 120);
  select_steps(ui(), 30, 80);
  stage_->frames(2);
  train(301, 400);
  ASSERT_TRUE(shown(400));
  EXPECT_TRUE(ui().replaying());
  EXPECT_EQ(ui().snapshot().step, 120);
  EXPECT_EQ(ui().shown().snapshot->step, 400);
  EXPECT_EQ(ui().timeline.selection.first, 30);
  EXPECT_EQ(ui().timeline.selection.last, 80);
  seek(ui(), 350);
  stage_->frames(2);
  EXPECT_EQ(ui().snapshot().step, 350);
  EXPECT_EQ(ui().snapshot().last.results.ce, std::sin(350.0));
}

// What was read is newer than the list of runs, which is read now and then: that is no reason to read it again.
TEST_F(StoredRunThatGrows, IsNotReadAgainForAnOlderList) {
  train(1, 100);
  open();
  ASSERT_TRUE(until([&] { return ui().runs->loaded && ui().runs->rows.size() == 1; }));
  train(101, 150);
  ui().load_request = ui().store->load_more(id_, store_, ui().timeline.replay->place());
  ui().load_for = LoadFor::again;
  const uint64_t request = ui().load_request;
  ASSERT_TRUE(until([&] { return ui().load_request != request; }));
  ASSERT_EQ(ui().shown().snapshot->step, 150);
  ASSERT_EQ(ui().runs->rows[0].summary.step, 100) << "the test was slow: the list is newer by now";
  stage_->frames(5);
  EXPECT_EQ(ui().store->loaded()->request, request);
  EXPECT_EQ(ui().load_request, 0u);
}

// It is sent back to step 50 and goes another way: all of it is read, and the window says so.
TEST_F(StoredRunThatGrows, AWayThatWasSetAsideIsTold) {
  train(1, 200);
  writer_->finish("stopped");
  tell(200);
  open();
  writer_.reset();
  writer_ = std::make_unique<RunWriter>(store_, id_, test::quick());
  const std::string kept = writer_->spare_id();
  RunStart aside = a_start("grows-replaced", kSteps);
  aside.parent = id_;
  aside.fork_step = 50;
  writer_->set_aside({50, aside, "{}", {}});
  writer_->truncate_after(50);
  writer_->event(50, "resume", R"({"from_step": 50, "replaced": ")" + kept + "\"}");
  for (int64_t step = 51; step <= 90; ++step) writer_->metrics(step, {{"train_loss", 7}, {"step_ms", 100}});
  tell(90);
  ASSERT_TRUE(shown(90));
  expect_same_view(ui().shown(), *whole());
  EXPECT_EQ(ui().shown().metric("train_loss").size(), 90u);
  EXPECT_EQ(ui().shown().metric("train_loss").last(), 7);
  ASSERT_EQ(ui().shown().replaced.size(), 1u);
  ASSERT_FALSE(ui().toasts.empty());
  EXPECT_EQ(ui().toasts.back().text, "grows was rolled back to step 50; the later steps are kept as " + kept);
  const std::function<void(UiState&)> show_that = ui().toasts.back().offers.at(0).act;
  // What comes then is appended again.
  const RunView* before = &ui().shown();
  const size_t told = ui().toasts.size();
  train(91, 130);
  ASSERT_TRUE(shown(130));
  EXPECT_EQ(&ui().shown(), before);
  EXPECT_LE(ui().toasts.size(), told) << "told once";
  expect_same_view(ui().shown(), *whole());
  show_that(ui());
  ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
  EXPECT_EQ(ui().shown().snapshot->run, kept);
}

// The session has cut off the steps and has not said so yet.
TEST_F(StoredRunThatGrows, StepsThatAreGoneAreNotShown) {
  train(1, 200);
  open();
  writer_->truncate_after(100);
  tell(100);
  ASSERT_TRUE(shown(100));
  EXPECT_EQ(ui().shown().metric("train_loss").size(), 100u);
  expect_same_view(ui().shown(), *whole());
}

}  // namespace
}  // namespace comera::studio
