// The columns of a data file, chosen from a list in the form of a new run.
#include <filesystem>
#include <fstream>

#include "tests/studio/form_window.h"

namespace comera::studio {
namespace {

class ColumnChoice : public FormWindow {
 protected:
  void read(const std::string& file, const std::string& text) {
    std::ofstream(folder_ / file) << text;
    open_form(ui(), "encoder2-nli");
    ASSERT_TRUE(until([&] { return ui().form.ready; }));
    ui().form.config.data.set = (folder_ / file).string();
    form_changed(ui(), "data.set");
    settle();
  }
  void choose(const std::string& path, const std::string& column) {
    jump_to(ui().form, path);
    ASSERT_TRUE(until([&] { return ui().form.jump.empty(); }));
    stage_->press(ImGuiKey_Escape);
    click(path);
    click("column:" + column);
    settle();
  }
  static std::string rows() {
    std::string text = "id,topic,note\n";
    for (int i = 0; i < 60; ++i) text += std::to_string(i) + (i % 2 ? ",sea,a note on the sea\n" : ",wood,a note on the wood\n");
    return text;
  }
};

TEST_F(ColumnChoice, NamesThoseOfAFileThatCannotBeReadYet) {
  read("notes.csv", rows());
  const DataFacts* facts = ui().form.facts();
  ASSERT_NE(facts, nullptr);
  EXPECT_NE(facts->problem, "") << "no column has a usual name";
  EXPECT_EQ(facts->columns, (std::vector<std::string>{"id", "topic", "note"}));
  EXPECT_EQ(facts->read, ColumnNames());
  EXPECT_EQ(facts->likely, (ColumnNames{"note", "", "topic"}));
  choose("data.text_column", "note");
  EXPECT_EQ(ui().form.config.data.text_column, "note");
  choose("data.label_column", "topic");
  EXPECT_EQ(ui().form.config.data.label_column, "topic");
  ASSERT_NE(ui().form.facts(), nullptr);
  EXPECT_EQ(ui().form.facts()->problem, "");
  EXPECT_EQ(ui().form.facts()->read, (ColumnNames{"note", "", "topic"}));
  EXPECT_EQ(ui().form.facts()->classes, 2);
  choose("data.label_column", "");
  EXPECT_EQ(ui().form.config.data.label_column, "") << "automatic again";
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
}

TEST_F(ColumnChoice, SaysWhichAreReadWithoutAChoice) {
  read("pairs.tsv", "id\tsentence1\tsentence2\tlabel\n1\ta\tb\t0\n2\tc\td\t1\n3\te\tf\t2\n");
  ASSERT_NE(ui().form.facts(), nullptr);
  EXPECT_EQ(ui().form.facts()->read, (ColumnNames{"sentence1", "sentence2", "label"}));
  choose("data.label_column", "id");
  EXPECT_EQ(ui().form.config.data.label_column, "id");
}

TEST_F(ColumnChoice, StaysATextBoxWhereNoColumnsAreKnown) {
  open_form(ui(), "encoder2-nli");
  ASSERT_TRUE(until([&] { return ui().form.ready; }));
  ui().form.config.data.set = (folder_ / "none.csv").string();
  form_changed(ui(), "data.set");
  settle();
  EXPECT_EQ(ui().form.columns(), nullptr);
  jump_to(ui().form, "data.text_column");
  ASSERT_TRUE(until([&] { return ui().form.jump.empty(); }));
  EXPECT_FALSE(find("data.text_column"));
  stage_->press(ImGuiMod_Ctrl | ImGuiKey_A);
  stage_->type("body");
  stage_->press(ImGuiKey_Enter);
  EXPECT_EQ(ui().form.config.data.text_column, "body");
}

// What is wrong is told in one place.
TEST_F(ColumnChoice, DataThatAreNotThereAreToldOnce) {
  open_form(ui(), "encoder2-nli");
  ASSERT_TRUE(until([&] { return ui().form.ready; }));
  ui().form.config.data.set = "there-is-no-such-set";
  form_changed(ui(), "data.set");
  settle();
  ASSERT_NE(ui().form.facts(), nullptr);
  EXPECT_NE(ui().form.facts()->problem, "");
  jump_to(ui().form, "data.set");
  ASSERT_TRUE(until([&] { return ui().form.jump.empty(); }));
  frame();
  const auto told =
      std::count_if(items_.begin(), items_.end(), [](const NamedItem& item) { return item.name.starts_with("problem:data.set"); });
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace comera::studio
