// The live controls in the window: what a person moves reaches the session.
#include "app/studio/choice_help.h"

#include <cmath>

#include "core/base/json.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

using LiveControls = Clicked;

TEST_F(LiveControls, ThePaceOfTheLateStageIsAnEditOfWholeSteps) {
  stage_.begin_run(Phase::running);
  click("method.comera.late_halving");  // the middle of its slider
  ASSERT_FALSE(stage_.script->posted.empty());
  const EditCommand& edit = std::get<EditCommand>(stage_.script->posted.back());
  EXPECT_EQ(edit.path, "method.comera.late_halving");
  const double steps = std::stod(edit.value);
  EXPECT_GT(steps, 1);
  EXPECT_LT(steps, 10000);
  EXPECT_EQ(steps, std::round(steps)) << edit.value;
  RunConfig config;
  RankOverrides unused;
  apply_edit(config, unused, edit.path, edit.value);  // throws where it is not live
  EXPECT_EQ(config.method.comera.late_halving, static_cast<int64_t>(steps));
}

// While a stored run is shown the one that trains is told, and one click away.
TEST_F(LiveControls, BackToTheRunThatTrains) {
  stage_.begin_run(Phase::running);
  EXPECT_FALSE(stage_.ui.hides_live());
  stage_.ui.stored = std::make_shared<RunView>();
  stage_.ui.show_stored = true;
  stage_.frames(3);
  ASSERT_TRUE(stage_.ui.hides_live());
  click("show-live");
  EXPECT_FALSE(stage_.ui.show_stored);
  EXPECT_TRUE(stage_.ui.commanded());
}

TEST_F(LiveControls, TheModeIsSaidWithWhatItDoes) {
  stage_.begin_run(Phase::running);
  EXPECT_TRUE(sees("says:reference"));
  // Every choice of the setting is explained; a new one must be too.
  RunConfig config;
  for (const FieldEntry& entry : fields_list(fields_of(config)))
    for (const std::string& choice : entry.info.choices)
      if (entry.path == "method.comera.mode") {
        EXPECT_NE(about_choice(entry.path, choice), "") << choice;
      }
}

}  // namespace
}  // namespace comera::studio
