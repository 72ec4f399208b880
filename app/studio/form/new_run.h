// The config of a run before its start: source, changes, problems and forecast. Files are read and forecasts made on other
// threads.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "app/studio/background.h"
#include "app/studio/form/data_facts.h"
#include "app/studio/form/memory_fit.h"
#include "app/studio/form/pace.h"
#include "core/train/forecast.h"

namespace comera::studio {

struct RunView;
struct UiState;

using FieldValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>>;
using FieldValues = std::map<std::string, FieldValue>;  // by path
FieldValues field_values(const RunConfig& config);

struct DataChoice {  // a set this program knows
  std::string name, about;
  int64_t bytes = 0;
  bool here = false;  // installed
};

// The parent of a fork: weights after a step, settings in effect at that step.
struct ForkOf {
  std::string run, name, store;  // id, display name, database
  int64_t step = 0;
  RunConfig config;
};

struct ConfigQuestion {
  std::string source;                  // preset or file
  std::vector<std::string> sets;       // path=value, besides
  std::shared_ptr<const ForkOf> fork;  // null: nothing is forked; else it is what the settings begin with
};
struct ConfigAnswer {
  std::string source;
  RunConfig base;    // as the source says, with the user's defaults
  RunConfig config;  // with the sets
  std::string problem, hint;
  std::vector<DataChoice> data;
  std::vector<std::string> presets, devices;
  std::string machine;  // machine_name()
};

// The plan of a config, and problems on this machine.
struct Outlook {
  std::shared_ptr<const Forecast> forecast;  // null when there is none: a problem says why
  std::vector<Problem> problems;
  std::shared_ptr<const MemoryMisfit> misfit;  // null: it fits, or there is no forecast
};
Outlook look_ahead(const RunConfig& config);

struct NewRun {
  std::string source = "demo";
  std::shared_ptr<const ForkOf> fork;  // null: a run from its first step on
  bool ready = false;                  // base and config are read
  std::string problem, hint;           // why base and config could not be read
  RunConfig base, config;
  FieldValues base_values;
  std::set<std::string> changed;  // paths whose value is not the base's
  std::vector<Problem> problems;  // of the config as it is now
  std::vector<DataChoice> data;
  std::vector<std::string> presets, devices;

  std::shared_ptr<const Forecast> forecast;  // newest; may be of a config some changes ago
  std::vector<Problem> outlook_problems;     // of the newest checked config
  std::shared_ptr<const MemoryMisfit> misfit;
  bool looking = false;  // the newest config is not checked yet

  std::vector<DataFacts> known_data;                  // sets that were read, the last one asked for among them
  std::map<std::string, std::vector<int64_t>> modes;  // that are chosen where a list of modes is empty, by path
  DataQuestion data_wanted;                           // of the config as it is now
  const DataFacts* facts() const;                     // null while they are read, or when no set is named
  Pace pace;                                          // of the newest config that was looked up
  uint64_t pace_number = 0;
  std::unique_ptr<Background<RunConfig, MeasuredStep>> meter;
  uint64_t meter_number = 0;  // of the newest question; 0 = none was asked
  bool measuring = false;
  Guess guess;          // of the newest forecast
  std::string machine;  // this one
  std::string measure_problem;

  bool start_wanted = false;  // as soon as it was looked at
  bool listing = false;       // the list of problems is open
  std::string search;
  std::string jump;                         // a field to bring into view,
  int jump_frames = 0;                      // for so many frames
  std::map<std::string, RunConfig> drafts;  // configs that were changed, by source: choosing another one loses nothing

  uint64_t config_number = 0, outlook_number = 0;
  std::unique_ptr<Background<ConfigQuestion, ConfigAnswer>> reader;
  std::unique_ptr<Background<RunConfig, Outlook>> planner;
  std::unique_ptr<Background<DataQuestion, DataFacts>> data_reader;
  std::unique_ptr<Background<PaceQuestion, Pace>> pacer;
  bool all_looked() const;  // all answers belong to the current config

  std::map<std::string, int64_t> caps;  // ranks at most, by LAYER.BOND: no settings of a config, but the run begins with them
  bool is_changed(const std::string& path) const { return changed.count(path) > 0; }
};

// Shows the form for a preset or a file; "" = as it was left.
void open_form(UiState& ui, const std::string& source = "");
// The same with exactly this config, as changes of the preset whose name it has or of what the form was about.
void open_form_with(UiState& ui, const RunConfig& config);
// The same for a fork of the run after `step`, with other settings.
void open_form_fork(UiState& ui, const RunView& of, int64_t step);
// Takes answers. Once a frame; never waits.
void tick_form(UiState& ui);
// The config was changed at `path`; "" = as a whole.
void form_changed(UiState& ui, const std::string& path);
void jump_to(NewRun& form, const std::string& path);
void reset_field(UiState& ui, const std::string& path);
void reset_form(UiState& ui);  // keeps the seed
void new_seed(UiState& ui);
// Gives a setting the value that a JSON text says; one of another kind is not taken.
void set_field(UiState& ui, const std::string& path, const std::string& json);

// All problems that prevent a start, each at its field.
std::vector<Problem> blocking_problems(const NewRun& form);
// Starts the run with exactly these values, or lists the problems and jumps to the first.
void start_form(UiState& ui);

// Times some steps of the config as it is now; the answer is kept with the settings of the window.
void measure_form(UiState& ui);

// Effective caps as path=value: of bonds of the model, below their ranks.
std::vector<std::string> caps_of(const NewRun& form);
std::string form_json(const NewRun& form);
// The equivalent shell command. `store`: database; "" or the default one is omitted.
std::string form_command(const NewRun& form, const std::string& store);

}  // namespace comera::studio
