// Chosen or dropped files: another thread detects their kind from their content.
#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/dialogs.h"
#include "app/studio/runs/evaluating.h"
#include "app/studio/runs/run_fields.h"
#include "app/studio/ui_state.h"
#include "core/base/error.h"
#include "core/session/folder_run.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;

std::string name_of(const std::string& path) {
  const fs::path file = path;
  return (file.has_filename() ? file : file.parent_path()).filename().string();
}

// ---- background thread ----------------------------------------------------------------------------------------------

void import_file(OpenAnswer& answer) {
  const std::string &store = answer.question.store, &path = answer.question.path;
  if (answer.question.import_as == ImportAs::curves)
    answer.imported = import_any(store, path, "", answer.question.again ? Twice::allowed : Twice::refused);
  if (answer.question.import_as == ImportAs::model) answer.imported.ids = {store_model(store, path)};
}

// Whether it becomes the data set of the new run.
bool is_for_form(const OpenQuestion& question, FileKind kind) {
  if (question.import_as != ImportAs::none || kind == FileKind::missing) return false;
  return question.by_content ? kind == FileKind::data : question.as == BrowseFor::data;
}

OpenAnswer work_on(const OpenQuestion& question) {
  OpenAnswer answer{question, kind_of_file(question.path)};
  try {
    if (answer.kind == FileKind::weights) answer.model = look_at_model(question.path, question.store);
    if (is_for_form(question, answer.kind)) answer.suit = suit_data(question.path);
    import_file(answer);
  } catch (const Error& error) {
    answer.problem = full_text(error);
  } catch (const std::exception& error) {
    answer.problem = error.what();
  }
  return answer;
}

// ---- drawing thread -------------------------------------------------------------------------------------------------

void offer(UiState& ui, Level level, const std::string& text, std::vector<Offer> offers) {
  offers.push_back({"Dismiss", {}});
  add_toast(ui, {.level = level, .text = text, .until = kUntilDismissed, .offers = std::move(offers)});
}

// Queues the import before the waiting files.
void import_next(UiState& ui, const std::string& path, ImportAs as, bool again = false) {
  if (const std::string no = no_writing(ui); !no.empty()) return toast(ui, Level::error, no);
  if (ui.store_path.empty()) return toast(ui, Level::error, "There is no open database to import " + name_of(path) + " into");
  toast(ui, Level::info, "Importing " + name_of(path));
  ui.dialogs.to_open.push_front({.path = path, .by_content = true, .import_as = as, .again = again});
}

// Curves that were imported before are not imported again unasked.
void tell_same(UiState& ui, const OpenAnswer& answer) {
  const std::vector<SameCurves>& same = answer.imported.same;
  std::string text = name_of(answer.question.path) + " is already in this database: ";
  text += same.size() == 1 ? "run " + same[0].name + " (" + same[0].id + ") has the same curves."
                           : thousands(static_cast<double>(same.size())) + " runs have the same curves, the first is " + same[0].name +
                                 " (" + same[0].id + ").";
  offer(ui, Level::info, text,
        {{"Show", [id = same[0].id](UiState& state) { open_run(state, id); }},
         {"Import again", [path = answer.question.path](UiState& state) { import_next(state, path, ImportAs::curves, true); }}});
}

void tell_imported(UiState& ui, const OpenAnswer& answer) {
  const std::vector<std::string>& ids = answer.imported.ids;
  const std::string name = name_of(answer.question.path);
  if (ids.empty() && !answer.imported.same.empty()) return tell_same(ui, answer);
  if (ui.store) ui.store->refresh(0);
  if (answer.question.import_as == ImportAs::model) {
    toast(ui, Level::good, name + " was imported as a run of this database; a fork continues from it");
    return fork_run(ui, ids.front(), {.at_step = answer.model.step, .store = answer.question.store});
  }
  std::string text = name + ": " + (ids.size() == 1 ? "1 run" : thousands(static_cast<double>(ids.size())) + " runs") + " with " +
                     thousands(static_cast<double>(answer.imported.points)) + " points imported.";
  for (const std::string& note : answer.imported.notes) text += " " + note + ".";
  std::vector<Offer> offers;
  if (ids.size() == 1) offers.push_back({"Show", [id = ids.front()](UiState& state) { open_run(state, id); }});
  offer(ui, answer.imported.notes.empty() ? Level::good : Level::warning, text, std::move(offers));
}

// Opened once more behind the files that were dropped with it, where there are any.
bool put_behind(UiState& ui, OpenQuestion question, bool is_data) {
  std::deque<OpenQuestion>& rest = ui.dialogs.to_open;
  if (!question.together || question.seen || rest.empty()) return false;
  question.seen = true, question.is_data = is_data;
  rest.push_back(std::move(question));
  return true;
}

void tell_model(UiState& ui, const OpenAnswer& answer) {
  const ModelFile& model = answer.model;
  const std::string& path = answer.question.path;
  const std::deque<OpenQuestion>& rest = ui.dialogs.to_open;
  if (model.folder && std::any_of(rest.begin(), rest.end(), [](const OpenQuestion& one) { return one.is_data; }))
    return open_form_from_folder(ui, path);
  if (model.folder && put_behind(ui, answer.question, false)) return;
  if (model.folder)
    return offer(ui, Level::info, name_of(path) + " is a model of the transformers library.",
                 {{"New run from it", [path](UiState& state) { open_form_from_folder(state, path); }},
                  {"Import as a run", [path](UiState& state) { import_next(state, path, ImportAs::model); }}});
  const int64_t step = model.step;
  const std::string what = model.checkpoint ? " is a checkpoint of " + model.name + " at step " + thousands(static_cast<double>(step))
                                            : " is an exported model of " + model.name;
  if (model.run.empty())
    return offer(ui, Level::info, name_of(path) + what + (model.checkpoint ? ", which is not in this database." : "."),
                 {{"Train from it", [path](UiState& state) { import_next(state, path, ImportAs::model); }}});
  std::vector<Offer> offers;
  const auto& rows = ui.runs->rows;
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const RunRow& one) { return one.id == model.run; });
  if (no_writing(ui).empty()) {
    if (model.newest && row != rows.end() && can_resume(*row))
      offers.push_back({"Resume", [id = model.run](UiState& state) { resume_run(state, id); }});
    offers.push_back({"Fork", [id = model.run, step](UiState& state) { fork_run(state, id, {.at_step = step}); }});
  }
  offers.push_back({"Show", [id = model.run, step](UiState& state) { open_run(state, id, step); }});
  offer(ui, Level::info, name_of(path) + what + ".", std::move(offers));
}

// Not a config of the user.
bool is_shipped(const NewRun& form) {
  return !form.fork && (folder_of(form) || std::find(form.presets.begin(), form.presets.end(), form.source) != form.presets.end());
}

// Whether the model reads such data. The one of a folder gets the head for them: of a classifier where they have labels.
bool suits(const NewRun& form, RunConfig& config, const DataSuit& suit) {
  if (!folder_of(form)) return takes(config, suit);
  const std::string before = config.model.task;
  const bool text_alone = suit.info.classes == 0 && suit.preset == "llama-10m";
  if (text_alone && before == "classification") config.model.task = "masked";
  if (suit.info.classes > 0) config.model.task = "classification";
  const std::vector<Problem> problems = config_problems(config);
  const bool refused = std::any_of(problems.begin(), problems.end(), [](const Problem& one) { return one.path == "model.task"; });
  if ((text_alone || takes(config, suit)) && !refused) return true;
  config.model.task = before;
  return false;
}

// With the preset that suits the data, where that of the form takes other ones; a config or a fork that the form has stays.
void fill_form(UiState& ui, const OpenAnswer& answer) {
  const NewRun& form = ui.form;
  RunConfig config = form.config;
  const bool stays = folder_of(form) || (form.ready && (suits(form, config, answer.suit) || !is_shipped(form)));
  const bool switches = !stays;
  open_form(ui, switches ? answer.suit.preset : "");
  ui.dialogs.data_for_form = answer.question.path;
  ui.dialogs.suit_for_form = answer.suit;
  if (!switches) ui.dialogs.suit_for_form.more.clear();
  if (!answer.problem.empty()) toast(ui, Level::warning, answer.problem);
}

// Settings of a model that the weights of a folder fix: "model.encoder.positions", but not "model.length".
bool is_of_weights(const std::string& path) { return path.starts_with("model.") && path.find('.', 6) != std::string::npos; }

void tick_form_data(UiState& ui) {
  std::string& path = ui.dialogs.data_for_form;
  if (path.empty() || ui.form.reading()) return;
  const std::string data = std::exchange(path, {});
  const DataSuit suit = std::exchange(ui.dialogs.suit_for_form, {});
  if (!ui.form.ready) return;  // the form shows why
  RunConfig config = ui.form.config;
  std::vector<Problem> problems;
  config.data.set = data;
  config.data.text_column.clear(), config.data.second_column.clear(), config.data.label_column.clear();
  const bool fits = suits(ui.form, config, suit);
  std::vector<std::string> sets = fits ? sets_for(suit, config) : std::vector<std::string>();
  if (fits) sets.insert(sets.end(), suit.more.begin(), suit.more.end());
  const bool folder = folder_of(ui.form).has_value();
  const auto put = [&](const std::vector<std::string>& all) {
    for (const std::string& set : all) {
      const size_t equals = set.find('=');
      if (folder && is_of_weights(set.substr(0, equals))) continue;
      fields_set(fields_of(config), set.substr(0, equals), set.substr(equals + 1), problems);
    }
  };
  put(sets);
  if (fits && is_shipped(ui.form)) put(sizes_for(config, suit.trained_on, ui.form.changed));
  if (folder) config.model.length = std::min(config.model.length, ui.form.base.model.length);  // it has no positions for more
  ui.form.config = config;
  form_changed(ui, "data.set");
  jump_to(ui.form, "data.set");
  toast(ui, Level::good, name_of(data) + " is now the data set of the new run" + (suit.about.empty() ? "" : ": " + suit.about));
}

void open_as(UiState& ui, const OpenAnswer& answer) {
  const std::string& path = answer.question.path;
  const std::string name = name_of(path);
  const auto refuse = [&](const std::string& text) { toast(ui, Level::error, text); };
  if (answer.kind == FileKind::missing) return refuse("Cannot read " + path + ": the file does not exist or is not readable");
  if (is_for_form(answer.question, answer.kind)) {
    if (!put_behind(ui, answer.question, true)) fill_form(ui, answer);
    return;
  }
  if (!answer.question.by_content && answer.question.as == BrowseFor::store && answer.kind != FileKind::store)
    return refuse(name + " is not a database of runs. The first stored run creates one");
  if (!answer.problem.empty()) return refuse(answer.problem);
  if (!answer.question.by_content && answer.question.as == BrowseFor::model)
    return answer.model.folder ? open_form_from_folder(ui, path)
                               : refuse(name + " has no config.json, which a folder of the transformers library has");
  if (answer.question.import_as != ImportAs::none) return tell_imported(ui, answer);
  switch (answer.kind) {
    case FileKind::store:
      return open_store(ui, path);
    case FileKind::config:
      return open_form(ui, path);
    case FileKind::weights:
      return tell_model(ui, answer);
    case FileKind::events:
    case FileKind::table:
      return import_next(ui, path, ImportAs::curves);
    case FileKind::data:
    case FileKind::folder:
      return refuse(name + " is a folder without a data set, texts or event files");
    case FileKind::other:
    case FileKind::missing:
      return refuse(name + " is not a database of runs, config, checkpoint, event file, CSV with a column step, or data set");
  }
}

}  // namespace

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

void take_chosen(UiState& ui, const std::string& path) {
  remember_folder(ui, path);
  if (ui.dialogs.browse_for == BrowseFor::evaluation) return evaluate_on(ui, path);
  open_file(ui, {.path = path, .as = ui.dialogs.browse_for});
}

void open_file(UiState& ui, const OpenQuestion& question) { ui.dialogs.to_open.push_back(question); }

void tick_dialogs(UiState& ui) {
  Dialogs& state = ui.dialogs;
  const std::vector<std::string> dropped = std::exchange(state.dropped, {});
  for (const std::string& path : dropped) open_file(ui, {.path = path, .by_content = true, .together = dropped.size() > 1});
  if (const auto chosen = state.desktop ? state.desktop->answer() : std::nullopt) {
    state.desktop.reset();
    if (chosen->failed) {
      browse_inside(ui, state.browse_for);
    } else if (!chosen->path.empty()) {
      take_chosen(ui, chosen->path);
    } else if (state.browse_for == BrowseFor::evaluation) {
      evaluate_on(ui, "");
    }
  }
  tick_form_data(ui);
  if (state.open_number == 0 && !state.to_open.empty() && state.data_for_form.empty()) {
    OpenQuestion question = std::move(state.to_open.front());
    state.to_open.pop_front();
    question.store = ui.store_path;
    state.opened = question.path;
    if (!state.opener) state.opener = std::make_unique<Background<OpenQuestion, OpenAnswer>>(work_on, ui.wake);
    state.open_number = state.opener->ask(std::move(question));
  }
  if (ui.form.reading()) return;  // the answer to the next file depends on what the form shows
  const auto answer = state.open_number != 0 ? state.opener->latest() : nullptr;
  if (!answer || answer->number != state.open_number) return;
  state.open_number = 0;
  open_as(ui, answer->answer);
  if (!state.to_open.empty() && ui.wake) ui.wake();  // opened in the next frame
}

}  // namespace comera::studio
