#include "tests/studio/stage.h"

#include <imgui_impl_null.h>
#include <implot.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/config/config.h"
#include "tests/studio/overlaps.h"

namespace comera::studio {

Snapshot a_snapshot(Phase phase, int64_t step, int layers) {
  Snapshot s;
  s.run = "r-test01";
  s.name = "a run with a rather long name that has to fit somewhere";
  s.phase = phase;
  s.step = step;
  s.total_steps = 36000;
  s.epoch = 1.2;
  s.total_epochs = 3;
  s.late = step > 500;
  s.target_entries = s.late ? 500'000 : 0;
  s.last.step = step;
  s.last.results.ce = 0.4321;
  s.last.step_ms = 123.4;
  s.eval = {{.loss = 0.51, .accuracy = 0.83, .examples = 1000}, step};
  s.size = {
      .entries = 800'000, .bytes = 3'200'000, .compression = 60, .model_entries = 1e6, .model_compression = 40, .held_entries = 900'000};
  for (int i = 0; i < layers; ++i)
    s.ranks.push_back({"enc" + std::to_string(i) + ".attn.q",
                       {30, 12, 0, 7, 30},
                       {30, 16, 3, 8, 30},
                       {30, 30, 30, 30, 30},
                       {12, 8, 8},
                       {8, 8, 12},
                       {0, 14, 0, 0, 0}});
  for (int i = 0; i < kPurposes; ++i)
    s.memory_now.bytes[static_cast<size_t>(i)] = s.memory_peak.bytes[static_cast<size_t>(i)] =
        s.memory_planned.bytes[static_cast<size_t>(i)] = 1'000'000 * (i + 1);
  s.steps_per_s = 1338.2;
  s.eta_s = 564;
  s.elapsed_s = 4000;
  s.device = "CPU, 2 threads";
  s.last_checkpoint_step = step > 600 ? 600 : -1;
  return s;
}

Action action_of(const UiState& ui, const std::string& id) {
  const std::vector<Action> all = actions(ui);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Action& action) { return action.id == id; });
  CHECK(found != all.end(), "no action " << id);
  return *found;
}

Stage::Stage(ImVec2 size, float scale, ThemeKind kind) : size_(size) {
  setenv("COMERA_ASSETS", COMERA_SOURCE_DIR "/assets", 0);  // wherever it is built
  ImGui::CreateContext();
  ImPlot::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.ConfigFlags |= ImGuiConfigFlags_DockingEnable | ImGuiConfigFlags_NavEnableKeyboard;
  io.ConfigErrorRecoveryEnableAssert = false;
  ImGui::GetCurrentContext()->ErrorCallback = [](ImGuiContext*, void*, const char* text) { ADD_FAILURE() << "Dear ImGui: " << text; };
  ImGui_ImplNull_Init();
  load_fonts();
  ui.settings.monitor_scale = scale;
  ui.settings.theme = kind;
  apply_theme(kind, scale);
  script = std::make_shared<Script>();
  ui.open_session = [this](SessionStart start) {
    started = std::move(start);
    return std::make_unique<FakeLink>(script);
  };
}

Stage::~Stage() {
  ui.live.reset();
  ui.ending.clear();
  ImGui_ImplNull_Shutdown();
  ImPlot::DestroyContext();
  ImGui::DestroyContext();
}

void Stage::resize(ImVec2 size, float scale) {
  size_ = size;
  ui.settings.monitor_scale = scale;
  apply_theme(ui.settings.theme, scale);
}

void Stage::frames(int count) {
  for (int i = 0; i < count; ++i) {
    ImGui_ImplNull_NewFrame();
    ImGui::GetIO().DisplaySize = size_;
    ImGui::NewFrame();
    draw_frame(ui);
    if (extra) extra();
    ImGui::Render();
    ImGui_ImplNullRender_RenderDrawData(ImGui::GetDrawData());
  }
}

bool Stage::until(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    frames(1);
    std::this_thread::yield();
  }
  return true;
}

void Stage::press(ImGuiKeyChord keys, unsigned character) {
  ImGuiIO& io = ImGui::GetIO();
  const auto key = static_cast<ImGuiKey>(keys & ~ImGuiMod_Mask_);
  for (const bool down : {true, false}) {
    for (const ImGuiKey mod : {ImGuiMod_Ctrl, ImGuiMod_Shift, ImGuiMod_Alt})
      if (keys & mod) io.AddKeyEvent(mod, down);
    if (key != ImGuiKey_None) io.AddKeyEvent(key, down);
    if (down && character != 0) io.AddInputCharacter(character);
    frames(3);
  }
}

void Stage::type(const std::string& text) {
  for (const char c : text) {
    ImGui::GetIO().AddInputCharacter(static_cast<unsigned char>(c));
    frames(1);
  }
  frames(2);
}

void Stage::begin_run(Phase phase, int64_t points, int layers) {
  script->snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::running, 1, layers));
  RunConfig config;
  config.train.eval_every = 100;
  config.method.comera.late_after = 500;
  ui.live = std::make_unique<LiveRun>(std::make_unique<FakeLink>(script), config, nullptr, ui.store_path);
  for (int64_t step = 1; step <= points; ++step) {
    const double x = static_cast<double>(step);
    script->records.add(step, {{"train_loss", 2 / (1 + x / 50)},
                               {"train_accuracy", x / 1000},
                               {"entries", 1e6 - x * 100},
                               {"target_entries", step > 500 ? 5e5 : 0},
                               {"step_ms", 120 + step % 7},
                               {"lr_core", 1e-4},
                               {"lr_rank", 1e-3},
                               {"lr_rest", 5e-5}});
    if (step % 100 == 0) script->records.add(step, {{"val_loss", 0.6}, {"val_accuracy", 0.8}});
  }
  Snapshot last = a_snapshot(phase, points, layers);
  const auto event = [&](int64_t step, const char* kind, const char* body) {
    if (step <= points) script->records.events.push_back({0, step, kind, 0, body});
  };
  event(0, "start", "{}");
  event(501, "stage", R"({"stage": "late", "reason": "steps", "entries": 950000})");
  event(600, "checkpoint", "{}");
  for (const LayerRanks& layer : last.ranks)
    for (size_t bond = 0; bond < layer.live.size() && points > 0; ++bond) {
      const auto number = static_cast<int64_t>(bond) + 1;
      script->records.ranks.push_back({0, layer.name, number, layer.initial[bond]});
      if (points > 510 && layer.live[bond] != layer.initial[bond])
        script->records.ranks.push_back({510, layer.name, number, layer.live[bond]});
    }
  std::stable_sort(script->records.ranks.begin(), script->records.ranks.end(),
                   [](const RankRow& a, const RankRow& b) { return a.step < b.step; });
  for (int i = 0; i < kPurposes && points > 0; ++i)
    script->records.memory.push_back({0, name_of(static_cast<Purpose>(i)), 1'000'000 * (i + 1)});
  if (points == 0) {  // nothing is known of it yet
    last = Snapshot{};
    last.phase = phase;
  }
  if (phase == Phase::failed) {
    last.message = "the model does not fit into the memory that is left on this machine";
    last.error_why = "it needs 310 MiB and 190 MiB are free";
    last.error_hint = "use a smaller batch: --set train.batch=8";
    last.error_code = 5;
  }
  ui.live->poll();
  script->snapshot = std::make_shared<const Snapshot>(std::move(last));
  ui.live->poll();
  ui.layout = "train";
}

void Stage::say(const std::function<void(Snapshot&)>& change) {
  Snapshot next = *script->snapshot;
  change(next);
  script->snapshot = std::make_shared<const Snapshot>(std::move(next));
}

std::vector<std::string> Stage::overflowing() const {
  std::vector<std::string> found;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (!window->WasActive || window->Hidden ||
        (window->Flags & (ImGuiWindowFlags_HorizontalScrollbar | ImGuiWindowFlags_Tooltip | ImGuiWindowFlags_AlwaysAutoResize)))
      continue;
    const float room = window->InnerRect.GetWidth() - 2 * window->WindowPadding.x;
    if (window->ContentSize.x > room + 1.5f && std::string(window->Name).find("/runs_") == std::string::npos)
      found.push_back(std::string(window->Name) + ": " + std::to_string(window->ContentSize.x) + " wide in " + std::to_string(room));
  }
  ImGuiContext& context = *ImGui::GetCurrentContext();
  for (int i = 0; i < context.Tables.GetMapSize(); ++i) {
    const ImGuiTable* table = context.Tables.TryGetMapData(i);
    if (!table || table->LastFrameActive < context.FrameCount) continue;
    for (int column = 0; column < table->ColumnsCount; ++column)
      if (const ImGuiTableColumn& of = table->Columns[column];
          of.IsEnabled && std::max(of.ContentMaxXFrozen, of.ContentMaxXUnfrozen) > of.WorkMaxX + 1.5f)
        found.push_back(std::string(table->OuterWindow->Name) + ": column " + ImGui::TableGetColumnName(table, column) + " ends at " +
                        std::to_string(of.WorkMaxX) + ", its content at " +
                        std::to_string(std::max(of.ContentMaxXFrozen, of.ContentMaxXUnfrozen)));
  }
  for (std::string& overlap : overlapping_texts()) found.push_back(std::move(overlap));
  return found;
}

RunStart a_start(const std::string& name, int64_t steps) {
  RunStart start;
  start.name = name;
  start.config = config_to_json(load_config("demo", {"train.steps=" + std::to_string(steps), "train.threads=1"})).dump();
  start.total_steps = steps;
  return start;
}

StoreStage::StoreStage() {
  std::string pattern = (std::filesystem::temp_directory_path() / "comera-studio-XXXXXX").string();
  folder_ = ::mkdtemp(pattern.data());
  store_ = (folder_ / "runs.db").string();
  stage_ = std::make_unique<Stage>();
}

StoreStage::~StoreStage() {
  stage_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace comera::studio
