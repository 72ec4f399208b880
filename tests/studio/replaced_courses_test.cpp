// What a run did before it was sent back stands behind its curves; and the ways to send it back, or to fork it with other
// settings.
#include "app/studio/shown_run/replaced_courses.h"

#include <nlohmann/json.hpp>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/shown_run/timeline.h"
#include "core/store/run_reader.h"
#include "core/store/run_writer.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

class ReplacedRun : public StoreStage {
 protected:
  ReplacedRun() { ui().store_path = store_; }

  // 100 steps, whose loss is 1; then back to step 50 and 20 steps more, whose loss is 2.
  void write() {
    {
      RunWriter writer(store_, a_start("made up"));
      id_ = writer.run_id();
      writer.event(0, "start", "{}");
      for (int64_t step = 1; step <= 100; ++step) writer.metrics(step, {{"train_loss", 1}, {"step_ms", 100}});
      for (int64_t step : {50, 100}) {
        writer.event(step, "checkpoint", "{}");
        writer.checkpoint(step, (folder_ / std::to_string(step)).string(), 0, "periodic");
      }
      writer.finish("stopped");
    }
    RunWriter writer(store_, id_);
    kept_ = writer.spare_id();
    RunStart start = a_start("made up-replaced");
    start.parent = id_;
    start.fork_step = 50;
    start.tags = {std::string(kReplaced)};
    writer.set_aside({50, start, "{}", {}});
    writer.truncate_after(50);
    writer.event(50, "resume", R"({"from_step": 50, "replaced": ")" + kept_ + "\"}");
    for (int64_t step = 51; step <= 70; ++step) writer.metrics(step, {{"train_loss", 2}, {"step_ms", 100}});
    writer.finish("stopped");
  }

  void open() {
    ui().store = std::make_unique<StoreClient>(store_, [] {});
    open_run(ui(), id_);
    ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
    ASSERT_TRUE(ui().stored) << (ui().toasts.empty() ? "" : ui().toasts[0].text);
    stage_->frames();
  }

  std::vector<PlotTile> tiles() {
    std::vector<PlotTile> all = {{.id = "loss", .lines = {{&ui().shown().metric("train_loss"), "loss"}}}};
    add_replaced(ui(), all);
    return all;
  }

  std::string id_, kept_;
};

TEST_F(ReplacedRun, ItsOtherWayStandsBehindItsCurves) {
  write();
  open();
  ASSERT_EQ(ui().shown().replaced.size(), 1u);
  EXPECT_EQ(ui().shown().replaced[0].run, kept_);
  ASSERT_TRUE(until([&] { return !ui().replaced.of_shown().empty(); }));
  stage_->frames();
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
  const std::vector<PlotTile> drawn = tiles();
  ASSERT_EQ(drawn[0].lines.size(), 2u);
  EXPECT_EQ(drawn[0].lines[0].curve->at(80), 1) << "behind: first";
  EXPECT_FALSE(drawn[0].lines[0].fits) << "what went wrong does not stretch the axis";
  EXPECT_EQ(drawn[0].lines[1].curve->at(60), 2);
  EXPECT_GE(ui().plots.x_high, 100) << "all of it is visible";
  EXPECT_EQ(ui().plots.last_step, 70);
  ui().replaced.shown = false;
  stage_->frames();
  EXPECT_EQ(tiles()[0].lines.size(), 1u);
  EXPECT_LT(ui().plots.x_high, 80);
  // The run of its own has none behind it.
  ui().replaced.shown = true;
  open_run(ui(), kept_);
  ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
  stage_->frames();
  EXPECT_TRUE(ui().replaced.of_shown().empty());
  EXPECT_EQ(ui().plots.furthest, 0);
}

TEST_F(ReplacedRun, OneThatWasPurgedIsLeftOut) {
  const std::vector<Course> courses = read_courses({store_, {"r-nothere"}});
  EXPECT_TRUE(courses.empty());
}

TEST_F(ReplacedRun, IsSentBackFromTheCursor) {
  write();
  open();
  seek(ui(), 60);
  stage_->frames();
  const Action back = action_of(ui(), "run.back");
  EXPECT_EQ(back.title, "Roll back to checkpoint 50");
  ASSERT_EQ(back.why_not, "");
  back.act(ui());
  ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
  EXPECT_EQ(stage_->started.resume_run, id_);
  EXPECT_EQ(stage_->started.at_step, 50);
}

TEST_F(ReplacedRun, IsForkedWithOtherSettings) {
  write();
  open();
  seek(ui(), 60);
  stage_->frames();
  const Action fork = action_of(ui(), "run.fork_with");
  EXPECT_EQ(fork.title, "Fork from step 60 with other settings ...");
  fork.act(ui());
  EXPECT_EQ(ui().layout, "new");
  NewRun& form = ui().form;
  ASSERT_TRUE(until([&] { return form.ready && !form.looking; }));
  stage_->frames();
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
  EXPECT_EQ(form.config.train.steps, 100) << "as the run has it, not a preset";
  EXPECT_TRUE(form.changed.empty());
  EXPECT_EQ(form_command(form, ""), "comera fork " + id_ + " --at-step 60");
  form.config.train.batch = 16;
  form_changed(ui(), "train.batch");
  start_form(ui());
  ASSERT_TRUE(until([&] { return !stage_->started.fork_run.empty(); }));
  EXPECT_EQ(stage_->started.fork_run, id_);
  EXPECT_EQ(stage_->started.at_step, 60);
  EXPECT_EQ(stage_->started.config.train.batch, 16);
  EXPECT_EQ(stage_->started.sets.size(), 2u) << "what was changed, and its name";
  stage_->started = {};
  open_form(ui());  // as it was left
  EXPECT_TRUE(form.fork);
  form.config.model.mlp.hidden = {784};
  form_changed(ui(), "model.mlp.hidden");
  start_form(ui());
  ASSERT_TRUE(until([&] { return form.listing; }));
  EXPECT_EQ(blocking_problems(form).front().path, "model.mlp.hidden") << "it cannot have another shape";
  EXPECT_EQ(stage_->started.fork_run, "");
  open_form(ui(), "demo");
  EXPECT_FALSE(form.fork) << "a preset begins a run anew";
}

}  // namespace
}  // namespace comera::studio
