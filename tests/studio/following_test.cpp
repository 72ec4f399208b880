// The newest run of the store is shown when somebody wants that, and never in the way of what is being done.
#include "app/studio/shown_run/following.h"

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/preferences.h"
#include "app/studio/shown_run/timeline.h"
#include "core/store/run_admin.h"
#include "core/store/run_writer.h"
#include "tests/store/support.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

class FollowingRuns : public StoreStage {
 protected:
  FollowingRuns() {
    first_ = write("first")->run_id();
    writers_.clear();
    ui().store_path = store_;
    ui().store = std::make_unique<StoreClient>(store_, std::function<void()>{});
    EXPECT_TRUE(until([&] { return ui().runs->rows.size() == 1; }));
    stage_->frames(2);
  }
  ~FollowingRuns() override { ui().store.reset(); }

  // What another program does; it goes on.
  RunWriter* write(const std::string& name) {
    writers_.push_back(std::make_unique<RunWriter>(store_, test::start_of(name), test::quick()));
    RunWriter* writer = writers_.back().get();
    for (int64_t step = 1; step <= 50; ++step) writer->metrics(step, {{"train_loss", 1.0 / static_cast<double>(step)}, {"step_ms", 100}});
    EXPECT_TRUE(writer->flush());
    return writer;
  }
  // Every frame looks at the store, so that no test waits for the next look.
  bool soon(const std::function<bool()>& condition) {
    return until([&] {
      ui().store->refresh(0);
      return condition();
    });
  }
  bool listed(size_t runs) {
    const bool there = soon([&] { return ui().runs->rows.size() == runs && ui().load_request == 0; });
    stage_->frames(3);
    return there && until([&] { return ui().load_request == 0; });
  }
  std::string shown() { return ui().has_run() ? ui().shown().snapshot->run : ""; }

  std::string first_;
  std::vector<std::unique_ptr<RunWriter>> writers_;
};

TEST_F(FollowingRuns, OfOthersAreNotShownUnasked) {
  open_run(ui(), first_);
  ASSERT_TRUE(until([&] { return shown() == first_; }));
  write("second");
  ASSERT_TRUE(listed(2));
  EXPECT_EQ(shown(), first_);
  EXPECT_TRUE(ui().toasts.empty());
  // Switched on now: what is there already stays where it is.
  ui().settings.follow_newest = true;
  stage_->frames(5);
  EXPECT_EQ(shown(), first_);
}

TEST_F(FollowingRuns, TheNewestIsShownOnThePageThatIsOpen) {
  ui().settings.follow_newest = true;
  stage_->frames(3);
  EXPECT_FALSE(ui().has_run()) << "it was there before";
  for (const char* page : {"start", "compare", "train"}) {
    show_layout(ui(), page);
    const std::string id = write(page)->run_id();
    EXPECT_TRUE(soon([&] { return shown() == id; })) << page;
    EXPECT_EQ(ui().layout, page);
    EXPECT_FALSE(ui().replaying());
  }
  EXPECT_TRUE(ui().toasts.empty());
}

TEST_F(FollowingRuns, TheStoreIsLookedAtByItself) {
  ui().settings.follow_newest = true;
  open_run(ui(), first_);  // the page of a run, which else looks at the store seldom
  ASSERT_TRUE(until([&] { return shown() == first_; }));
  const std::string id = write("second")->run_id();
  EXPECT_TRUE(until([&] { return shown() == id; }));
  EXPECT_EQ(ui().layout, "train");
}

TEST_F(FollowingRuns, WhoeverLooksAtThePastIsOnlyTold) {
  ui().settings.follow_newest = true;
  open_run(ui(), first_);
  ASSERT_TRUE(until([&] { return shown() == first_; }));
  seek(ui(), 20);
  stage_->frames(2);
  ASSERT_TRUE(ui().replaying());
  const std::string id = write("second")->run_id();
  ASSERT_TRUE(listed(2));
  EXPECT_EQ(shown(), first_);
  EXPECT_TRUE(ui().replaying());
  ASSERT_EQ(ui().toasts.size(), 1u);
  EXPECT_EQ(ui().toasts[0].text, "second has begun");
  follow_run(ui());
  stage_->frames(5);
  EXPECT_EQ(shown(), first_) << "nor does it come afterwards, unasked";
  ui().toasts[0].offers.at(0).act(ui());
  EXPECT_TRUE(until([&] { return shown() == id; }));
}

TEST_F(FollowingRuns, WhoeverFillsTheFormIsOnlyTold) {
  ui().settings.follow_newest = true;
  show_layout(ui(), "new");
  write("second");
  ASSERT_TRUE(listed(2));
  EXPECT_EQ(ui().layout, "new");
  EXPECT_FALSE(ui().has_run());
  EXPECT_EQ(ui().toasts.size(), 1u);
}

// A run that is begun here is in front anyway: it is not read out of the store.
TEST_F(FollowingRuns, TheRunOfThisWindowIsNotReadAgain) {
  ui().settings.follow_newest = true;
  stage_->begin_run(Phase::running);
  stage_->say([](Snapshot& s) { s.run.clear(); });  // it does not say yet which run it is
  ui().live = std::make_unique<LiveRun>(std::make_unique<FakeLink>(stage_->script), RunConfig{}, nullptr, store_);
  const std::string id = write("mine")->run_id();
  ASSERT_TRUE(listed(2));
  EXPECT_FALSE(ui().show_stored);
  stage_->say([&](Snapshot& s) { s.run = id; });
  stage_->frames(5);
  EXPECT_FALSE(ui().show_stored);
  EXPECT_EQ(shown(), id);
  const std::string other = write("of another")->run_id();
  EXPECT_TRUE(soon([&] { return shown() == other; }));
  EXPECT_TRUE(ui().hides_live()) << "one click leads back";
}

TEST_F(FollowingRuns, IsASwitchOfTheViewThatIsKept) {
  const auto press = [&] {
    for (const Action& action : actions(ui()))
      if (action.id == "view.follow_newest") {
        EXPECT_EQ(action.menu, Menu::view);
        EXPECT_EQ(action.checked, std::optional<bool>(ui().settings.follow_newest));
        action.act(ui());
      }
  };
  EXPECT_FALSE(ui().settings.follow_newest);
  press();
  EXPECT_TRUE(ui().settings.follow_newest);
  const std::string file = (folder_ / "studio.json").string();
  save_preferences(ui(), file);
  UiState later;
  load_preferences(later, file);
  EXPECT_TRUE(later.settings.follow_newest);
  press();
  EXPECT_FALSE(ui().settings.follow_newest);
}

TEST_F(FollowingRuns, ARunThatIsArchivedIsStillFollowed) {
  RunWriter* writer = write("second");
  const std::string id = writer->run_id();
  open_run(ui(), id);
  ASSERT_TRUE(soon([&] { return shown() == id; }));
  RunAdmin(store_).archive(id);
  ASSERT_TRUE(soon([&] { return ui().runs->archived.size() == 1; }));
  for (int64_t step = 51; step <= 60; ++step) writer->metrics(step, {{"train_loss", 1}});
  RunSummary summary;
  summary.step = 60;
  writer->summary(summary);
  ASSERT_TRUE(writer->flush());
  EXPECT_TRUE(soon([&] { return ui().shown().snapshot->step == 60; }));
}

}  // namespace
}  // namespace comera::studio
