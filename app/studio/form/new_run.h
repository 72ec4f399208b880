// The config of a new run before its start: source, changes, problems and forecast. Background threads read files and compute forecasts.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/studio/background.h"
#include "app/studio/form/data_facts.h"
#include "app/studio/form/duel_plan.h"
#include "app/studio/form/folder_fit.h"
#include "app/studio/form/form_sweep.h"
#include "app/studio/form/memory_fit.h"
#include "app/studio/form/method_memory.h"
#include "app/studio/form/pace.h"
#include "core/train/forecast.h"

namespace comera::studio {

struct RunView;
struct UiState;

FieldValues field_values(const RunConfig& config);
struct DataChoice {  // a known data set
  std::string name, about;
  int64_t bytes = 0;
  bool here = false;  // installed on this machine
};

// The parent of a fork: a run, a step, and the settings in effect at that step.
struct ForkOf {
  std::string run, name, store;  // id, display name, database
  int64_t step = 0;
  RunConfig config;
};

struct ConfigQuestion {
  std::string source;                  // preset, path of a file, or hf:FOLDER
  std::vector<std::string> sets;       // path=value, applied on top
  std::shared_ptr<const ForkOf> fork;  // null: not a fork; else the source of the settings
};
struct ConfigAnswer {
  std::string source;
  RunConfig base;    // the source with the user's defaults
  RunConfig config;  // base with `sets` applied
  std::string problem, hint;
  std::vector<DataChoice> data;
  std::vector<std::string> presets, devices;
  std::string machine;  // machine_name()
};

// The plan of a config, and problems with it on this machine.
struct Outlook {
  std::shared_ptr<const Forecast> forecast;  // null: none, `problems` say why
  std::vector<Problem> problems;
  std::shared_ptr<const MemoryMisfit> misfit;  // null: the plan fits, or there is no forecast
  std::string new_head;                        // parameters that a folder does not have
};
struct OutlookQuestion {
  RunConfig config;
  int processes = 1;        // that share each batch
  std::string folder = {};  // whose weights the run begins with; "": they are drawn
  LiveRanks ranks = {};     // of its tensor trains; {}: the config's
};
// The forecast is that of one process; so many must fit.
Outlook look_ahead(const OutlookQuestion& question);

struct NewRun {
  std::string source = "demo";
  std::shared_ptr<const ForkOf> fork;  // null: not a fork
  bool ready = false;                  // base and config were read
  std::string problem, hint;           // why base and config could not be read, and advice
  RunConfig base, config;
  FieldValues base_values;
  std::set<std::string> changed;  // paths whose values differ from the base
  std::vector<Problem> problems;  // of the current config
  UnusedSettings unused;          // of the current config
  std::vector<DataChoice> data;
  std::vector<std::string> presets, devices;

  std::shared_ptr<const Forecast> forecast;  // newest forecast, possibly of an earlier config
  std::vector<Problem> outlook_problems;     // of the last config that was checked
  std::shared_ptr<const MemoryMisfit> misfit;
  bool looking = false;  // the current config is not checked yet
  MethodMemory methods;  // plans of all methods
  DuelPlan duel;         // of chosen methods
  FormSweep sweep;       // of chosen settings
  FolderFit fit;         // of a model folder
  std::string new_head;  // of the last config that was checked

  std::vector<DataFacts> known_data;                  // data sets that were read, including the last requested one
  std::map<std::string, std::vector<int64_t>> modes;  // by path: modes that are chosen automatically where the setting is empty
  DataQuestion data_wanted;                           // for the current config
  uint64_t data_number = 0;                           // of the last question for facts
  uint64_t data_look = 0;                             // number of the last question whether its files changed; 0 = answered
  double next_data_look = 0;                          // time of the next one
  const DataFacts* facts() const;                     // null while they are read, or if no set is chosen
  const DataFacts* columns() const;                   // the same, else with other columns of the set; null where they are not known
  Pace pace;                                          // of the last config that was looked up
  uint64_t pace_number = 0;
  std::unique_ptr<Background<RunConfig, MeasuredStep>> meter;
  uint64_t meter_number = 0;  // of the last question; 0 = none
  bool measuring = false;
  Guess guess;          // for the newest forecast
  std::string machine;  // name of this machine
  std::string measure_problem;

  int processes = 1;          // that train it, through mpirun; not part of the config
  bool start_wanted = false;  // start once the current config is checked
  bool listing = false;       // the list of problems is open
  std::string search;
  std::string jump;                         // path of a field to scroll to
  int jump_frames = 0;                      // frames left for scrolling
  std::map<std::string, RunConfig> drafts;  // edited configs by source, so that switching sources loses no edits

  uint64_t config_number = 0, outlook_number = 0;
  std::unique_ptr<Background<ConfigQuestion, ConfigAnswer>> reader;
  std::unique_ptr<Background<OutlookQuestion, Outlook>> planner;
  std::unique_ptr<Background<DataQuestion, DataFacts>> data_reader;
  std::unique_ptr<Background<DataQuestion, std::string>> data_watch;
  std::unique_ptr<Background<PaceQuestion, Pace>> pacer;
  bool reading() const { return config_number != 0 && !ready && problem.empty(); }  // of base and config
  bool all_looked() const;                                                          // all answers are about the current config

  std::map<std::string, int64_t> caps;  // rank caps by LAYER.BOND: not part of the config, but set before the run starts
  bool is_changed(const std::string& path) const { return changed.count(path) > 0; }
};

// Opens the form with a preset or a file; "" = in its last state.
void open_form(UiState& ui, const std::string& source = "");
// The same with the weights of a folder of the transformers library.
void open_form_from_folder(UiState& ui, const std::string& folder);
// The same with exactly this config, shown as changes to the preset of the same name, else to the current source.
void open_form_with(UiState& ui, const RunConfig& config);
// The same for a fork of the run after `step`, with edited settings.
void open_form_fork(UiState& ui, const RunView& of, int64_t step);
// Takes answers. Called once a frame; never waits.
void tick_form(UiState& ui);
// Call after the config was changed at `path`; "" = as a whole.
void form_changed(UiState& ui, const std::string& path);
void jump_to(NewRun& form, const std::string& path);
void reset_field(UiState& ui, const std::string& path);
void reset_form(UiState& ui);  // keeps the seed
void new_seed(UiState& ui);
// Sets a field from JSON text; a value of another type is ignored.
void set_field(UiState& ui, const std::string& path, const std::string& json);

// Why the model cannot train on the data set; null while its facts are not known.
std::optional<Problem> data_problem(const NewRun& form);
// The problem of the outlook at this path is that of the card "Does not fit into memory", which tells it.
bool in_misfit_card(const NewRun& form, const std::string& path);
// All problems that prevent the start, each with the path of its field.
std::vector<Problem> blocking_problems(const NewRun& form);
// Starts the run with these values, or lists the problems and scrolls to the first one.
void start_form(UiState& ui);

// Times some steps of the current config; the result is stored in the settings of the window.
void measure_form(UiState& ui);

// Rank caps as path=value, for bonds that exist and whose rank exceeds the cap.
std::vector<std::string> caps_of(const NewRun& form);
std::string form_json(const NewRun& form);
// The equivalent shell command. `store`: database; omitted if "" or the default.
std::string form_command(const NewRun& form, const std::string& store);

}  // namespace comera::studio
