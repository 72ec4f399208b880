// Runs of several processes, started by the window through mpirun: watched, edited, paused and stopped as those of one.
#include "app/studio/shown_run/processes_link.h"

#include <csignal>
#include <filesystem>

#include "app/studio/actions.h"
#include "app/studio/form/new_run.h"
#include "core/session/reproduce.h"
#include "core/store/run_reader.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // MPI itself leaks and has no code for the thread sanitizer
#else
constexpr bool kSanitized = false;
#endif

// A window whose runs go into a store of its own, with a quick demo.
struct ProcessesStage : Stage {
  test::Folder folder;
  ProcessesStage() {
    ui.store_path = folder.store();
    ui.sets = {"train.threads=1",    "train.max_steps_per_s=0", "train.checkpoint_every=5",
               "train.eval_every=0", "data.train_rows=512",     "data.validation_rows=64"};
    ui.open_session = [this](SessionStart start) {
      start.store = folder.store();
      return start_session(std::move(start));
    };
  }
};

TEST(Processes, OneThatIsKilledEndsTheRunAndNotTheWindow) {
  if (kSanitized || !no_processes().empty()) GTEST_SKIP() << no_processes();
  ProcessesStage stage;
  ASSERT_TRUE(start_config(stage.ui, load_config("demo", stage.ui.sets), {}, {}, 2));
  const RunView& view = stage.ui.live->view();
  ASSERT_TRUE(stage.until([&] { return view.snapshot->last_checkpoint_step > 0 || view.ended(); }));
  ASSERT_FALSE(view.ended()) << view.snapshot->message << ": " << view.snapshot->error_why;
  const std::string run = view.snapshot->run;
  ::kill(static_cast<pid_t>(RunReader(stage.folder.store()).find(run).pid), SIGKILL);
  ASSERT_TRUE(stage.until([&] { return view.ended(); }));
  EXPECT_EQ(view.snapshot->phase, Phase::failed);
  EXPECT_EQ(view.snapshot->message, "the processes of the run have ended");
  EXPECT_NE(view.snapshot->error_hint.find("resume the run"), std::string::npos);
  const RunReader reader(stage.folder.store());
  EXPECT_EQ(reader.find(run).status, "interrupted");
  EXPECT_TRUE(std::filesystem::exists(reader.checkpoints(run).back().path));
}

TEST(Processes, AreStartedFromTheFormAndSteeredAsOne) {
  if (kSanitized || !no_processes().empty()) GTEST_SKIP() << no_processes();
  ProcessesStage stage;
  open_form(stage.ui, "demo");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.all_looked(); }));
  EXPECT_EQ(stage.ui.form.forecast->sent_bytes, 0);
  stage.ui.form.processes = 2;
  form_changed(stage.ui, "");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.all_looked(); }));
  EXPECT_GT(stage.ui.form.forecast->sent_bytes, 0);
  EXPECT_EQ(form_command(stage.ui.form, "").substr(0, 31), "mpirun -n 2 --bind-to none come");
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  start_form(stage.ui);
  ASSERT_TRUE(stage.until([&] { return stage.ui.live != nullptr; }));
  const RunView& view = stage.ui.live->view();
  ASSERT_TRUE(stage.until([&] { return view.snapshot->step > 3 || view.ended(); }));
  ASSERT_FALSE(view.ended()) << view.snapshot->message << ": " << view.snapshot->error_why;
  stage.ui.live->edit("train.lr", "0.0005");
  ASSERT_TRUE(stage.until([&] { return !stage.ui.live->pending(); }));
  EXPECT_EQ(stage.ui.live->edits().at("train.lr").stage, EditState::applied);
  stage.ui.live->profile(5);
  ASSERT_TRUE(stage.until([&] { return !view.profiles.empty(); }));
  EXPECT_EQ(view.profiles[0].processes_ms.size(), 2u);
  stage.ui.live->pause();
  ASSERT_TRUE(stage.until([&] { return view.snapshot->phase == Phase::paused; }));
  const int64_t at = view.snapshot->step;
  stage.ui.live->step(3);
  ASSERT_TRUE(stage.until([&] { return view.snapshot->step == at + 3; }));
  EXPECT_EQ(view.metric("train_loss").size(), static_cast<size_t>(at + 3));
  stage.ui.live->stop(true);
  ASSERT_TRUE(stage.until([&] { return view.ended(); }));
  EXPECT_EQ(view.snapshot->phase, Phase::stopped) << view.snapshot->message;
  const RunReader reader(stage.folder.store());
  EXPECT_EQ(reader.checkpoints(view.snapshot->run).back().step, at + 3);
  EXPECT_TRUE(reproduce_run(stage.folder.store(), view.snapshot->run).identical) << "by one process";
}

TEST(Processes, ABatchThatTheyCannotShareIsAProblemOfTheForm) {
  Stage stage;
  open_form(stage.ui, "demo");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.all_looked(); }));
  stage.ui.form.processes = 7;
  form_changed(stage.ui, "");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.all_looked(); }));
  const std::vector<Problem> problems = blocking_problems(stage.ui.form);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "train.batch");
  EXPECT_NE(problems[0].text.find("7 processes cannot share a batch"), std::string::npos) << problems[0].text;
}

}  // namespace
}  // namespace comera::studio
