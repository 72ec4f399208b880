// Texts of a language model in the window: one for each checkpoint, from the prompt that is asked for.
#include "app/studio/shown_run/samples.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "app/studio/actions.h"
#include "app/studio/shown_run/timeline.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

class Samples : public StoreStage {
 protected:
  // A stored run of a small language model with checkpoints at steps 5 and 10, shown.
  void show_run() {
    const std::string text = store_ + ".txt";
    std::ofstream(text) << std::string(40, 'a') << "the quick brown fox jumps over the lazy dog\n" << std::string(400, 'b');
    SessionStart start;
    start.config =
        load_config("llama-10m", {"train.threads=1", "train.steps=10", "train.checkpoint_every=5", "train.eval_every=0", "train.batch=2",
                                  "model.length=16", "model.decoder.layers=1", "model.decoder.d_model=16", "model.decoder.heads=2",
                                  "model.decoder.d_ff=16", "data.set=" + text, "data.holdout=0", "method.weights=dense"});
    start.store = store_;
    Session session(std::move(start));
    ASSERT_TRUE(session.wait(120));
    ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
    EXPECT_TRUE(std::filesystem::exists(session.latest()->last_checkpoint_path));
    ui().store_path = store_;
    ui().store = std::make_unique<StoreClient>(store_, [] {});
    open_run(ui(), session.latest()->run, 10);
    ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
    stage_->frames(2);
    ui().front_panel = "samples";
    stage_->frames(3);
  }
  const std::vector<Sample>& written() { return ui().samples.written; }
};

TEST_F(Samples, OneForEachCheckpointAndForEachPrompt) {
  ui().samples.tokens = 7;
  ui().samples.prompt = "the ";
  show_run();
  ASSERT_TRUE(until([&] { return written().size() == 1; }));
  EXPECT_EQ(written()[0].problem, "");
  EXPECT_EQ(written()[0].question.step, 10);
  EXPECT_FALSE(written()[0].text.empty());
  seek(ui(), 7);
  ASSERT_TRUE(until([&] { return written().size() == 2; }));
  EXPECT_EQ(written()[1].question.step, 5) << "the last one before the cursor";
  // The same question is not asked twice, but by hand: another text, with the next seed.
  stage_->frames(3);
  EXPECT_EQ(ui().samples.number, 0u);
  tick_samples(ui(), true);
  ASSERT_TRUE(until([&] { return written().size() == 3; }));
  EXPECT_NE(written()[2].text, written()[1].text);
  EXPECT_EQ(written()[2].question.seed, 1u);
  EXPECT_EQ(write_sample(written()[2].question).text, written()[2].text);
  ui().samples.prompt = "fox";
  ASSERT_TRUE(until([&] { return written().size() == 4; }));
  EXPECT_EQ(written()[3].question.prompt, "fox");
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
}

TEST_F(Samples, AModelThatIsGoneSaysSoAndALongTextIsGivenUp) {
  ui().samples.tokens = 2;
  show_run();
  ASSERT_TRUE(until([&] { return written().size() == 1; }));
  const SampleQuestion known = written()[0].question;
  SampleQuestion question = known;
  question.path = store_ + "-gone";
  EXPECT_NE(write_sample(question).problem, "");
  question = known;
  const auto given_up = std::make_shared<std::atomic<bool>>(true);
  question.given_up = given_up;
  question.tokens = 1'000'000'000;  // would take for ever
  EXPECT_EQ(write_sample(question).problem, "");
}

TEST(SamplesPanel, AsksNothingOfAModelThatWritesNoText) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.ui.front_panel = "samples";
  stage.frames(3);
  EXPECT_EQ(stage.ui.samples.writer, nullptr);
}

TEST_F(Samples, APromptCountsWhenItsEditingHasEnded) {
  ui().samples.tokens = 2;
  show_run();
  ASSERT_TRUE(until([&] { return written().size() == 1; }));
  std::vector<NamedItem> items;
  collect_items(&items);
  stage_->frames(1);
  const auto prompt = std::find_if(items.begin(), items.end(), [](const NamedItem& item) { return item.name == "prompt"; });
  ASSERT_NE(prompt, items.end());
  ImGui::GetIO().AddMousePosEvent(prompt->low.x + 10, (prompt->low.y + prompt->high.y) / 2);
  collect_items(nullptr);
  stage_->frames(1);
  for (const bool down : {true, false}) {
    ImGui::GetIO().AddMouseButtonEvent(0, down);
    stage_->frames(1);
  }
  stage_->press(ImGuiMod_Ctrl | ImGuiKey_A);
  stage_->type("fox");
  stage_->frames(5);
  EXPECT_EQ(ui().samples.number, 0u) << "half typed";
  EXPECT_EQ(ui().samples.prompt, "\n");
  stage_->press(ImGuiKey_Enter);
  ASSERT_TRUE(until([&] { return written().size() == 2; }));
  EXPECT_EQ(written()[1].question.prompt, "fox");
  ui().samples.prompt = "";
  ASSERT_TRUE(until([&] { return written().size() == 3; }));
  EXPECT_NE(written()[2].problem.find("it is empty"), std::string::npos) << written()[2].problem;
}

}  // namespace
}  // namespace comera::studio
