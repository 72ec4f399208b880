// Events are written and read by one struct each, also those of older programs and damaged ones.
#include "core/records/events.h"

#include <gtest/gtest.h>

#include "core/session/stored_run.h"

namespace comera::test {
namespace {

TEST(Events, ComeBackAsTheyWereWritten) {
  const auto edit = read_event<EditEvent>(json_of(EditEvent{"rank.cap.fc0.1", "3", Json(nullptr), Json(3)}).dump());
  EXPECT_EQ(edit.path, "rank.cap.fc0.1");
  EXPECT_EQ(edit.value, "3");
  EXPECT_FALSE(edit.before) << "there was no value before";
  EXPECT_EQ(edit.after, Json(3));
  const auto cut = read_event<TruncationEvent>(json_of(TruncationEvent{900, 700, LiveRanks{{3, 2}, {1}}}).dump());
  EXPECT_EQ(cut.entries_before, 900);
  EXPECT_EQ(cut.entries_after, 700);
  EXPECT_EQ(cut.held, (LiveRanks{{3, 2}, {1}}));
  const auto stage = read_event<StageEvent>(json_of(StageEvent{.stage = "late", .reason = "steps", .entries = 12.5}));
  EXPECT_TRUE(stage.late());
  EXPECT_FALSE(stage.by_command());
  EXPECT_EQ(stage.entries, 12.5);
  EXPECT_FALSE(stage.stays);
}

// The keys are those of the store, whatever the names of the members are.
TEST(Events, HaveTheirStoredKeys) {
  EXPECT_EQ(json_of(EditEvent{"a", "1", Json(nullptr), Json(1)}).dump(), R"({"path":"a","old":null,"new":1,"value":"1"})");
  EXPECT_EQ(json_of(StageEvent{.stage = "early", .reason = "command", .stays = true}).dump(),
            R"({"stage":"early","reason":"command","stays":true})");
  EXPECT_EQ(json_of(CheckpointEvent{"x.safetensors", "periodic"}).dump(), R"({"path":"x.safetensors","kind":"periodic"})");
  EXPECT_EQ(json_of(AlertEvent{.what = "diverged", .loss = "nan", .tensor = ""}).dump(), R"({"kind":"diverged","loss":"nan","tensor":""})");
}

TEST(Events, DamagedOnesHaveDefaults) {
  for (const char* body : {"", "[1]", "{\"path\":", "{\"path\":3,\"old\":null}", "null"}) {
    const auto edit = read_event<EditEvent>(std::string(body));
    EXPECT_EQ(edit.path, "") << body;
    EXPECT_FALSE(edit.before) << body;
  }
  EXPECT_FALSE(read_event<TruncationEvent>(std::string(R"({"held":"many"})")).held);
}

TEST(Events, TellOfTheChangesThatARunRepeats) {
  EXPECT_EQ(change_of(4, "edit", R"({"path":"train.lr_rest","value":"0.5"})"), (ScheduledChange{4, "train.lr", "0.5"}))
      << "its name of now";
  EXPECT_EQ(change_of(5, "stage", R"({"stage":"late","reason":"command"})"), (ScheduledChange{5, "stage", "late"}));
  EXPECT_FALSE(change_of(5, "stage", R"({"stage":"late","reason":"plateau"})")) << "it comes by itself";
  EXPECT_FALSE(change_of(6, "truncation", "{}"));
}

}  // namespace
}  // namespace comera::test
