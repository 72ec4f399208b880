// The dialog that evaluates a stored run.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/studio/runs/evaluating.h"
#include "core/session/session.h"
#include "core/store/run_writer.h"
#include "tests/studio/form_window.h"

namespace comera::studio {
namespace {

class Evaluate : public FormWindow {
 protected:
  Evaluate() { ui().exports.folder = (folder_ / "out").string(); }

  std::string trained() {
    SessionStart start;
    start.store = store_;
    start.config = load_config("demo", {"train.steps=6", "train.threads=1", "train.eval_every=3", "train.checkpoint_every=3",
                                        "data.train_rows=512", "data.validation_rows=64", "name=little"});
    Session session(start);
    EXPECT_TRUE(session.wait(60));
    session.join();
    return session.latest()->run;
  }
  void open_for(const std::string& run) {
    open_evaluate(ui(), store_, run, "little");
    ASSERT_TRUE(until([&] { return ui().evaluate.choices() != nullptr; }));
    frame();
  }
  // The answer of the command line for the same run.
  Json of_command_line(const std::string& arguments) const {
    const std::string command = std::string(COMERA_BIN_DIR "/comera --store ") + store_ + " --json " + arguments;
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> part;
    while (const size_t got = std::fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), got);
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return Json::parse(text);
  }
  bool ends_evaluating() {
    return until([&] { return !ui().evaluate.work; });
  }
};

TEST_F(Evaluate, GivesTheNumbersOfTheCommandLine) {
  const std::string run = trained();
  open_for(run);
  EXPECT_EQ(ui().evaluate.split, "dev");
  click("evaluate");
  ASSERT_TRUE(ends_evaluating());
  ASSERT_TRUE(ui().evaluate.answer);
  const Evaluating::Answer answer = *ui().evaluate.answer;
  ASSERT_EQ(answer.problem, "");
  const Json said = of_command_line("eval " + run);
  EXPECT_EQ(answer.score.loss, said.at("loss").get<double>());
  EXPECT_EQ(answer.score.accuracy, said.at("accuracy").get<double>());
  EXPECT_EQ(answer.score.examples, said.at("examples").get<int64_t>());
  EXPECT_EQ(answer.question.step, 6);
  frame();
  const auto texts = score_texts(answer);
  EXPECT_EQ(texts.at(0).first, "Loss");
  EXPECT_EQ(texts.at(1).first, "Accuracy");
  for (const auto& [title, value] : texts) EXPECT_TRUE(find("says:" + title + " " + value)) << title;
  // Another checkpoint, the rows that it was trained on.
  click("checkpoint");
  click("checkpoint:3");
  click("data");
  click("data:train");
  click("evaluate");
  ASSERT_TRUE(ends_evaluating());
  EXPECT_EQ(ui().evaluate.answer->score.loss, of_command_line("eval " + run + " --step 3 --split train").at("loss").get<double>());
  EXPECT_EQ(RunReader(store_).run(run).summary.step, 6) << "nothing of the run changes";
}

TEST_F(Evaluate, WritesPredictions) {
  const std::string run = trained();
  open_for(run);
  click("predict");
  ASSERT_TRUE(ends_evaluating());
  ASSERT_EQ(ui().evaluate.answer->problem, "");
  const std::string path = (folder_ / "out" / (run + "-predictions.csv")).string();
  EXPECT_EQ(ui().evaluate.answer->written, path);
  const std::string lines = (folder_ / "lines").string();
  const int64_t rows = of_command_line("predict " + run + " -o " + lines).at("rows");
  EXPECT_EQ(ui().evaluate.answer->rows, rows);
  std::ifstream csv(path), json(lines);
  std::string cells, line;
  std::getline(csv, cells);
  EXPECT_EQ(cells.substr(0, 19), "row,label,logit_0,l");
  for (int64_t i = 0; i < rows; ++i) {
    ASSERT_TRUE(std::getline(csv, cells) && std::getline(json, line));
    const Json said = Json::parse(line);
    std::stringstream record(cells);
    std::string cell;
    std::getline(record, cell, ',');
    EXPECT_EQ(std::stol(cell), said.at("row").get<int64_t>());
    std::getline(record, cell, ',');
    ASSERT_EQ(cell, said.at("label").is_string() ? said.at("label").get<std::string>() : said.at("label").dump());
    for (const double logit : said.at("logits")) {
      ASSERT_TRUE(std::getline(record, cell, ','));
      ASSERT_EQ(std::stod(cell), logit);
    }
  }
  EXPECT_FALSE(std::getline(csv, cells));
}

TEST_F(Evaluate, TakesAChosenFileAndTellsErrors) {
  const std::string run = trained();
  open_for(run);
  click("data");
  click("data:file");
  ASSERT_EQ(ui().dialogs.open, Dialog::browser);
  stage_->press(ImGuiKey_Escape);
  EXPECT_EQ(ui().dialogs.open, Dialog::evaluate) << "back to the dialog";
  EXPECT_EQ(ui().evaluate.file, "");
  std::ofstream(folder_ / "words.csv") << "text,label\na b,0\nc,1\n";
  browse_inside(ui(), BrowseFor::evaluation);
  take_chosen(ui(), (folder_ / "words.csv").string());
  frame();
  ASSERT_EQ(ui().dialogs.open, Dialog::evaluate);
  EXPECT_EQ(ui().evaluate.file, (folder_ / "words.csv").string());
  click("evaluate");
  ASSERT_TRUE(ends_evaluating());
  EXPECT_EQ(ui().evaluate.answer->problem, "the data do not fit the model");
  frame();
  EXPECT_TRUE(find("says:the data do not fit the model"));
  EXPECT_TRUE(find("says:the file holds text")) << "why";
}

TEST_F(Evaluate, IsCancelledByAButtonAndWithTheDialog) {
  const std::string run = trained();
  open_for(run);
  for (const bool by_button : {true, false}) {
    begin_evaluation(ui(), true);
    if (by_button) {
      ui().evaluate.work->give_up();
    } else {
      close_dialog(ui());
    }
    ASSERT_TRUE(ends_evaluating());
    if (by_button)
      EXPECT_TRUE(ui().evaluate.answer->given_up || !ui().evaluate.answer->written.empty());
    else
      EXPECT_FALSE(ui().evaluate.answer) << "nobody waits for it";
  }
}

TEST_F(Evaluate, ARunWithoutACheckpointSaysSo) {
  std::string run;
  {
    RunWriter writer(store_, a_start("bare"));
    run = writer.run_id();
    writer.finish("stopped");
  }
  open_for(run);
  EXPECT_TRUE(find("says:This run has no checkpoint"));
  EXPECT_FALSE(find("checkpoint"));
}

TEST_F(Evaluate, DrawsInsideOfEverySize) {
  const std::string run = trained();
  Evaluating::Answer failed, scored, written;
  failed.problem = "the vocabulary is not the one the model was trained with";
  failed.why = "its sha256 begins with 0123456789ab, the model's with ba9876543210";
  failed.hint = "leave out --vocab, or give that file";
  scored.data = "a-data-set-with-a-rather-long-name-of-its-own";
  scored.score = {0.345678, 0.87654, 123456, {{"auc", 0.9123}, {"perplexity", 12345.6}}};
  scored.left_out = 12;
  scored.question.step = 123456;
  written.written = (folder_ / "with/a/long/path/of/exports/somewhere/r-123456-predictions.csv").string();
  written.rows = 9815;
  for (const auto& [pixels, scale] : {std::pair{ImVec2(960, 600), 1.0f},
                                      {ImVec2(1600, 900), 1.0f},
                                      {ImVec2(1920, 1200), 2.0f},
                                      {ImVec2(2880, 1800), 3.0f},
                                      {ImVec2(3840, 2160), 3.0f}}) {
    stage_->resize(pixels, scale);
    stage_->frames();
    open_for(run);
    for (const Evaluating::Answer& answer : {failed, scored, written}) {
      ui().evaluate.answer = answer;
      stage_->frames();
      const ImGuiWindow* window = ImGui::GetTopMostPopupModal();
      ASSERT_NE(window, nullptr);
      EXPECT_GE(window->Pos.x, 0);
      EXPECT_GE(window->Pos.y, 0);
      EXPECT_LE(window->Pos.x + window->Size.x, pixels.x);
      EXPECT_LE(window->Pos.y + window->Size.y, pixels.y);
      EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{}) << pixels.x << " x " << scale << " " << answer.problem;
    }
    stage_->press(ImGuiKey_Escape);
    EXPECT_EQ(ui().dialogs.open, Dialog::none);
  }
}

}  // namespace
}  // namespace comera::studio
