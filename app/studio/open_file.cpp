// Files that are chosen or dropped: what they are is told by their content, on another thread.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;

std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }

void open_as(UiState& ui, const OpenAnswer& answer) {
  const std::string& path = answer.question.path;
  const std::string name = name_of(path);
  const bool dropped = answer.question.by_content;
  const auto refuse = [&](const std::string& text) { toast(ui, Level::error, text); };
  if (answer.kind == FileKind::missing) return refuse("There is no file " + path + ", or it may not be read");
  if (!dropped && answer.question.as == BrowseFor::data) {
    ui.form.config.data.set = path;
    return form_changed(ui, "data.set");
  }
  if (!dropped && answer.question.as == BrowseFor::store && answer.kind != FileKind::store)
    return refuse(name + " is no database of runs. One is made by the first run that is stored");
  switch (answer.kind) {
    case FileKind::store:
      return open_store(ui, path);
    case FileKind::config:
      return open_form(ui, path);
    case FileKind::weights:
      return refuse(name +
                    " holds weights (safetensors), not a run. Open the database its run is in: runs.db, beside the folder "
                    "`checkpoints`. `comera eval " +
                    name + "` scores an exported model");
    case FileKind::folder:
      return refuse(name +
                    " is a folder. A database of runs or a config file can be opened; a data set is chosen in the form of a new run");
    case FileKind::other:
    case FileKind::missing:
      return refuse(name + " is neither a database of runs nor a config (JSON)");
  }
}

OpenAnswer recognise(const OpenQuestion& question) { return {question, kind_of_file(question.path)}; }

}  // namespace

FileKind kind_of_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return FileKind::folder;
  std::ifstream file(path, std::ios::binary);
  if (!file) return FileKind::missing;
  char head[4096] = {};
  file.read(head, sizeof head);
  const auto size = static_cast<size_t>(file.gcount());
  constexpr char kSqlite[] = "SQLite format 3";  // with its 0 at the end
  if (size >= sizeof kSqlite && std::memcmp(head, kSqlite, sizeof kSqlite) == 0) return FileKind::store;
  // safetensors: the length of the header in 8 bytes, the last of which are 0, then a JSON object.
  if (size > 9 && head[8] == '{' && head[6] == 0 && head[7] == 0) return FileKind::weights;
  size_t at = 0;
  for (;;) {  // JSON may begin with white space and comments
    while (at < size && std::strchr(" \t\r\n", head[at]) && head[at] != 0) ++at;
    if (at + 1 >= size || head[at] != '/') break;
    const char* end = head[at + 1] == '*' ? std::strstr(head + at, "*/") : std::strchr(head + at, '\n');
    if (!end) return FileKind::other;
    at = static_cast<size_t>(end - head) + (head[at + 1] == '*' ? 2 : 1);
  }
  return at < size && head[at] == '{' ? FileKind::config : FileKind::other;
}

Folder read_folder(const std::string& path) {
  Folder folder;
  folder.path = path;
  std::error_code error;
  for (fs::directory_iterator it(path, fs::directory_options::skip_permission_denied, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    FolderRow row{it->path().filename().string(), it->is_directory(ignored), 0};
    if (row.name.starts_with(".") && row.name != ".local" && row.name != ".config") continue;
    if (!row.folder) row.bytes = static_cast<int64_t>(it->file_size(ignored));
    folder.rows.push_back(std::move(row));
  }
  if (error) folder.problem = path + " cannot be read: " + error.message();
  std::sort(folder.rows.begin(), folder.rows.end(),
            [](const FolderRow& a, const FolderRow& b) { return a.folder != b.folder ? a.folder : a.name < b.name; });
  return folder;
}

void open_file(UiState& ui, const OpenQuestion& question) {
  Dialogs& state = ui.dialogs;
  if (!state.opener) state.opener = std::make_unique<Background<OpenQuestion, OpenAnswer>>(recognise, ui.wake);
  state.open_number = state.opener->ask(question);
}

void tick_dialogs(UiState& ui) {
  Dialogs& state = ui.dialogs;
  if (!state.dropped.empty()) {
    if (state.dropped.size() > 1) toast(ui, Level::warning, "One file at a time: the first one is opened");
    open_file(ui, {.path = state.dropped.front(), .by_content = true});
    state.dropped.clear();
  }
  if (const auto chosen = state.desktop ? state.desktop->answer() : std::nullopt) {
    state.desktop.reset();
    if (chosen->failed)
      browse_inside(ui, state.browse_for);
    else if (!chosen->path.empty())
      open_file(ui, {.path = chosen->path, .as = state.browse_for});
  }
  if (!state.opener || state.open_number == 0) return;
  const auto answer = state.opener->latest();
  if (!answer || answer->number != state.open_number) return;
  state.open_number = 0;
  open_as(ui, answer->answer);
}

}  // namespace comera::studio
