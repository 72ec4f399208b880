// A window of any size without a display: Dear ImGui's null backend, the real fonts and the real frame; and a run that
// is made up.
#pragma once
#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/studio/frame.h"
#include "app/studio/shown_run/live_run.h"
#include "app/studio/ui_state.h"
#include "core/store/run_types.h"

namespace comera::studio {

// What a session would say, said by the test.
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

// A snapshot of a run of some layers in the middle of its late stage.
Snapshot a_snapshot(Phase phase, int64_t step, int layers = 3);

class Stage {
 public:
  explicit Stage(ImVec2 size = {1600, 900}, float scale = 1, ThemeKind kind = ThemeKind::dark);
  ~Stage();

  // Another size of the window, and of everything in it.
  void resize(ImVec2 size, float scale = 1);

  // Size of the font in pixels; between frames Dear ImGui has none.
  static float line() { return ImGui::GetStyle().FontSizeBase * ImGui::GetStyle().FontScaleMain; }

  void frames(int count = 4);

  // Frames until it is so; for answers of other threads. False after a minute, which is no measurement but an end.
  bool until(const std::function<bool()>& condition);

  // Keys go down and up again, with some frames for each; `character` is what they would type.
  void press(ImGuiKeyChord keys, unsigned character = 0);
  void type(const std::string& text);

  // A run in front, with `points` steps of metrics.
  void begin_run(Phase phase, int64_t points = 900, int layers = 3);

  // The session says something else from now on.
  void say(const std::function<void(Snapshot&)>& change);

  // Windows and children that are visible and whose content is wider than they are: something is cut off there. And texts
  // that lie over each other, or under something (overlaps.h).
  std::vector<std::string> overflowing() const;

  UiState ui;
  std::shared_ptr<Script> script;
  SessionStart started;         // what a session was asked to do last
  std::function<void()> extra;  // drawn in each frame besides

 private:
  ImVec2 size_;
};

// Of a run that is made up, of so many steps of the demo.
RunStart a_start(const std::string& name, int64_t steps = 100);

// A stage and a store of its own, which goes with it.
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
