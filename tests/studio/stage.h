// A window of any size without a display: Dear ImGui's null backend with the real fonts and the real frame; and made-up runs.
#pragma once
#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/studio/action_table.h"
#include "app/studio/frame.h"
#include "app/studio/shown_run/live_run.h"
#include "app/studio/ui_state.h"
#include "core/store/run_types.h"

namespace comera::studio {

// State of a fake session, set by the test.
struct Script {
  std::shared_ptr<const Snapshot> snapshot = std::make_shared<const Snapshot>();
  Records records;
  std::vector<Command> posted;
  Ticket tickets = 0;
  bool ended = false;
};

class FakeLink : public RunLink {
 public:
  explicit FakeLink(std::shared_ptr<Script> script) : script_(std::move(script)) {}
  Ticket post(Command command) override {
    script_->posted.push_back(std::move(command));
    return ++script_->tickets;
  }
  std::shared_ptr<const Snapshot> latest() const override { return script_->snapshot; }
  Records drain() override { return std::exchange(script_->records, {}); }
  bool ended() override { return script_->ended; }

 private:
  std::shared_ptr<Script> script_;
};

// The action of this id in the table of now. Fails a CHECK for other ids.
Action action_of(const UiState& ui, const std::string& id);

// A snapshot in the late stage of a run with some layers.
Snapshot a_snapshot(Phase phase, int64_t step, int layers = 3);

class Stage {
 public:
  explicit Stage(ImVec2 size = {1600, 900}, float scale = 1, ThemeKind kind = ThemeKind::dark);
  ~Stage();

  // Changes the size of the window and the scale of its content.
  void resize(ImVec2 size, float scale = 1);

  // Font size in pixels; ImGui::GetFontSize() is not available between frames.
  static float line() { return ImGui::GetStyle().FontSizeBase * ImGui::GetStyle().FontScaleMain; }

  void frames(int count = 4);

  // Draws frames until the condition holds, for answers of other threads. False after a minute; only a limit, not a measurement.
  bool until(const std::function<bool()>& condition);

  // Presses and releases keys, with some frames for each; `character`: the character they type.
  void press(ImGuiKeyChord keys, unsigned character = 0);
  void type(const std::string& text);

  // Makes a live run with `points` steps of metrics the active one.
  void begin_run(Phase phase, int64_t points = 900, int layers = 3);

  // Changes the snapshot of the session.
  void say(const std::function<void(Snapshot&)>& change);

  // Visible windows and children whose content is wider than they are, so that it is cut off; and texts that overlap or are covered
  // (overlaps.h).
  std::vector<std::string> overflowing() const;

  UiState ui;
  std::shared_ptr<Script> script;
  SessionStart started;         // the last request to start a session
  std::function<void()> extra;  // also drawn in each frame

 private:
  ImVec2 size_;
};

// Start of a made-up run with `steps` steps of the demo.
RunStart a_start(const std::string& name, int64_t steps = 100);

// A stage with a store of its own, which is deleted at the end.
class StoreStage : public testing::Test {
 protected:
  StoreStage();
  ~StoreStage() override;

  UiState& ui() { return stage_->ui; }
  bool until(const std::function<bool()>& condition) { return stage_->until(condition); }

  std::filesystem::path folder_;
  std::string store_;
  std::unique_ptr<Stage> stage_;
};

}  // namespace comera::studio
