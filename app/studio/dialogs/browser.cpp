// Chooses a file inside the window: a field for the path, and a list of the files in its folder.
#include <imgui_internal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"
#include "core/base/paths.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;

std::string home() {
  const char* folder = std::getenv("HOME");
  return folder && *folder ? folder : "/";
}

void go(UiState& ui, const std::string& folder) {
  Dialogs& state = ui.dialogs;
  if (!state.folders) state.folders = std::make_unique<Background<std::string, Folder>>(read_folder, ui.wake);
  state.folder = folder;
  state.folder_of_before = false;
  state.path = folder + (folder.ends_with("/") ? "" : "/");
  state.path_set = true;
  state.chosen = -1;
  state.folder_number = state.folders->ask(folder);
}

const char* hint_of(BrowseFor what) {
  switch (what) {
    case BrowseFor::store:
      return "A database of runs, for example runs.db";
    case BrowseFor::config:
      return "A config file (JSON), as written by `comera config init` or copied from the form";
    case BrowseFor::model:
      return "A folder of the transformers library: config.json with model.safetensors, or with its shards";
    case BrowseFor::data:
    case BrowseFor::evaluation:
      return "A data file (CSV, TSV, JSONL, Parquet, text, IDX, Criteo), or a folder: with train and dev files, pictures by class, or "
             "texts";
  }
  return "";
}

}  // namespace

namespace {

// Folder for the first choice of a kind.
std::string usual_folder(const UiState& ui, BrowseFor what) {
  const std::string start =
      what == BrowseFor::store ? fs::path(ui.store ? ui.store->path() : paths::runs_database()).parent_path().string() : home();
  return start.empty() ? home() : start;
}

std::string size_of_file(int64_t bytes) {
  if (bytes < 0) return "";  // not known: of a link to nothing, or not readable
  if (bytes < 1024) return std::to_string(bytes) + " B";
  return bytes < 1 << 20 ? significant(static_cast<double>(bytes) / 1024, 3) + " KiB" : mebibytes(static_cast<double>(bytes));
}

std::string& last_folder(UiState& ui) {
  return ui.last_folders.at(static_cast<size_t>(std::min(ui.dialogs.browse_for, BrowseFor::data)));  // all data are in one
}

// Folder for this choice: the last one of its kind, or the default.
std::string first_folder(UiState& ui, BrowseFor what) {
  ui.dialogs.browse_for = what;
  const std::string& last = last_folder(ui);
  ui.dialogs.folder_of_before = !last.empty();
  return last.empty() ? usual_folder(ui, what) : last;
}

}  // namespace

void open_browser(UiState& ui, BrowseFor what, Choose choose) {
  Dialogs& state = ui.dialogs;
  const std::string program = state.may_use_desktop && ui.settings.desktop_dialogs ? DesktopDialog::program() : "";
  if (program.empty()) return browse_inside(ui, what);
  close_dialog(ui);
  const char* title = what == BrowseFor::store    ? "Open database"
                      : what == BrowseFor::config ? "Open config"
                      : what == BrowseFor::model  ? "Folder with config.json and model.safetensors"
                      : choose == Choose::folder  ? "Folder with train and dev files, pictures by class, or texts"
                                                  : "Data file (CSV, TSV, JSONL, Parquet, text, IDX, Criteo)";
  state.desktop = std::make_unique<DesktopDialog>(program, title, first_folder(ui, what), choose);
}

void browse_inside(UiState& ui, BrowseFor what) {
  const std::string start = first_folder(ui, what);
  const bool of_before = ui.dialogs.folder_of_before;
  open_dialog(ui, Dialog::browser);
  go(ui, start);
  ui.dialogs.folder_of_before = of_before;
}

void remember_folder(UiState& ui, const std::string& path) { last_folder(ui) = fs::path(path).parent_path().string(); }

void draw_browser(UiState& ui) {
  Dialogs& state = ui.dialogs;
  push_small();
  ImGui::PushTextWrapPos(0);
  text_dim(hint_of(state.browse_for));
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  const ButtonLook open_look{.icon = Icon::check, .primary = true, .enabled = !state.path.empty()};
  const float open_width = button_width("Open", open_look), gap = ImGui::GetStyle().ItemSpacing.x;
  const float square = ImGui::GetFrameHeight();
  if (button("###home", {.icon = Icon::home, .tooltip = "Home folder", .size = {square, square}})) go(ui, home());
  ImGui::SameLine();
  const std::string parent = fs::path(state.folder).parent_path().string();
  if (button("..###up", {.enabled = parent != state.folder, .tooltip = "Parent folder", .size = {square, square}})) go(ui, parent);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - open_width - gap);
  char text[4096];
  std::snprintf(text, sizeof text, "%s", state.path.c_str());
  if (state.appearing) ImGui::SetKeyboardFocusHere();
  if (ImGuiInputTextState* typing = ImGui::GetInputTextState(ImGui::GetID("##path")); std::exchange(state.path_set, false) && typing)
    typing->ReloadUserBufAndMoveToEnd();
  bool act = ImGui::InputTextWithHint("##path", "Path", text, sizeof text, ImGuiInputTextFlags_EnterReturnsTrue);
  state.path = text;
  ImGui::SameLine();
  act |= button("Open", open_look);

  const auto answer = state.folders ? state.folders->latest() : nullptr;
  const Folder* folder = answer && answer->number == state.folder_number ? &answer->answer : nullptr;
  if (folder && !folder->problem.empty() && state.folder_of_before) return go(ui, usual_folder(ui, state.browse_for));
  std::string enter;
  if (begin_card("folder")) {
    if (!folder) {
      empty_state(Icon::clock, "Reading the folder", state.folder.c_str());
    } else if (!folder->problem.empty()) {
      empty_state(Icon::warning, "This folder cannot be read", folder->problem.c_str());
    } else if (folder->rows.empty()) {
      empty_state(Icon::none, "Empty folder", state.folder.c_str());
    } else {
      ImGuiListClipper clipper;
      clipper.Begin(static_cast<int>(folder->rows.size()));
      while (clipper.Step())
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
          const FolderRow& row = folder->rows[static_cast<size_t>(i)];
          const std::string full = (fs::path(folder->path) / row.name).string();
          ImGui::PushID(row.name.c_str());
          const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
          if (ImGui::Selectable(
                  "##row", i == state.chosen,
                  ImGuiSelectableFlags_AllowDoubleClick | ImGuiSelectableFlags_AllowOverlap | ImGuiSelectableFlags_NoAutoClosePopups)) {
            state.chosen = i;
            state.path = full;
            const bool entered = ImGui::IsMouseDoubleClicked(0) || ImGui::IsKeyPressed(ImGuiKey_Enter);
            if (row.folder && entered) enter = full;
            if (!row.folder && entered) act = true;
          }
          ImGui::SameLine(em(0.4f));
          const std::string size = row.folder ? "" : size_of_file(row.bytes);
          text_fit(row.name + (row.folder ? "/" : ""), right - em(8) - ImGui::GetCursorPosX(), row.folder ? theme().accent : theme().text);
          if (!row.folder) {
            ImGui::SameLine();
            text_right(size, right - em(0.4f), theme().dim);
          }
          ImGui::PopID();
        }
    }
  }
  end_card();
  if (!enter.empty()) return go(ui, enter);
  if (!act || state.path.empty()) return;
  std::string path = state.path;
  if (path.starts_with("~/")) path = home() + path.substr(1);
  // Enters a folder, unless a data set is wanted: that may be a folder.
  const bool ends = path.ends_with("/");
  while (path.size() > 1 && path.ends_with("/")) path.pop_back();
  const bool listed = folder && std::any_of(folder->rows.begin(), folder->rows.end(), [&](const FolderRow& row) {
                        return row.folder && (fs::path(folder->path) / row.name).string() == path;
                      });
  if ((listed || ends) && state.browse_for < BrowseFor::data) return go(ui, path);
  close_dialog(ui);
  take_chosen(ui, path);
}

}  // namespace comera::studio
