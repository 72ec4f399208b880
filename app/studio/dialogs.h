// Modal dialogs, one at a time; Esc closes each. A new one is a file in dialogs/ and a line in the table of dialogs.cpp.
#pragma once
#include <imgui.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/studio/background.h"
#include "app/studio/dialogs/desktop_dialog.h"
#include "app/studio/file_kind.h"
#include "core/session/model_run.h"
#include "core/store/import.h"
#include "core/store/salvage.h"

namespace comera::studio {

struct UiState;

enum class Dialog { none, palette, keys, browser, settings, about, edit_runs, purge_runs, run_to, no_device, salvage, layouts };

enum class BrowseFor { store, config, data };

struct FolderRow {
  std::string name;
  bool folder = false;
  int64_t bytes = 0;
};
struct Folder {
  std::string path;
  std::vector<FolderRow> rows;  // folders first
  std::string problem;
};
Folder read_folder(const std::string& path);

// How a file is imported: its curves become runs, or its weights a run.
enum class ImportAs { none, curves, model };
struct OpenQuestion {  // a file that shall be opened, as what
  std::string path;
  BrowseFor as = BrowseFor::config;
  bool by_content = false;  // it was dropped: `as` is not known
  ImportAs import_as = ImportAs::none;
  std::string store = {};  // the database that is open then
};
struct OpenAnswer {
  OpenQuestion question;
  FileKind kind = FileKind::missing;
  std::string problem = {};  // why it cannot be used
  ModelFile model = {};      // of weights
  Imported imported = {};    // of an import
};

// A run needs a device that is not available.
struct NoDevice {
  std::string device, why;
  std::function<void(UiState&)> on_cpu;  // the same on the processor
};

// Result of salvaging a damaged database into a new one.
struct SalvageAnswer {
  Salvaged saved;
  std::string problem;  // why nothing was; "" = it went well
};

using Facts = std::vector<std::pair<std::string, std::string>>;  // of this program and machine: what, value

// Keys that are being given to an action.
struct KeyChange {
  std::string search;
  std::string action;        // whose keys are waited for; "" = none
  std::string wants, other;  // the action that takes the keys of the other one
  ImGuiKeyChord keys = 0;    // those
  std::string told;          // message of the last change
  bool went_well = true;
};

struct Dialogs {
  Dialog open = Dialog::none;
  bool appearing = false;               // its first frame
  std::map<std::string, ImVec2> sizes;  // in em, by title: of those that were made larger or smaller
  // Palette.
  std::string query;
  int chosen = 0;
  // Browser.
  BrowseFor browse_for = BrowseFor::config;
  std::string folder, path;       // shown; typed or chosen
  bool folder_of_before = false;  // the shown one was chosen in once (UiState::last_folders) and may be gone
  uint64_t folder_number = 0, open_number = 0;
  std::string opened;  // path of the file that is read as question `open_number`
  std::unique_ptr<Background<std::string, Folder>> folders;
  std::unique_ptr<Background<OpenQuestion, OpenAnswer>> opener;
  std::vector<std::string> dropped;        // files that were let go over the window
  std::deque<OpenQuestion> to_open;        // one after the other
  std::string data_for_form;               // a data set that waits for the form to be read
  std::unique_ptr<DesktopDialog> desktop;  // the desktop's, while it is open
  bool may_use_desktop = false;            // somebody is there to answer it
  int64_t run_to = 0;                      // step
  NoDevice no_device;
  uint64_t salvage_number = 0;  // of the question that is worked on; 0 = none was asked yet
  std::unique_ptr<Background<std::string, SalvageAnswer>> salvager;
  // Of the selected runs.
  std::string run_name, run_tags, run_notes, typed;
  // Layouts: the name of a new one; the saved one that is being renamed, and to what.
  std::string layout_name, renamed, layout_name_new;
  // Settings and About.
  int settings_page = 0;  // 0 of the window, 1 its keys
  float scale = 0;        // of the slider
  KeyChange key_change;
  std::unique_ptr<Background<int, Facts>> facts;
};

void open_dialog(UiState& ui, Dialog dialog);
void close_dialog(UiState& ui);
void change_keys(UiState& ui);  // the page of the settings
// Chooses a file: in the desktop's dialog where there is one and it is wanted, else inside the window. A data set may be a
// folder as well, which only the desktop's dialog wants to know before.
void open_browser(UiState& ui, BrowseFor what, Choose choose = Choose::file);
void browse_inside(UiState& ui, BrowseFor what);
// The next choice of that kind begins where this file is.
void remember_folder(UiState& ui, const std::string& path);
// Detects the kind of a file on another thread, then opens it or reports why not; several files are queued.
void open_file(UiState& ui, const OpenQuestion& question);
// Takes answers and dropped files. Once a frame; never waits.
void tick_dialogs(UiState& ui);
void draw_dialogs(UiState& ui);

// Fuzzy score of `text` for a query: every character must occur in order. Starts of words and runs of characters score
// higher; -1 = no match.
int fuzzy_score(const std::string& typed, const std::string& text);

// One of each file of dialogs/.
void draw_palette(UiState& ui);
void draw_keys(UiState& ui);
void draw_browser(UiState& ui);
void draw_settings(UiState& ui);
void draw_key_settings(UiState& ui);  // a page of them
void draw_about(UiState& ui);
void draw_edit_runs(UiState& ui);
void draw_purge_runs(UiState& ui);
void draw_run_to(UiState& ui);
void draw_no_device(UiState& ui);
void draw_salvage(UiState& ui);
void draw_layouts(UiState& ui);

}  // namespace comera::studio
