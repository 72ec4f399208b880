// Modal dialogs, one at a time; Esc closes each. A new dialog is a file in dialogs/ and a line in the table of dialogs.cpp.
#pragma once
#include <imgui.h>

#include <array>
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
#include "core/session/data_suit.h"
#include "core/session/model_run.h"
#include "core/store/import.h"
#include "core/store/salvage.h"

namespace comera::studio {

struct UiState;

enum class Dialog { none, palette, keys, browser, settings, about, edit_runs, purge_runs, run_to, no_device, salvage, layouts, evaluate };

enum class BrowseFor { store, config, model, data, evaluation };  // evaluation: data for the dialog `evaluate`

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

// How a file is imported: its curves as runs, or its weights as a run.
enum class ImportAs { none, curves, model };
struct OpenQuestion {  // a file to open, and how
  std::string path;
  BrowseFor as = BrowseFor::config;
  bool by_content = false;  // dropped file: `as` follows from its content
  ImportAs import_as = ImportAs::none;
  bool together = false;   // dropped with other files: data come behind these, and a model folder before data begins a run
  bool seen = false;       // put behind the other files once
  bool is_data = false;    // found when it was put there
  bool again = false;      // import curves that are already there, too
  std::string store = {};  // database that is open at that time
};
struct OpenAnswer {
  OpenQuestion question;
  FileKind kind = FileKind::missing;
  std::string problem = {};  // why the file cannot be used
  ModelFile model = {};      // for weights
  Imported imported = {};    // for an import
  DataSuit suit = {};        // for data; its preset "" = unknown, and `problem` says why
};

// A run needs a device that is not available here.
struct NoDevice {
  std::string device, why;
  std::function<void(UiState&)> on_cpu;  // starts the same run on the CPU
};

// Result of salvaging a damaged database into a new one.
struct SalvageAnswer {
  Salvaged saved;
  std::string problem;  // why nothing was salvaged; "" = success
};

using Facts = std::vector<std::pair<std::string, std::string>>;  // facts about this program and machine: name, value

// A key binding that is being changed.
struct KeyChange {
  std::string search;
  std::string action;        // action that waits for its new keys; "" = none
  std::string wants, other;  // the action that wants the keys, and the action that has them
  ImGuiKeyChord keys = 0;    // the keys in question
  std::string told;          // message about the last change
  bool went_well = true;
};

struct Dialogs {
  Dialog open = Dialog::none;
  bool appearing = false;               // first frame of the dialog
  std::map<std::string, ImVec2> sizes;  // in em, by title: dialogs that the user resized
  // Command palette.
  std::string query;
  int chosen = 0;
  // File browser.
  BrowseFor browse_for = BrowseFor::config;
  std::string folder, path;       // shown folder; typed or selected path
  bool folder_of_before = false;  // the shown folder is from an earlier choice (UiState::last_folders) and may no longer exist
  uint64_t folder_number = 0, open_number = 0;
  std::string opened;  // path of the file that is being read, as question `open_number`
  std::unique_ptr<Background<std::string, Folder>> folders;
  std::unique_ptr<Background<OpenQuestion, OpenAnswer>> opener;
  std::vector<std::string> dropped;        // files dropped onto the window
  std::deque<OpenQuestion> to_open;        // opened one after the other
  std::string data_for_form;               // a data set that waits until the form has been read
  DataSuit suit_for_form;                  // settings for it
  std::unique_ptr<DesktopDialog> desktop;  // the desktop's file dialog while it is open
  bool may_use_desktop = false;            // a user is there to answer it
  int64_t run_to = 0;                      // target step
  NoDevice no_device;
  uint64_t salvage_number = 0;  // of the question in progress; 0 = none yet
  std::unique_ptr<Background<std::string, SalvageAnswer>> salvager;
  // Inputs of the dialogs about selected runs.
  bool path_set = false;  // `path` was changed by other means than typing, while its field may have the keyboard
  std::string run_name, run_tags, run_notes, typed;
  std::map<std::string, std::array<std::string, 3>> run_drafts;  // by the ids of the runs: these texts, closed without being saved
  // Inputs of the dialog of layouts: name of a new layout; the layout that is being renamed, and its new name.
  std::string layout_name, renamed, layout_name_new;
  // Settings and About.
  int settings_page = 0;  // 0: window, 1: keys
  float scale = 0;        // of the scale slider
  KeyChange key_change;
  std::unique_ptr<Background<int, Facts>> facts;
};

void open_dialog(UiState& ui, Dialog dialog);
void close_dialog(UiState& ui);
void change_keys(UiState& ui);  // opens the keys page of the settings
// Lets the user choose a file: in the desktop's dialog if there is one and it is enabled, else inside the window. A data set may also be a
// folder; only the desktop's dialog needs to know that in advance (`choose`).
void open_browser(UiState& ui, BrowseFor what, Choose choose = Choose::file);
void browse_inside(UiState& ui, BrowseFor what);
// A file was chosen in either dialog, for what it was opened for.
void take_chosen(UiState& ui, const std::string& path);
// The next choice of this kind starts in the folder of this file.
void remember_folder(UiState& ui, const std::string& path);
// Detects the kind of a file on another thread, then opens it or reports why not; several files are queued.
void open_file(UiState& ui, const OpenQuestion& question);
// Takes answers and dropped files. Called once a frame; never waits.
void tick_dialogs(UiState& ui);
void draw_dialogs(UiState& ui);

// Fuzzy score of `text` for a query: all characters of the query must occur in order. Starts of words and runs of characters score higher;
// -1 = no match.
int fuzzy_score(const std::string& typed, const std::string& text);

// One function for each file of dialogs/.
void draw_palette(UiState& ui);
void draw_keys(UiState& ui);
void draw_browser(UiState& ui);
void draw_settings(UiState& ui);
void draw_key_settings(UiState& ui);  // page of the settings dialog
void draw_about(UiState& ui);
void draw_edit_runs(UiState& ui);
void draw_purge_runs(UiState& ui);
void draw_run_to(UiState& ui);
void draw_no_device(UiState& ui);
void draw_salvage(UiState& ui);
void draw_layouts(UiState& ui);
void draw_evaluate(UiState& ui);

}  // namespace comera::studio
